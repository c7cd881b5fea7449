# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Warps pass over blocks in which masks leave nothing of their rows: what is multiplied, and that results are right.

Expected: each warp multiplies the blocks that have a pair of its own rows, and no other.
"""

from __future__ import annotations

import numpy as np
import pytest
import torch
import weft
from weft.programs.compiled import compiled
from weft.testing.attention import Domain, attention
from weft.testing.plans import run_plan

ROWS, WARPS, D = 128, 4, 64
#: columns of a block, and products of a pair, by kernel
KERNELS = {"0.forward": (64, 2), "0.backward.query": (32, 3)}

MASKS = {
    "causal": (weft.causal(), lambda row, column: column <= row),
    "window": (weft.window(100, 0), lambda row, column: (column <= row) & (row - column <= 100)),
    "both sides": (weft.window(40, 30), lambda row, column: (column - row <= 30) & (row - column <= 40)),
}


@weft.program
def dense(q, k, v, *, pattern):
    return weft.softmax(q, k, pattern) @ v


def mask_of(name: str, length: int) -> np.ndarray:
    row, column = np.ogrid[:length, :length]
    return np.broadcast_to(MASKS[name][1](row, column), (length, length))


def multiplied(mask: np.ndarray, columns: int, products: int) -> int:
    """Multiply-adds of the blocks of 128 / 4 rows, a warp's, that have a pair."""
    own = ROWS // WARPS
    rows, length = mask.shape
    blocks = np.pad(mask, ((0, -rows % own), (0, -length % columns)))
    some = blocks.reshape(blocks.shape[0] // own, own, -1, columns).any((1, 3)).sum()
    return int(some) * own * columns * D * products


@pytest.mark.parametrize("length", [384, 512])
@pytest.mark.parametrize("name", ["causal", "window", "both sides"])
def test_warps_multiply_the_blocks_that_have_pairs_of_their_rows(name, length, seed):
    torch.manual_seed(seed)
    q, k, v, grad = (torch.randn(1, 1, length, D).half() for _ in range(4))
    traced = dense.trace(dense.bind((q, k, v), {"pattern": MASKS[name][0]}))
    chosen = {kernel: (ROWS, columns, WARPS, 3) for kernel, (columns, _) in KERNELS.items()}
    form = compiled(traced, "sm_80", True, chosen)
    forward = run_plan(form.ptx, form.info, "dense.forward", [x.numpy() for x in (q, k, v)], checks="all")
    out, lse = list(forward.outputs.values())[:2]
    given = [*(x.numpy() for x in (q, k, v)), out, lse, grad.numpy()]
    backward = run_plan(form.ptx, form.info, "dense.backward", given, checks="all")

    mask = mask_of(name, length)
    found = {
        "0.forward": forward.launches[0],
        "0.backward.query": next(x for x in backward.launches if x.kernel.endswith("query")),
    }
    for kernel, (columns, products) in KERNELS.items():
        assert found[kernel].report.counters["mma_macs"] == multiplied(mask, columns, products), kernel

    leaves = [x.double().requires_grad_() for x in (q, k, v)]
    exact, _ = attention(leaves[0], [Domain(leaves[1], leaves[2], torch.from_numpy(mask.copy()))])
    gradients = torch.autograd.grad(exact, leaves, grad.double())
    for given, wanted in zip([out, *backward.outputs.values()], [exact, *gradients], strict=True):
        error = np.abs(given.astype(np.float64) - wanted.detach().numpy()).max()
        assert error < 4e-3 * float(wanted.abs().max())
