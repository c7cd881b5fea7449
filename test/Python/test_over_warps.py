# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Reductions and scans whose axes lie over many warps: partial results that each warp reads, or that lanes bring
together in turn; totals of warps that scans read; integers of whole warps by one instruction.
"""

import numpy as np
import pytest
import weft
import weft.language as wl

SEED = int(np.random.SeedSequence().entropy % 2**32)


@weft.jit
def larger(a, b):
    return wl.maximum(a, b)


@weft.jit
def composed(a, b, c, d):
    """Of x ↦ a x + b, then x ↦ c x + d."""
    return a * c, b * c + d


@weft.jit
def reduce_rows(x, sums, most, place, R: wl.constexpr, C: wl.constexpr, AXIS: wl.constexpr):
    r, c = wl.arange(0, R)[:, None], wl.arange(0, C)[None, :]
    v = wl.load(x + r * C + c)
    at = wl.arange(0, C if AXIS == 0 else R)
    wl.store(sums + at, wl.sum(v, AXIS))
    wl.store(most + at, wl.reduce(v, AXIS, larger))
    wl.store(place + at, wl.argmin(v, AXIS))


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("warps", [4, 8, 16, 32])
@pytest.mark.parametrize("shape", [(256, 32), (64, 256), (512, 8), (32, 32), (1024, 2)])
def test_reductions_of_tiles(shape, warps, axis):
    print("seed", SEED)
    random = np.random.default_rng([SEED, *shape, warps, axis])
    for kind, tolerance in ((np.float32, 1e-5), (np.float64, 1e-12), (np.int32, 0), (np.int64, 0), (np.float16, 1e-2)):
        x = random.permutation(np.arange(np.prod(shape)) % 2048 - 1000).reshape(shape)
        x = (x / 64 if np.issubdtype(kind, np.floating) else x).astype(kind)
        n = shape[1 - axis]
        sums, most = np.full((2, n), 77, kind)
        place = np.full(n, -1, np.int32)
        reduce_rows[(1,)](x, sums, most, place, *shape, axis, num_warps=warps)
        exact = x.astype(np.float64).sum(axis)
        np.testing.assert_allclose(sums, exact, rtol=0, atol=tolerance * np.abs(x.astype(np.float64)).sum(axis).max())
        np.testing.assert_array_equal(most, x.max(axis))
        np.testing.assert_array_equal(place, x.argmin(axis))


@weft.jit
def bitwise_and(a, b):
    return a & b


@weft.jit
def bitwise_or(a, b):
    return a | b


@weft.jit
def smaller(a, b):
    return wl.minimum(a, b)


@weft.jit
def reduce_integers(x, y, N: wl.constexpr):
    v = wl.load(x + wl.arange(0, N))
    wl.store(y, wl.reduce(v, 0, bitwise_and))
    wl.store(y + 1, wl.reduce(v, 0, bitwise_or))
    wl.store(y + 2, wl.xor_sum(v, 0))
    wl.store(y + 3, wl.reduce(v, 0, larger))
    wl.store(y + 4, wl.reduce(v, 0, smaller))
    wl.store(y + 5, wl.sum(v, 0, dtype=v.dtype))


@pytest.mark.parametrize("kind", [np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.int64, np.uint64])
@pytest.mark.parametrize(("length", "warps"), [(32, 1), (256, 1), (512, 4), (16, 1)])
def test_integers_of_whole_warps(kind, length, warps):
    print("seed", SEED)
    info = np.iinfo(kind)
    random = np.random.default_rng([SEED, length, warps, info.bits])
    x = random.integers(info.min, info.max, length, kind, endpoint=True)
    y = np.zeros(6, kind)
    reduce_integers[(1,)](x, y, length, num_warps=warps)
    folds = (np.bitwise_and, np.bitwise_or, np.bitwise_xor, np.maximum, np.minimum)
    expected = [fold.reduce(x) for fold in folds] + [x.sum(dtype=kind)]
    np.testing.assert_array_equal(y, np.array(expected, kind))


@pytest.mark.parametrize("kind", [np.int64, np.uint64])
def test_wide_integers_whose_halves_decide_apart(kind):
    """Of equal upper halves the lower ones decide, as unsigned numbers; sums carry from half to half."""
    print("seed", SEED)
    random = np.random.default_rng([SEED, 64])
    for uppers in ([0], [2**32 - 1], [2**31 - 1, 2**31], [5, 6]):
        lower = random.choice([0, 1, 2**16 - 1, 2**16, 2**31 - 1, 2**31, 2**32 - 1], 64).astype(np.uint64)
        x = ((random.choice(uppers, 64).astype(np.uint64) << np.uint64(32)) | lower).view(kind)
        y = np.zeros(6, kind)
        reduce_integers[(1,)](x, y, 64, num_warps=1)
        folds = (np.bitwise_and, np.bitwise_or, np.bitwise_xor, np.maximum, np.minimum)
        expected = [fold.reduce(x) for fold in folds] + [x.sum(dtype=kind)]
        np.testing.assert_array_equal(y, np.array(expected, kind))
    name = "i64" if kind == np.int64 else "u64"
    made = reduce_integers.compile(f"x:*{name}, y:*{name}, N=64", target="sm_80", num_warps=1)
    assert made.ptx.count("redux.sync") == 2 + 2 + 2 + 2 + 2 + 3 and "shfl.sync" not in made.ptx


@weft.jit
def all_and_any(x, y, N: wl.constexpr):
    v = wl.load(x + wl.arange(0, N)) > 0
    wl.store(y, wl.reduce(v, 0, bitwise_and).to(wl.int32))
    wl.store(y + 1, wl.reduce(v, 0, bitwise_or).to(wl.int32))


@pytest.mark.parametrize("ones", [0, 1, 255, 256])
def test_bools_of_whole_warps(ones):
    x, y = np.zeros(256, np.float32), np.full(2, 7, np.int32)
    x[np.random.default_rng(SEED).permutation(256)[:ones]] = 1
    all_and_any[(1,)](x, y, 256)
    assert y.tolist() == [ones == 256, ones > 0]


@weft.jit
def scans(x, sums, a, b, R: wl.constexpr, C: wl.constexpr, AXIS: wl.constexpr, REVERSE: wl.constexpr):
    at = wl.arange(0, R)[:, None] * C + wl.arange(0, C)[None, :]
    v = wl.load(x + at)
    wl.store(sums + at, wl.cumsum(v, AXIS, REVERSE))
    p, q = wl.associative_scan((1 - v * 0.001, v), AXIS, composed, REVERSE)
    wl.store(a + at, p)
    wl.store(b + at, q)


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("warps", [2, 4, 8, 16])
@pytest.mark.parametrize("shape", [(1, 4096), (256, 4), (8, 256), (64, 64), (2048, 1)])
def test_scans_of_tiles(shape, warps, axis, reverse):
    print("seed", SEED)
    random = np.random.default_rng([SEED, *shape, warps, axis, reverse])
    x = random.standard_normal(shape).astype(np.float32)
    sums, a, b = np.full((3, *shape), np.nan, np.float32)
    scans[(1,)](x, sums, a, b, *shape, axis, reverse, num_warps=warps)
    wide = np.moveaxis(x.astype(np.float64), axis, 0)
    wide = wide[::-1] if reverse else wide
    slopes, offsets = [1 - wide[0] * 0.001], [wide[0]]
    for row in wide[1:]:
        slopes.append(slopes[-1] * (1 - row * 0.001))
        offsets.append(offsets[-1] * (1 - row * 0.001) + row)
    for found, exact in ((sums, wide.cumsum(0)), (a, np.array(slopes)), (b, np.array(offsets))):
        exact = exact[::-1] if reverse else exact
        np.testing.assert_allclose(found, np.moveaxis(exact, 0, axis), rtol=1e-4, atol=2e-3)


@weft.jit
def scan_line(x, y, n, N: wl.constexpr, REVERSE: wl.constexpr):
    at = wl.arange(0, N)
    wl.store(y + at, wl.cumsum(wl.load(x + at, at < n, 0), 0, REVERSE), at < n)


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("warps", [1, 4, 8, 32])
@pytest.mark.parametrize("kind", [np.int8, np.int16, np.int32, np.int64, np.float32])
def test_scans_of_lines(kind, warps, reverse):
    print("seed", SEED)
    x = np.random.default_rng([SEED, warps]).integers(-3, 4, 8192).astype(kind)
    for n in (8192, 8001):
        y = np.zeros(8192, kind)
        scan_line[(1,)](x, y, n, 8192, reverse, num_warps=warps)
        exact = x[:n][::-1].cumsum(dtype=kind)[::-1] if reverse else x[:n].cumsum(dtype=kind)
        np.testing.assert_array_equal(y[:n], exact)
        assert not y[n:].any()
