# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""flash-linear-attention's own operators against their definitions in plain PyTorch. Run it in Triton's place:

    python -m weft.triton test/Python/linear_attention.py chunk_gla chunk_kda

prints a line for each: its name, the relative error of its result, and of each gradient.
"""

import importlib
import sys

import torch
from torch.nn import functional

BATCH, TOKENS, HEADS, KEYS, VALUES = 1, 100, 2, 32, 32
SCALE = KEYS**-0.5


def leaf(*sizes):
    return torch.randn(*sizes).requires_grad_()


def decays(*sizes):
    return functional.logsigmoid(torch.randn(*sizes)).requires_grad_()


def recurrence(q, k, v, decay, beta=None):
    """o_t = q_t S_t, where S_t is S_{t-1} decayed, plus k_t v_t; of a delta rule v_t less what k_t finds, scaled."""
    state, outputs = torch.zeros(BATCH, HEADS, KEYS, VALUES), []
    for t in range(TOKENS):
        state = state * decay[:, t].exp()[..., None]
        value = v[:, t]
        if beta is not None:
            value = beta[:, t][..., None] * (value - (state * k[:, t][..., None]).sum(-2))
        state = state + k[:, t][..., None] * value[:, :, None, :]
        outputs.append((q[:, t][..., None] * SCALE * state).sum(-2))
    return torch.stack(outputs, 1)


def linear(module, name, gate):
    q, k, v = leaf(BATCH, TOKENS, HEADS, KEYS), leaf(BATCH, TOKENS, HEADS, KEYS), leaf(BATCH, TOKENS, HEADS, VALUES)
    g = decays(BATCH, TOKENS, HEADS, *([KEYS] if gate == "channels" else []))
    function = getattr(importlib.import_module(f"fla.ops.{module}"), name)
    wide = g if gate == "channels" else g[..., None].expand(-1, -1, -1, KEYS)
    if gate is None:
        return (
            function(q, k, v, scale=SCALE, normalize=False)[0],
            recurrence(q, k, v, torch.zeros_like(wide)),
            (q, k, v),
        )
    return function(q, k, v, g, scale=SCALE)[0], recurrence(q, k, v, wide), (q, k, v, g)


def delta(module, name, gate, backward=True):
    q, k, v = leaf(BATCH, TOKENS, HEADS, KEYS), leaf(BATCH, TOKENS, HEADS, KEYS), leaf(BATCH, TOKENS, HEADS, VALUES)
    beta, unit = torch.rand(BATCH, TOKENS, HEADS).requires_grad_(), functional.normalize(k, dim=-1)
    g = decays(BATCH, TOKENS, HEADS, *([KEYS] if gate == "channels" else []))
    function = getattr(importlib.import_module(f"fla.ops.{module}"), name)
    wide = g if gate == "channels" else g[..., None].expand(-1, -1, -1, KEYS)
    gates = {} if gate is None else {"g": g}
    exact = recurrence(q, unit, v, torch.zeros_like(wide) if gate is None else wide, beta)
    leaves = (q, k, v, beta) if gate is None else (q, k, v, beta, g)
    return function(q, unit, v, beta=beta, scale=SCALE, **gates)[0], exact, leaves if backward else ()


def attention():
    q, k, v = (leaf(BATCH, TOKENS, HEADS, KEYS) for _ in range(3))
    scores = torch.einsum("bthd,bshd->bhts", q, k) * SCALE
    scores = scores.masked_fill(torch.ones(TOKENS, TOKENS).triu(1).bool(), float("-inf"))
    exact = torch.einsum("bhts,bshd->bthd", scores.softmax(-1), v)
    return importlib.import_module("fla.ops.attn").parallel_attn(q, k, v, scale=SCALE), exact, (q, k, v)


def hgrn():
    x, g = leaf(BATCH, TOKENS, 64), decays(BATCH, TOKENS, 64)
    state, outputs = torch.zeros(BATCH, 64), []
    for t in range(TOKENS):
        state = state * g[:, t].exp() + x[:, t]
        outputs.append(state)
    return importlib.import_module("fla.ops.hgrn").fused_recurrent_hgrn(x, g)[0], torch.stack(outputs, 1), (x, g)


def norm():
    x, layer = leaf(4, 50, 64), importlib.import_module("fla.modules").RMSNorm(64)
    return layer(x), functional.rms_norm(x, (64,), layer.weight, 1e-5), (x,)


def swiglu():
    x, y = leaf(64, 128), leaf(64, 128)
    return importlib.import_module("fla.modules.activations").swiglu(x, y), functional.silu(x) * y, (x, y)


CASES = {
    "chunk_gla": lambda: linear("gla", "chunk_gla", "channels"),
    "fused_recurrent_gla": lambda: linear("gla", "fused_recurrent_gla", "channels"),
    "chunk_simple_gla": lambda: linear("simple_gla", "chunk_simple_gla", "heads"),
    "parallel_simple_gla": lambda: linear("simple_gla", "parallel_simple_gla", "heads"),
    "chunk_linear_attn": lambda: linear("linear_attn", "chunk_linear_attn", None),
    "fused_chunk_linear_attn": lambda: linear("linear_attn", "fused_chunk_linear_attn", None),
    "fused_recurrent_delta_rule": lambda: delta("delta_rule", "fused_recurrent_delta_rule", None),
    "chunk_gated_delta_rule": lambda: delta("gated_delta_rule", "chunk_gated_delta_rule", "heads"),
    "fused_recurrent_gated_delta_rule": lambda: delta(
        "gated_delta_rule", "fused_recurrent_gated_delta_rule", "heads", backward=False
    ),
    "chunk_kda": lambda: delta("kda", "chunk_kda", "channels"),
    "parallel_attn": attention,
    "fused_recurrent_hgrn": hgrn,
    "rms_norm": norm,
    "swiglu": swiglu,
}


def error(found, exact):
    return float((found - exact).norm() / exact.norm())


def main(names):
    for name in names:
        found, exact, leaves = CASES[name]()
        errors = [error(found, exact)]
        if leaves:
            along = torch.randn_like(exact)
            mine = torch.autograd.grad(found, leaves, along, retain_graph=True)
            errors += [error(a, b) for a, b in zip(mine, torch.autograd.grad(exact, leaves, along), strict=True)]
        print(name, *(f"{each:.2e}" for each in errors), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:] or CASES)
