# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Exponentials of which a share is computed by polynomials, beside products in tensor memory: as exact as those of the
unit for special functions, and the same where that gives 0, infinity or what is no number.
"""

import numpy as np
import pytest
import weft
import weft.language as wl
import weft.simulator

TARGET = "sm_100a"
M, N, K = 128, 128, 16


@weft.jit
def powers(q, k, x, y, STEPS, M: wl.constexpr, N: wl.constexpr, K: wl.constexpr):
    """Of x, to which products of zeros are added."""
    rows, columns, inner = wl.arange(0, M), wl.arange(0, N), wl.arange(0, K)
    at = rows[:, None] * N + columns[None, :]
    a = wl.load(q + rows[:, None] * K + inner[None, :])
    for step in range(STEPS):
        b = wl.load(k + (step * N + columns)[None, :] * K + inner[:, None])
        wl.store(y + step * M * N + at, wl.exp2(wl.dot(a, b) + wl.load(x + step * M * N + at)))


@pytest.fixture(scope="module")
def kernel():
    return powers.compile(
        f"q:*fp16:16, k:*fp16:16, x:*fp32:16, y:*fp32:16, STEPS:i32, M={M}, N={N}, K={K}", target=TARGET, num_warps=4
    )


def powers_of(kernel, x):
    """2^x of 128 x 128 numbers at a time."""
    steps = -(-len(x) // (M * N))
    padded = np.resize(x, (steps, M, N))
    y = np.full_like(padded, np.nan)
    q, k = np.zeros((M, K), np.float16), np.zeros((steps * N, K), np.float16)
    report = weft.simulator.launch(
        kernel.ptx,
        kernel.name,
        1,
        32 * kernel.num_warps,
        [q, k, padded, y, np.int32(steps)],
        shared=kernel.shared_bytes,
    )
    assert report.findings == []
    return padded, y


def test_a_share_is_computed_otherwise(kernel):
    """Six of sixteen where products are small: pairs of neighbours."""
    pairs, single = kernel.ptx.count("add.rm.f32x2"), kernel.ptx.count("ex2.approx")
    assert (2 * pairs, single) == (6 * N // 16, 10 * N // 16)


@pytest.mark.parametrize("low, high", [(-126, 128), (-1, 1), (-30, 0), (-1e-6, 1e-6)])
def test_errors(kernel, low, high, seed):
    x = np.random.default_rng(seed).uniform(low, high, 4 * M * N).astype(np.float32)
    x, y = powers_of(kernel, np.minimum(x, np.float32(127.99)))
    exact = np.exp2(x.astype(np.float64))
    assert (np.abs(y - exact) / np.spacing(exact.astype(np.float32))).max() <= 2


def test_ends(kernel):
    """In every column, so by either way."""
    below = np.nextafter(np.float32([-126, 128]), np.float32(-np.inf))
    ends = np.float32([np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-45, -1e-45, 128, 3e38, -3e38, -127, -126, 127, *below])
    wanted = np.float32([np.nan, np.inf, 0, 1, 1, 1, 1, np.inf, np.inf, 0, 0, 2.0**-126, 2.0**127, 0, np.nan])
    wanted[-1] = np.exp2(np.float64(ends[-1]))
    x = np.repeat(ends, N)
    x, y = powers_of(kernel, np.resize(x, M * N))
    wanted = np.resize(np.repeat(wanted, N), (1, M, N))
    np.testing.assert_allclose(y, wanted, rtol=2.0**-22, atol=0)
    assert np.array_equal(np.isnan(y), np.isnan(x))
