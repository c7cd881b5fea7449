# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Loops whose bounds lie no more than a step apart, against Python's: once, or not at all where the upper one wraps."""

import numpy as np
import pytest
import weft
import weft.language as wl
from kernel_support import compiled, simulate

BLOCK = 32


@weft.jit
def strips(x, out, sums, rows, SPAN: wl.constexpr, BLOCK: wl.constexpr):
    row = wl.program_id(1)
    columns = wl.arange(0, BLOCK)
    total = wl.zeros((BLOCK,), wl.float32)
    for start in range(row * SPAN, (row + 1) * SPAN, BLOCK):
        at = start + columns
        inside = (at < rows) & (at < row * SPAN + SPAN)
        value = wl.load(x + at, mask=inside, other=0.0)
        total += value * value
        wl.store(out + at, value * 2.0, mask=inside)
    wl.store(sums + row, wl.sum(total, axis=0))


@weft.jit
def counts(start, out, SPAN: wl.constexpr):
    seen = 0
    last = 7
    for i in range(start, start + SPAN, SPAN):
        seen += 1
        last = i
    wl.store(out, seen)
    wl.store(out + 1, last)


@pytest.mark.parametrize("span", [16, 32])
def test_a_strip_that_one_step_covers(span):
    seed = int(np.random.SeedSequence().entropy % 2**32)
    print(f"seed {seed}")
    x = np.random.default_rng(seed).standard_normal(90).astype(np.float32)
    out, sums = np.full(90, np.nan, np.float32), np.full(6, np.nan, np.float32)
    grid = -(-90 // span)
    simulate(strips, (1, grid), x, out, sums, 90, SPAN=span, BLOCK=BLOCK)
    assert "scf.for" not in compiled(strips, x, out, sums, 90, SPAN=span, BLOCK=BLOCK)[0].ir["warp"]
    exact = x.astype(np.float64)
    assert np.array_equal(out, 2 * x)
    for row in range(grid):
        assert np.isclose(sums[row], (exact[row * span : (row + 1) * span] ** 2).sum(), rtol=1e-6)


@pytest.mark.parametrize("start", [0, -5, 2**31 - 17, 2**31 - 16, 2**31 - 1, -(2**31)])
def test_an_upper_bound_that_wraps_is_below(start):
    out = np.full(2, -1, np.int32)
    simulate(counts, (1,), np.int32(start), out, SPAN=16)
    runs = start + 16 < 2**31
    assert list(out) == ([1, start] if runs else [0, 7])
