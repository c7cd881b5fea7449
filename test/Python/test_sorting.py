# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""``sort``, ``topk``, ``flip``, ``bitonic_merge``, ``histogram``, ``swizzle2d`` and others made of the language's own
functions, against NumPy."""

import numpy as np
import pytest
import weft
import weft.language as wl
from kernel_support import simulate

SEED = int(np.random.default_rng().integers(1 << 30))
rng = np.random.default_rng(SEED)
print(f"seed {SEED}")


@weft.jit
def ordered(
    x, y, M: wl.constexpr, N: wl.constexpr, K: wl.constexpr, DIM: wl.constexpr, FALLS: wl.constexpr, HOW: wl.constexpr
):
    block = wl.load(x + wl.arange(0, M)[:, None] * N + wl.arange(0, N))
    if HOW == "sort":
        found = wl.sort(block, DIM, FALLS)
    elif HOW == "topk":
        found = wl.topk(block, K, DIM, FALLS)
    elif HOW == "flip":
        found = block.flip(DIM)
    else:
        found = wl.bitonic_merge(block, DIM, FALLS)
    ROWS: wl.constexpr = found.shape[0]
    COLUMNS: wl.constexpr = found.shape[1]
    wl.store(y + wl.arange(0, ROWS)[:, None] * COLUMNS + wl.arange(0, COLUMNS), found)


def run(x, shape, **options):
    y = np.zeros(shape, x.dtype)
    settings = {"K": 1, "DIM": None, "FALLS": False} | options
    ordered[1,](x, y, M=x.shape[0], N=x.shape[1], **settings, num_warps=2)
    return y


def numbers(dtype, shape):
    if np.dtype(dtype).kind == "f":
        return rng.standard_normal(shape).astype(dtype)
    return rng.integers(0 if np.dtype(dtype).kind == "u" else -50, 50, shape).astype(dtype)


@pytest.mark.parametrize(
    ("dtype", "dim", "falls"),
    [(np.float32, None, False), (np.float16, 1, True), (np.int32, 0, False), (np.uint8, 1, True), (np.int64, -2, True)],
)
def test_sort(dtype, dim, falls):
    x = numbers(dtype, (4, 64))
    axis = 1 if dim is None else dim
    expected = np.sort(x, axis)
    got = run(x, x.shape, HOW="sort", DIM=dim, FALLS=falls)
    np.testing.assert_array_equal(got, np.flip(expected, axis) if falls else expected)


@pytest.mark.parametrize(
    ("k", "falls", "dim"), [(1, True, None), (8, True, None), (8, False, 1), (32, True, 1), (2, False, 0)]
)
def test_topk(k, falls, dim):
    x = numbers(np.float32, (8, 32))
    axis = 1 if dim is None else dim
    expected = np.sort(x, axis)
    if falls:
        expected = np.flip(expected, axis)
    shape = tuple(k if i == axis else s for i, s in enumerate(x.shape))
    got = run(x, shape, HOW="topk", K=k, FALLS=falls, DIM=dim)
    np.testing.assert_array_equal(got, np.take(expected, range(k), axis))


@pytest.mark.parametrize("dtype", [np.float32, np.uint8, np.int64])
@pytest.mark.parametrize("dim", [0, 1])
def test_sizes_that_are_no_powers_of_two(dtype, dim):
    """The least and the greatest numbers are among the elements, which those that fill an axis up must not displace."""
    x = numbers(dtype, (5, 20))
    info = np.finfo(dtype) if x.dtype.kind == "f" else np.iinfo(dtype)
    x[:3, :3] = [[info.min], [info.max], [-np.inf if x.dtype.kind == "f" else 0]]
    up = np.sort(x, dim)
    for falls, k in ((False, 3), (True, 5)):
        wanted = np.flip(up, dim) if falls else up
        np.testing.assert_array_equal(run(x, x.shape, HOW="sort", DIM=dim, FALLS=falls), wanted)
        shape = tuple(k if i == dim else s for i, s in enumerate(x.shape))
        np.testing.assert_array_equal(
            run(x, shape, HOW="topk", K=k, FALLS=falls, DIM=dim), np.take(wanted, range(k), dim)
        )
    merged = np.concatenate([np.sort(x[:, :7], 1), np.flip(np.sort(x[:, 7:], 1), 1)], 1)
    np.testing.assert_array_equal(run(merged, x.shape, HOW="merge", DIM=1), np.sort(x, 1))


def test_what_is_no_number_is_sorted_among_uneven_sizes():
    x = np.float32([[np.nan, 3, -np.inf, np.inf, -1, 2]])
    np.testing.assert_array_equal(run(x, x.shape, HOW="sort"), np.sort(x, 1))
    np.testing.assert_array_equal(run(x, (1, 3), HOW="topk", K=3, FALLS=True), [[np.nan, np.inf, 3]])


@pytest.mark.parametrize("dim", [None, 0])
def test_flip(dim):
    x = numbers(np.float16, (4, 32))
    np.testing.assert_array_equal(run(x, x.shape, HOW="flip", DIM=dim), np.flip(x, 1 if dim is None else dim))


def test_bitonic_merge():
    x = np.sort(numbers(np.float32, (4, 32)), 1)
    x[:, 16:] = np.flip(x[:, 16:], 1)
    np.testing.assert_array_equal(run(x, x.shape, HOW="merge", FALLS=True), -np.sort(-x, 1))


def test_what_is_no_number_stays():
    x = numbers(np.float32, (2, 32))
    x[:, ::5] = np.nan
    x[:, 1], x[:, 2], x[:, 3], x[:, 4] = 0.0, -0.0, np.inf, -np.inf
    x[1, 5] = np.copysign(np.nan, -1)
    got = run(x, x.shape, HOW="sort")
    np.testing.assert_array_equal(got[0], np.sort(x[0]), "not-a-numbers come last")
    np.testing.assert_array_equal(np.sort(got, 1), np.sort(x, 1))
    assert np.isnan(got[1, 0]) and np.signbit(got[1, 0]), "but for one with a sign"
    zeros = np.signbit(got[0][got[0] == 0])
    assert list(zeros) == [True, False], "-0.0 comes before 0.0"


@weft.jit
def others(x, y, z, n, N: wl.constexpr, BINS: wl.constexpr):
    at = wl.arange(0, N)
    values = wl.load(x + at)
    wl.store(y + wl.arange(0, BINS), wl.histogram(values, BINS, at < n))
    wl.store(z + wl.arange(0, BINS), values.histogram(BINS))


def test_histogram():
    x = rng.integers(-3, 40, 256).astype(np.int32)
    y, z = np.zeros(32, np.int32), np.zeros(32, np.int32)
    others[1,](x, y, z, 100, N=256, BINS=32)
    assert y.tolist() == [int((x[:100] == i).sum()) for i in range(32)]
    assert z.tolist() == [int((x == i).sum()) for i in range(32)]


@weft.jit
def counted(x, y, SHAPE: wl.constexpr, BINS: wl.constexpr):
    at = wl.reshape(wl.arange(0, SHAPE[0] * SHAPE[1]), SHAPE)
    wl.store(y + wl.arange(0, BINS), wl.histogram(wl.load(x + at), BINS))


@pytest.mark.parametrize("dtype", [np.int64, np.uint64, np.int8, np.uint8, np.int16, np.uint32])
@pytest.mark.parametrize("shape, bins", [((4, 64), 64), ((1, 8), 2), ((32, 64), 4096)])
def test_histogram_of_types_and_sizes(dtype, shape, bins):
    """Values past 32 bits are no bins, nor are negative ones; more bins than threads, fewer elements than threads."""
    info = np.iinfo(dtype)
    x = rng.integers(max(info.min, -3), min(info.max, 2 * bins), shape, dtype=dtype, endpoint=True)
    x.ravel()[::3] = info.max - 1
    if info.bits == 64:
        x.ravel()[1::5] = 2**32 + 1
    y = np.full(bins, -1, np.int32)
    report = simulate(counted, 1, x, y, SHAPE=shape, BINS=bins)
    assert not report.findings
    assert y.tolist() == np.bincount(x[(x >= 0) & (x < bins)].astype(np.int64), minlength=bins).tolist()


@weft.jit
def grouped(out, rows, columns, G: wl.constexpr):
    i, j = wl.swizzle2d(wl.program_id(0), wl.program_id(1), rows, columns, G)
    wl.store(out + wl.program_id(0) * columns + wl.program_id(1), i * columns + j)


def test_swizzle2d():
    out = np.full((7, 5), -1, np.int32)
    grouped[7, 5](out, 7, 5, G=3)
    expected = [i * 5 + j for first in range(0, 7, 3) for j in range(5) for i in range(first, min(first + 3, 7))]
    assert out.ravel().tolist() == expected


@weft.jit
def affine(x, y):
    return x * 2 + y, wl.where(x > y, x, y)


@weft.jit
def shapes(x, y, N: wl.constexpr):
    at = wl.arange(0, N)
    values = wl.load(x + at)
    a, b = wl.map_elementwise(affine, values, 1.0)
    wl.store(y + at, wl.squeeze(wl.unsqueeze(a, 0), 0))
    wl.store(y + N + at, b.unsqueeze(1).squeeze(1))


def test_functions_of_elements_and_axes_of_one():
    x, y = numbers(np.float32, 64), np.zeros((2, 64), np.float32)
    shapes[1,](x, y, N=64)
    np.testing.assert_allclose(y, [x * 2 + 1, np.maximum(x, 1)], rtol=1e-6)


@weft.jit
def described(x, y, M, N, i, j, BM: wl.constexpr, BN: wl.constexpr):
    source = wl.make_tensor_descriptor(x, [M, N], [N, 1], [BM, BN])
    target = wl.make_tensor_descriptor(y, [M, N], [N, 1], [BM, BN])
    block = wl.load_tensor_descriptor(source, [i, j])
    target.store([i, j], block * 2)
    wl.static_assert(source.dtype == wl.float32 and source.block_shape[1] == BN)


def test_descriptors():
    x, y = numbers(np.float32, (30, 50)), np.zeros((30, 50), np.float32)
    described[1,](x, y, 30, 50, 20, 40, BM=16, BN=16)
    expected = np.zeros_like(y)
    expected[20:, 40:] = 2 * x[20:, 40:]
    np.testing.assert_array_equal(y, expected)


@weft.jit
def flags(x, y):
    wl.atomic_store(x, 3.5)
    wl.store(y, wl.atomic_load(x))


def test_atomic_load_and_store():
    x, y = np.zeros(1, np.float32), np.zeros(1, np.float32)
    flags[1,](x, y)
    assert x[0] == y[0] == 3.5


@weft.jit
def narrowed(x, y, N: wl.constexpr):
    at = wl.arange(0, N)
    wl.store(y + at, wl.load(x + at).to(y.dtype.element_ty, fp_downcast_rounding="rtz"))


def test_rounding_toward_zero():
    x = (rng.standard_normal(1024) * np.exp2(rng.integers(-30, 20, 1024))).astype(np.float32)
    x[:6] = [np.nan, np.inf, -np.inf, 70000, -70000, 1e-9]
    y = np.zeros(1024, np.float16)
    narrowed[1,](x, y, N=1024)
    with np.errstate(over="ignore"):
        nearest = x.astype(np.float16)
    expected = np.where(np.abs(nearest.astype(np.float32)) > np.abs(x), np.nextafter(nearest, np.float16(0)), nearest)
    np.testing.assert_array_equal(y, expected)


def test_errors():
    @weft.jit
    def kernel(x, K: wl.constexpr):
        wl.store(x + wl.arange(0, 4), wl.topk(wl.load(x + wl.arange(0, 16)), K))

    with pytest.raises(weft.CompilationError, match="expected 'k' of 'topk' to be from 1 to 16, but got 17"):
        kernel.compile("x:*fp32, K=17")

    @weft.jit
    def squeezed(x):
        wl.store(x + wl.arange(0, 4), wl.squeeze(wl.load(x + wl.arange(0, 4)), 0))

    with pytest.raises(weft.CompilationError, match="expected axis 0 of 'squeeze' to have size 1, but got 4"):
        squeezed.compile("x:*fp32")

    @weft.jit
    def rounded(x):
        wl.store(x, wl.load(x).to(wl.float32, fp_downcast_rounding="rtz"))

    with pytest.raises(weft.CompilationError, match="expected fp32 and a 16-bit float to round toward zero"):
        rounded.compile("x:*fp64")
