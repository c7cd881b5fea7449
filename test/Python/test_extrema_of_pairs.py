# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""The largest and smallest of 16-bit floats, widened or not, of numbers or their sizes: NumPy's, over tiles of which a
thread has few or many, with infinities, zeros of both signs and numbers that are none among them."""

import numpy as np
import pytest
import torch
import weft
import weft.language as wl


@weft.jit
def extrema(
    x,
    of_rows,
    of_all,
    SMALLEST: wl.constexpr,
    WIDE: wl.constexpr,
    SIZES: wl.constexpr,
    M: wl.constexpr,
    N: wl.constexpr,
):
    rows, columns = wl.arange(0, M)[:, None], wl.arange(0, N)[None, :]
    tile = wl.load(x + rows * N + columns)
    if SIZES == "before":
        tile = wl.abs(tile)
    if WIDE:
        tile = tile.to(wl.float32)
    if SIZES == "after":
        tile = wl.abs(tile)
    found = wl.min(tile, 1) if SMALLEST else wl.max(tile, 1)
    whole = wl.min(tile) if SMALLEST else wl.max(tile)
    wl.store(of_rows + wl.arange(0, M), found.to(wl.float32))
    wl.store(of_all, whole.to(wl.float32))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("sizes", ["no", "before", "after"])
@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("smallest", [False, True])
def test_extrema(dtype, sizes, wide, smallest, seed):
    generator = torch.Generator().manual_seed(seed)
    for m, n, warps in ((8, 64, 1), (16, 128, 4), (4, 512, 2), (1, 4096, 4)):
        x = torch.randn(m, n, generator=generator).to(dtype)
        for odd in (torch.nan, torch.inf, -torch.inf, 0.0, -0.0, 1e-7, -1e-7):
            count = int(torch.randint(0, 3, (), generator=generator)) * (1 if abs(odd) < 1 or m > 4 else 0)
            x.view(-1)[torch.randperm(m * n, generator=generator)[:count]] = odd
        x[0, :] = torch.nan if m > 8 else x[0, :]
        rows, whole = torch.full((m,), 7.0), torch.full((1,), 7.0)
        extrema[1,](x, rows, whole, SMALLEST=smallest, WIDE=wide, SIZES=sizes, M=m, N=n, num_warps=warps)
        exact = x.double().numpy() if sizes == "no" else x.double().abs().numpy()
        of = np.fmin if smallest else np.fmax
        np.testing.assert_array_equal(rows.numpy(), of.reduce(exact, 1))
        np.testing.assert_array_equal(whole.numpy(), of.reduce(exact, None))


def test_two_numbers_at_once():
    """Half as many comparisons as numbers, and no float32 of each before the largest is known."""
    x = torch.randn(16, 128).bfloat16()
    rows, whole = torch.zeros(16), torch.zeros(1)
    kernel = extrema[1,](x, rows, whole, SMALLEST=False, WIDE=True, SIZES="after", M=16, N=128, num_warps=1)
    words = 16 * 128 // 2 // 32
    assert kernel.ptx.count("max.bf16x2") == words - 1 and "abs.f32" not in kernel.ptx
