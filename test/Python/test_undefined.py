# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""A masked load without `other` is undefined where its mask is false: the simulator reports where that matters, through
reductions, products and copies past registers, and nothing where it does not.
"""

import inspect

import ml_dtypes
import numpy as np
import pytest
import weft
import weft.language as wl
from kernel_support import simulate


@weft.jit
def greatest(x, y, n, OTHER: wl.constexpr, N: wl.constexpr):
    at = wl.arange(0, N)
    wl.store(y, wl.max(wl.load(x + at, mask=at < n, other=OTHER), 0))


@pytest.mark.parametrize("warps", [1, 4])
@pytest.mark.parametrize("kind", ["int8", "uint8", "float16", "int32", "float32", "int64"])
@pytest.mark.parametrize("n", [16, 256])
def test_reductions_see_what_is_undefined(kind, n, warps):
    x = np.full(n, 1 if kind == "uint8" else -1, kind)
    least = 0 if kind == "uint8" else -9
    for other, count, kinds in ((None, n - 3, {"uninitialised"}), (least, n - 3, set()), (None, n, set())):
        y = np.zeros(1, kind)
        report = simulate(greatest, 1, x, y, count, OTHER=other, N=n, num_warps=warps)
        assert {finding.kind for finding in report.findings} == kinds
        assert kinds or y[0] == x[0]


@weft.jit
def copied(x, y, n, N: wl.constexpr):
    at = wl.arange(0, N)
    value = wl.load(x + at, mask=at < n)
    value = value + wl.max(wl.where(at < n, value, 0), 0)
    wl.store(y + at, value, mask=at < n)


@pytest.mark.parametrize("kind", ["int8", "float16", "float32", "int64"])
def test_what_nobody_uses_is_no_fault(kind):
    x, y = np.arange(64).astype(kind), np.zeros(64, kind)
    assert not simulate(copied, 1, x, y, 50, N=64).findings
    assert np.array_equal(y[:50], x[:50] + 49)


@weft.jit
def widened(x, y, m, n, BLOCK: wl.constexpr):
    i, j = wl.arange(0, BLOCK)[:, None], wl.arange(0, BLOCK)[None, :]
    mask = (i < m) & (j < n)
    wl.store(y + i * n + j, wl.load(x + i * n + j, mask=mask).to(wl.float32), mask=mask)


@pytest.mark.parametrize("n", [9, 12, 13])
@pytest.mark.parametrize("kind", ["float8_e4m3fn", "float8_e5m2", "bfloat16", "float16"])
def test_neighbours_in_a_word_are_no_fault(kind, n):
    """Narrow floats are widened several at a time, those at an edge beside ones that nothing loaded."""
    element = np.float16 if kind == "float16" else getattr(ml_dtypes, kind)
    x, y = np.arange(16 * n).reshape(16, n).astype(element), np.zeros((13, n), np.float32)
    assert not simulate(widened, 1, x, y, 13, n, BLOCK=16, num_warps=1).findings
    assert np.array_equal(y, x[:13].astype(np.float32))


@weft.jit
def stale(x, y, n, N: wl.constexpr):
    """The second iteration reads less than the first, whose numbers are still in the registers."""
    at = wl.arange(0, N)
    for i in range(2):
        wl.store(y + i * N + at, wl.load(x + at, mask=at < n - i))


def test_iterations_do_not_inherit():
    x, y = np.arange(64, dtype=np.float32), np.zeros(128, np.float32)
    assert {finding.kind for finding in simulate(stale, 1, x, y, 64, N=64).findings} == {"uninitialised"}
    assert not simulate(stale, 1, x, y, 65, N=64).findings


@weft.jit
def branches(x, y, n, N: wl.constexpr):
    flag = wl.load(x + n, mask=n < N)
    if flag:
        wl.store(y, 1)


@pytest.mark.parametrize("kind", ["bool", "int8", "int32"])
def test_branches_are_not_decided_by_it(kind):
    x, y = np.ones(8, kind), np.zeros(1, np.int32)
    assert {finding.kind for finding in simulate(branches, 1, x, y, 9, N=8).findings} == {"uninitialised"}
    assert not simulate(branches, 1, x, y, 7, N=8).findings


@weft.jit
def old_values(x, y, n, N: wl.constexpr):
    at = wl.arange(0, N)
    old = wl.atomic_add(x + at, 1, mask=at < n)
    wl.store(y + at, old, mask=at < N - 2)


@pytest.mark.parametrize("kind", ["int32", "float32", "float64", "float16"])
def test_old_values_of_nothing(kind):
    x, y = np.zeros(64, kind), np.zeros(64, kind)
    assert {finding.kind for finding in simulate(old_values, 1, x, y, 60, N=64).findings} == {"uninitialised"}
    assert not simulate(old_values, 1, x, y, 62, N=64).findings


@weft.jit
def product(a, b, c, m, n, k, OTHER: wl.constexpr, BLOCK: wl.constexpr):
    """c = a b of [m, k] by [k, n]."""
    i, j = wl.arange(0, BLOCK)[:, None], wl.arange(0, BLOCK)[None, :]
    total = wl.zeros((BLOCK, BLOCK), wl.float32)
    for start in range(0, k, BLOCK):
        left = wl.load(a + i * k + start + j, mask=(i < m) & (start + j < k), other=OTHER)
        right = wl.load(b + (start + i) * n + j, mask=(start + i < k) & (j < n), other=OTHER)
        total = wl.dot(left, right, acc=total)
    wl.store(c + i * n + j, total, mask=(i < m) & (j < n))


@pytest.mark.parametrize("stages", [1, 3])
@pytest.mark.parametrize("block", [16, 32])
def test_products_follow_rows_and_columns(block, stages, seed):
    """Rows and columns that are not stored may be undefined; what is summed over may not."""
    random = np.random.default_rng(seed)

    def run(m, n, k, other):
        a, b = random.integers(-3, 4, (m, k)).astype(np.float16), random.integers(-3, 4, (k, n)).astype(np.float16)
        c = np.full((m, n), np.nan, np.float32)
        report = simulate(product, 1, a, b, c, m, n, k, OTHER=other, BLOCK=block, num_stages=stages)
        return {finding.kind for finding in report.findings}, np.array_equal(c, a.astype(np.float32) @ b)

    few = block - 8
    for m, n in ((few, few), (few + 2, few + 4), (few + 3, few + 1)):  # 8 elements are one access of ldmatrix
        assert run(m, n, 3 * block, None) == (set(), True)
    assert run(few, few, 2 * block + 8, 0.0) == (set(), True)
    assert run(few, few, 2 * block + 8, None)[0] == {"uninitialised"}


def line_in(kernel, text):
    """The file and line of a kernel's that has a text."""
    lines, first = inspect.getsourcelines(kernel.fn)
    return f"test_undefined.py:{first + next(i for i, line in enumerate(lines) if text in line)})"


@pytest.mark.parametrize("stages", [1, 3])
def test_the_load_is_named(stages):
    """In registers, and where a loop's loads go past them: what is missing, and where."""
    x, y = np.ones(64, np.float32), np.zeros(1, np.float32)
    (found, *_) = simulate(greatest, 1, x, y, 50, OTHER=None, N=64).findings
    assert "has no 'other'" in found.message and line_in(greatest, "wl.load(") in found.message
    a, c = np.ones((24, 40), np.float16), np.zeros((24, 24), np.float32)
    found = simulate(product, 1, a, a.T.copy(), c, 24, 24, 40, OTHER=None, BLOCK=32, num_stages=stages).findings
    named = [line_in(product, text) for text in ("left = ", "right = ")]
    assert found and all("has no 'other'" in each.message for each in found)
    assert all(any(line in each.message for line in named) for each in found)


@weft.jit
def divided(x, y, n, N: wl.constexpr):
    at = wl.arange(0, N)
    wl.store(y + at, wl.load(x + at, mask=at < n) % 3, mask=at < n)


@weft.jit
def searched(x, y, n, N: wl.constexpr):
    """What is loaded decides whether more is."""
    at = wl.arange(0, N)
    value = wl.load(x + at, mask=at < n)
    wl.store(y + at, wl.load(x + at, mask=(value > 3) & (at < N), other=0), mask=at < n)


@weft.jit
def searched_in_a_loop(x, y, n, N: wl.constexpr):
    at = wl.arange(0, N)
    total = wl.zeros((N,), wl.int32)
    for i in range(4):
        value = wl.load(x + i * N + at, mask=at < n)
        total += wl.load(x + at, mask=(value > 3) & (at < N), other=0).to(wl.int32)
    wl.store(y + at, total, mask=at < n)


@pytest.mark.parametrize("kind", ["int64", "float32", "float64", "int32"])
def test_branches_of_the_compilers_own_are_no_fault(kind):
    x, y = np.arange(64).astype(kind), np.zeros(64, kind)
    assert not simulate(divided, 1, x, y, 50, N=64).findings
    assert np.array_equal(y[:50], x[:50] % 3) and not y[50:].any()


def test_what_decides_a_load_is_a_number():
    x, y = np.arange(256, dtype=np.int32), np.zeros(64, np.int32)
    assert not simulate(searched, 1, x, y, 50, N=64).findings
    assert np.array_equal(y[:50], np.where(x[:50] > 3, x[:50], 0))
    assert not simulate(searched_in_a_loop, 1, x, y, 50, N=64).findings
    assert np.array_equal(y[:50], 3 * x[:50] + np.where(x[:50] > 3, x[:50], 0))
