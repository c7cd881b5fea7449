# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""A hybrid block: a window of softmax attention near a token, the gated delta rule for all before it, one gate over
both. Held against the formula in float64, forward and backward, then decoded token by token.
Run it: python examples/14_hybrid.py
"""

import torch
import weft
from torch.nn import functional
from weft.testing import Domain, attention, demonstrate, recurrences

WINDOW = 16


@weft.program
def hybrid(q, k, v, gate, beta, log_decay):
    near = weft.softmax(q, k, weft.window(WINDOW - 1, 0))
    far = weft.delta_rule(q, k, beta, log_decay)
    return weft.diag(gate) @ (near + far) @ v


@weft.program
def step(q, k, v, beta, log_decay, state):
    """The recurrence's part of one token, and the state that it leaves."""
    far = weft.delta_rule(q, k, beta, log_decay, initial_state=state)
    return far @ v, far.final_state(v)


def inputs(randn):
    q, k, v = (randn(1, 2, 80, 32) for _ in range(3))
    k = functional.normalize(k.float(), dim=-1).to(q.dtype)
    numbers = (randn(1, 2, 80, dtype=torch.float32) for _ in range(2))
    beta, log_decay = next(numbers).sigmoid(), functional.logsigmoid(next(numbers) + 2)
    return {"q": q, "k": k, "v": v, "gate": randn(1, 2, 80).sigmoid(), "beta": beta, "log_decay": log_decay}


def expected(q, k, v, gate, beta, log_decay, form):
    tokens = torch.arange(q.shape[2])
    distance = tokens[:, None] - tokens
    near = attention(q, [Domain(k, v, (distance >= 0) & (distance < WINDOW))], form=form)[0]
    far = recurrences.chunked(q, k, v, log_decay, beta)[0]
    return gate[..., None] * (near + far)


def decode():
    """The recurrence on 6 tokens, one at a time, is what it is on all of them."""
    q, k, v = (torch.randn(1, 2, 6, 32) for _ in range(3))
    k = functional.normalize(k, dim=-1)
    beta, log_decay = torch.rand(1, 2, 6), -torch.rand(1, 2, 6)
    state, outs = torch.zeros(1, 2, 32, 32), []
    for n in range(6):
        out, state = step(*(x[:, :, n : n + 1] for x in (q, k, v, beta, log_decay)), state)
        outs.append(out)
    error = (torch.cat(outs, 2) - weft.delta_rule(q, k, beta, log_decay) @ v).abs().max()
    assert error < 1e-5, error
    print(f"6 tokens decoded one by one: largest difference {error:.1e}")


if __name__ == "__main__":
    rule = {"parameters": ("log_decay",), "products_as_given": False}
    demonstrate(hybrid, expected, inputs, title="window + gated delta rule", **rule)
    decode()
