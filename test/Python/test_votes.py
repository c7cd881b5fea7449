# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Reductions of truths, which lanes vote on: or, and, exclusive or, along either axis, over lanes and warps."""

import numpy as np
import pytest
import torch
import weft
import weft.language as wl


@weft.jit
def either(a, b):
    return a | b


@weft.jit
def both(a, b):
    return a & b


@weft.jit
def votes(x, any_of, all_of, odd, ROWS: wl.constexpr, COLUMNS: wl.constexpr, AXIS: wl.constexpr):
    rows, columns = wl.arange(0, ROWS), wl.arange(0, COLUMNS)
    truths = wl.load(x + rows[:, None] * COLUMNS + columns[None, :]) > 0
    at = columns if AXIS == 0 else rows
    wl.store(any_of + at, wl.reduce(truths, AXIS, either).to(wl.int32))
    wl.store(all_of + at, wl.reduce(truths, AXIS, both).to(wl.int32))
    wl.store(odd + at, wl.xor_sum(truths, AXIS).to(wl.int32))


@pytest.mark.parametrize("shape", [(1, 32), (4, 8), (16, 64), (64, 16), (8, 256), (2, 2), (128, 4)])
@pytest.mark.parametrize("warps", [1, 4])
def test_votes(shape, warps, seed):
    rng = np.random.default_rng(seed)
    for axis in (0, 1):
        for chance in (0.02, 0.5, 0.98):
            x = torch.from_numpy(np.where(rng.random(shape) < chance, 1.0, -1.0).astype(np.float32))
            results = [torch.full((shape[1 - axis],), 7, dtype=torch.int32) for _ in range(3)]
            votes[(1,)](x, *results, *shape, axis, num_warps=warps)
            wanted = ((x > 0).any(axis), (x > 0).all(axis), (x > 0).sum(axis) % 2)
            for got, exact in zip(results, wanted, strict=True):
                assert (got == exact.int()).all()


def test_a_vote_takes_one_instruction_of_the_warp():
    signature = "x:*fp32:16, any_of:*i32, all_of:*i32, odd:*i32, ROWS=8, COLUMNS=16, AXIS=1"
    ptx = votes.compile(signature, num_warps=1).ptx
    assert "vote.sync.ballot" in ptx and "shfl.sync.bfly" not in ptx
