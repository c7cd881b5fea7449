# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Programs inside of all bounds have a body without masks: the same numbers, in fewer instructions."""

import numpy as np
import pytest
import weft
import weft.language as wl
from kernel_support import compiled, simulate

BLOCK = 512


@weft.jit
def scaled(x, out, n, BLOCK: wl.constexpr):
    at = wl.program_id(0) * BLOCK + wl.arange(0, BLOCK)
    value = wl.load(x + at, mask=at < n, other=-1.0)
    wl.store(out + at, wl.where(at < n, value * 2.0, 5.0), mask=at < n)


@weft.jit
def prefixes(x, out, totals, n, BLOCK: wl.constexpr):
    at = wl.program_id(0) * BLOCK + wl.arange(0, BLOCK)
    value = wl.load(x + at, mask=at < n, other=0)
    wl.store(out + at, wl.cumsum(value, 0), mask=at < n)
    wl.atomic_add(totals, wl.sum(value, 0))


@weft.jit
def window(x, out, start, low, high, BLOCK: wl.constexpr):
    r = wl.arange(0, BLOCK)
    inside = (start + r < high) & (start + r >= low)
    wl.store(out + r, wl.load(x + r, mask=inside, other=7.0))


@weft.jit
def rows_and_columns(x, out, rows, columns, ROWS: wl.constexpr, COLUMNS: wl.constexpr):
    i, j = wl.program_id(0) * ROWS + wl.arange(0, ROWS), wl.arange(0, COLUMNS)
    mask = (i[:, None] < rows) & (j[None, :] < columns)
    at = i[:, None] * COLUMNS + j[None, :]
    wl.store(out + at, wl.load(x + at, mask=mask, other=0.0) + 1.0, mask=mask)


@pytest.fixture
def random():
    seed = int(np.random.SeedSequence().entropy % 2**32)
    print(f"seed {seed}")
    return np.random.default_rng(seed)


def _grid(n):
    return (-(-n // BLOCK),)


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
@pytest.mark.parametrize("n", [1, BLOCK - 1, BLOCK, BLOCK + 1, 4 * BLOCK + 3])
def test_elements(random, n, dtype):
    x = random.standard_normal(n).astype(dtype)
    out = np.full(n, np.nan, dtype)
    assert not simulate(scaled, _grid(n), x, out, np.int32(n), BLOCK=BLOCK).findings
    np.testing.assert_array_equal(out, x * dtype(2))


def test_vectors_where_a_bound_is_odd(random):
    """Four programs of five load and store vectors."""
    n = 4 * BLOCK + 3
    x, out = random.standard_normal(n).astype(np.float32), np.full(n, np.nan, np.float32)
    made = compiled(scaled, x, out, np.int32(n), BLOCK=BLOCK)[0]
    assert "ld.global.v4.b32" in made.ptx and "st.global.v4.b32" in made.ptx
    report = simulate(scaled, _grid(n), x, out, np.int32(n), BLOCK=BLOCK)
    warps, elements = 4, BLOCK // (4 * 32)
    expected = (4 + elements) * warps  # a vector for each warp inside, elements one by one at the end
    assert report.counters["by_class"]["global_load"] == report.counters["by_class"]["global_store"] == expected


@pytest.mark.parametrize("n", [3, 2 * BLOCK, 3 * BLOCK + 77])
def test_exchanges_and_atomics_in_both(random, n):
    x = random.integers(-50, 50, n).astype(np.int32)
    out, totals = np.full(n, -1, np.int32), np.zeros(1, np.int32)
    assert not simulate(prefixes, _grid(n), x, out, totals, np.int32(n), BLOCK=BLOCK).findings
    for first in range(0, n, BLOCK):
        np.testing.assert_array_equal(out[first : first + BLOCK], np.cumsum(x[first : first + BLOCK]))
    assert totals[0] == x.sum()


TOP = 2**31


@pytest.mark.parametrize(
    ("start", "low", "high"),
    [(0, 0, BLOCK), (0, 1, BLOCK), (0, 0, BLOCK - 1), (TOP - 100, -TOP, 5), (TOP - 100, 5, TOP - 1), (-TOP, -TOP, 0)],
)
def test_indices_that_wrap(random, start, low, high):
    """What counts up past 2**31 goes on below zero, and is compared as it is."""
    x, out = random.standard_normal(BLOCK).astype(np.float32), np.full(BLOCK, np.nan, np.float32)
    simulate(window, (1,), x, out, np.int32(start), np.int32(low), np.int32(high), BLOCK=BLOCK)
    at = (start + np.arange(BLOCK) + TOP) % (2 * TOP) - TOP
    np.testing.assert_array_equal(out, np.where((at < high) & (at >= low), x, np.float32(7)))


@pytest.mark.parametrize(("rows", "columns"), [(64, 64), (33, 64), (64, 63), (1, 1)])
def test_two_axes(random, rows, columns):
    x = random.standard_normal((64, 64)).astype(np.float32)
    out = np.full((64, 64), np.nan, np.float32)
    sizes = (np.int32(rows), np.int32(columns))
    assert not simulate(rows_and_columns, (2,), x, out, *sizes, ROWS=32, COLUMNS=64).findings
    expected = np.full((64, 64), np.nan, np.float32)
    expected[:rows, :columns] = x[:rows, :columns] + 1
    np.testing.assert_array_equal(out, expected)
