# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Rows gathered and scattered by descriptors, and their atomics, against NumPy: bounds, padding, types, errors."""

import numpy as np
import pytest
import weft
import weft.language as wl

SEED = int(np.random.default_rng().integers(1 << 30))
rng = np.random.default_rng(SEED)
print(f"seed {SEED}")
M, N, R, C = 37, 41, 16, 32


@weft.jit
def gathered(x, rows, y, M, N, column, R: wl.constexpr, C: wl.constexpr, PAD: wl.constexpr):
    d = wl.make_tensor_descriptor(x, [M, N], [N, 1], [1, C], padding_option=PAD)
    block = d.gather(wl.load(rows + wl.arange(0, R)), column)
    wl.store(y + wl.arange(0, R)[:, None] * C + wl.arange(0, C)[None, :], block)


@weft.jit
def scattered(x, rows, y, M, N, column, R: wl.constexpr, C: wl.constexpr):
    d = wl.make_tensor_descriptor(y, [M, N], [N, 1], [1, C])
    block = wl.load(x + wl.arange(0, R)[:, None] * C + wl.arange(0, C)[None, :])
    d.scatter(block, wl.load(rows + wl.arange(0, R)), column)


@weft.jit
def combined(x, y, M, N, i, j, KIND: wl.constexpr, BM: wl.constexpr, BN: wl.constexpr):
    d = wl.make_tensor_descriptor(y, [M, N], [N, 1], [BM, BN])
    getattr(d, KIND)([i, j], wl.load(x + wl.arange(0, BM)[:, None] * BN + wl.arange(0, BN)[None, :]))


def drawn(shape, dtype):
    return (rng.standard_normal(shape) * 50).astype(dtype)


def within(rows, column):
    """The places of a block of rows that lie in the array, in the block and in the array."""
    return [
        (a, b, row, column + b) for a, row in enumerate(rows) for b in range(C) if 0 <= row < M and 0 <= column + b < N
    ]


@pytest.mark.parametrize("index", [np.int16, np.int32, np.int64])
@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.int8])
@pytest.mark.parametrize("column", [0, 13, -7])
def test_rows_are_gathered(dtype, index, column):
    x, rows = drawn((M, N), dtype), rng.integers(-3, M + 3, R).astype(index)
    for padding in ("zero", "nan")[: 2 if dtype != np.int8 else 1]:
        y = np.full((R, C), 77, dtype)
        gathered[1,](x, rows, y, M, N, column, R=R, C=C, PAD=padding)
        expected = np.full((R, C), 0 if padding == "zero" else np.nan, dtype)
        for a, b, i, j in within(rows, column):
            expected[a, b] = x[i, j]
        np.testing.assert_array_equal(y, expected)


@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.int8])
@pytest.mark.parametrize("column", [0, 13, -7])
def test_rows_are_scattered(dtype, column):
    x, rows = drawn((R, C), dtype), rng.permutation(np.arange(-3, M + 3))[:R].astype(np.int32)
    y = drawn((M, N), dtype)
    expected = y.copy()
    for a, b, i, j in within(rows, column):
        expected[i, j] = x[a, b]
    scattered[1,](x, rows, y, M, N, column, R=R, C=C)
    np.testing.assert_array_equal(y, expected)


KINDS = {
    "atomic_add": np.add, "atomic_min": np.minimum, "atomic_max": np.maximum,
    "atomic_and": np.bitwise_and, "atomic_or": np.bitwise_or, "atomic_xor": np.bitwise_xor,
}  # fmt: skip


CASES = [(kind, dtype) for kind in KINDS for dtype in (np.int32, np.uint32, np.int64)]
CASES += [(kind, np.float32) for kind in ("atomic_add", "atomic_min", "atomic_max")]  # bits of floats are not combined


@pytest.mark.parametrize(("kind", "dtype"), CASES)
@pytest.mark.parametrize("place", [(0, 0), (-5, 20), (30, -9)])
def test_blocks_are_combined(kind, dtype, place):
    x, y = (rng.integers(0 if dtype == np.uint32 else -99, 99, shape).astype(dtype) for shape in ((16, 32), (M, N)))
    i, j = place
    inside = slice(max(i, 0), min(i + 16, M)), slice(max(j, 0), min(j + 32, N))
    block = x[max(-i, 0) : inside[0].stop - i, max(-j, 0) : inside[1].stop - j]
    expected = y.copy()
    expected[inside] = KINDS[kind](y[inside], block)
    combined[1,](x, y, M, N, i, j, KIND=kind, BM=16, BN=32)
    np.testing.assert_array_equal(y, expected)


@weft.jit
def two_rows(x, rows):
    wl.make_tensor_descriptor(x, [8, 8], [8, 1], [2, 8]).gather(wl.load(rows + wl.arange(0, 8)), 0)


@weft.jit
def one_index(x, rows):
    wl.make_tensor_descriptor(x, [8, 8], [8, 1], [1, 8]).scatter(wl.zeros([8, 8], wl.float32), 3, 0)


@pytest.mark.parametrize(("kernel", "got"), [(two_rows, "blocks of [2, 8]"), (one_index, "and int32")])
def test_what_is_no_row_is_refused(kernel, got):
    with pytest.raises(weft.CompilationError, match="expected blocks of one row and a vector of rows") as caught:
        kernel.compile("x:*fp32, rows:*i32")
    assert got in caught.value.message
