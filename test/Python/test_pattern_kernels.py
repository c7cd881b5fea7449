# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Patterns inside kernels, forward and backward, against softmax over the matrix that the same pattern has on the host;
lengths that are equal or differ, either way, and are no multiples of any block."""

import numpy as np
import pytest
import weft

torch = pytest.importorskip("torch")

SEED = int(np.random.SeedSequence().generate_state(1)[0])
RNG = np.random.default_rng(SEED)
B, H, D = 2, 2, 16


def tables(n, m):
    ids, keys = (torch.tensor(RNG.integers(0, 3, (B, length)), dtype=torch.int32) for length in (n, m))
    index = torch.tensor(np.argsort(RNG.random((B, H, n // 16 + 1, m // 16 + 1)), -1), dtype=torch.int32)
    count = torch.tensor(RNG.integers(0, m // 16 + 2, (B, H, n // 16 + 1)), dtype=torch.int32)
    bits = torch.tensor(RNG.integers(0, 2, (B, H, n // 16 + 1, m // 8 + 1)), dtype=torch.bool)
    lower, upper = (torch.tensor(np.sort(RNG.integers(0, m + 1, (B, H, n)), -1), dtype=torch.int32) for _ in range(2))
    lower = torch.minimum(lower, upper)
    key = torch.arange(m, dtype=torch.int32)
    first, past = ((bound[..., None] <= key).sum(-2, dtype=torch.int32) for bound in (upper, lower))
    span = weft.span(lower, upper, first, past)
    parity = torch.tensor(RNG.integers(0, 3, (H, n)), dtype=torch.int32)
    return {
        "document": weft.document(ids, keys) & weft.causal(),
        "blocks": weft.blocks(index, count, block=16),
        "blocks, shifted": weft.blocks(index, count, block=16).shift(5) & weft.window(None, 30),
        "bitmap": weft.block_bitmap(bits, block=(16, 8)),
        "span": span,
        "span and window": span & weft.window(12, None),
        "mask": weft.mask(lambda b, h, n, m: (n + m) % 3 == parity[h, n]),
    }


FORMULAS = {
    "causal": weft.causal(),
    "window": weft.window(9, 3),
    "no window": ~weft.window(9, 3),
    "far window": weft.window(-4, 20),
    "block window": weft.block_window(24) & weft.causal(),
    "longformer": weft.global_tokens(5) | weft.window(8, 8),
    "prefix": weft.prefix(20) | weft.causal(),
    "transposed prefix": weft.prefix(20).transpose() | weft.window(2, 2),
    "shifted": (~weft.causal()).shift(-3),
    "strided": weft.strided(3),
    "dilated": weft.dilated(3, 4),
    "bigbird": weft.random_blocks(11, 2, 16) | weft.global_tokens(6) | weft.window(16, 16),
    "per head": weft.per_head([weft.causal(), weft.window(7, 7)]),
    "empty": weft.causal() & ~weft.causal(),
}


def reference(q, k, v, allowed):
    """Softmax attention in float64, 0 where nothing is allowed."""
    scores = (q @ k.transpose(-1, -2) / D**0.5).masked_fill(~allowed, -torch.inf)
    weights = torch.where(allowed, torch.exp(scores - scores.amax(-1, keepdim=True).clamp(min=-1e30)), 0.0)
    total = weights.sum(-1, keepdim=True)
    return weights / torch.where(total > 0, total, 1.0) @ v


@pytest.mark.parametrize(
    "name", [*FORMULAS, "document", "blocks", "blocks, shifted", "bitmap", "mask", "span", "span and window"]
)
def test_kernels(name):
    n, m = [(83, 83), (37, 90), (90, 37)][RNG.integers(3)]
    print("seed", SEED, "lengths", n, m)
    pattern = FORMULAS[name] if name in FORMULAS else tables(n, m)[name]
    allowed = torch.tensor(np.broadcast_to(pattern.matrix(n, m, batch=B, heads=H), (B, H, n, m)).copy())

    @weft.program
    def attend(q, k, v):
        return weft.softmax(q, k, pattern) @ v

    shapes = (n, m, m)
    arrays = [torch.tensor(RNG.standard_normal((B, H, size, D)), dtype=torch.float32) for size in shapes]
    out = attend(*(x.requires_grad_() for x in arrays))
    doubles = [x.detach().double().requires_grad_() for x in arrays]
    expected = reference(*doubles, allowed)
    torch.testing.assert_close(out.double(), expected, atol=2e-5, rtol=0)
    upstream = torch.tensor(RNG.standard_normal(out.shape), dtype=torch.float32)
    found = torch.autograd.grad(out, arrays, upstream, allow_unused=True, materialize_grads=True)
    wanted = torch.autograd.grad(expected, doubles, upstream.double())
    for gradient, right in zip(found, wanted, strict=True):
        torch.testing.assert_close(gradient.double(), right, atol=5e-5, rtol=0)
