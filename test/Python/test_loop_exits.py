# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""``break``, ``continue`` and ``return`` in loops, against the same statements in Python."""

import numpy as np
import pytest
import weft
import weft.language as wl
from kernel_support import simulate
from language_support import matches, tile_ir

N = 24


@weft.jit
def stops_at_negative(x, out, n):
    total = 0
    seen = 0
    for i in range(n):
        value = wl.load(x + i)
        if value < 0:
            break
        if value % 2 == 1:
            continue
        total += value
        seen = i
    wl.store(out, total)
    wl.store(out + 1, seen)


def stops_at_negative_here(x, n):
    total = seen = 0
    for i in range(n):
        if x[i] < 0:
            break
        if x[i] % 2 == 1:
            continue
        total += x[i]
        seen = i
    return total, seen


@weft.jit
def backwards_two_loops(x, out, n):
    total = 0
    rounds = 0
    for i in range(n - 1, -1, -2):
        j = i
        while True:
            rounds += 1
            value = wl.load(x + j)
            if value < 0:
                break
            total += value
            j += 1
            if j >= n:
                break
            if j > i + 3:
                if value > 40:
                    continue
                break
        if total > 500:
            break
    wl.store(out, total)
    wl.store(out + 1, rounds)


def backwards_two_loops_here(x, n):
    total = rounds = 0
    for i in range(n - 1, -1, -2):
        j = i
        while True:
            rounds += 1
            value = x[j]
            if value < 0:
                break
            total += value
            j += 1
            if j >= n:
                break
            if j > i + 3:
                if value > 40:
                    continue
                break
        if total > 500:
            break
    return total, rounds


@weft.jit
def first_above(x, n, bound, USE: wl.constexpr):
    if USE:
        for i in range(n):
            for j in range(2):
                value = wl.load(x + i)
                if value > bound + j:
                    return i, value
    return n, -bound


@weft.jit
def searches(x, out, n, bound):
    at, value = first_above(x, n, bound, True)
    other, _ = first_above(x, n, bound, False)
    wl.store(out, at + 1000 * other)
    wl.store(out + 1, value)


def searches_here(x, n, bound):
    found = [(i, x[i]) for i in range(n) for j in range(2) if x[i] > bound + j]
    at, value = found[0] if found else (n, -bound)
    return at + 1000 * n, value


@weft.jit
def early(x, out, n, bound, USE: wl.constexpr):
    wl.store(out, 1)
    if USE:
        for i in range(n):
            if wl.load(x + i) > bound:
                return
    wl.store(out + 1, 2)


@weft.jit
def guard_in_constant_branch(x, out, n, USE: wl.constexpr):
    if USE:  # noqa: SIM102
        if wl.load(x) > n:
            return
    wl.store(out, 5)
    wl.store(out + 1, 6)


@weft.jit
def unrolled(x, out, n):
    total = 0
    last = -1
    for i in wl.static_range(6):
        value = wl.load(x + i)
        if i == 5:
            break
        if value > n:
            continue
        total += value
        if total > n:
            break
        last = i
    wl.store(out, total)
    wl.store(out + 1, last)


def unrolled_here(x, n):
    total, last = 0, -1
    for i in range(6):
        if i == 5:
            break
        if x[i] > n:
            continue
        total += x[i]
        if total > n:
            break
        last = i
    return total, last


@weft.jit
def unrolled_search(x, n):
    for i in wl.static_range(6):
        if wl.load(x + i) > n:
            return i
    return -1


@weft.jit
def searches_unrolled(x, out, n):
    wl.store(out, unrolled_search(x, n))
    wl.store(out + 1, 3)


def searches_unrolled_here(x, n):
    return next((i for i in range(6) if x[i] > n), -1), 3


def drawn(seed):
    generator = np.random.default_rng(seed)
    x = generator.integers(0, 60, N).astype(np.int32)
    x[generator.integers(0, N, 2)] = -1
    return x


def run(kernel, x, *rest, **constants):
    out = np.full(2, -777, np.int32)
    simulate(kernel, (1,), x, out, *rest, num_warps=1, **constants)
    return tuple(out.tolist())


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    ("kernel", "here"), [(stops_at_negative, stops_at_negative_here), (backwards_two_loops, backwards_two_loops_here)]
)
def test_break_and_continue_are_pythons(kernel, here, seed):
    x = drawn(seed)
    for n in (0, 1, 7, N):
        assert run(kernel, x, np.int32(n)) == tuple(here(x, n)), (seed, n)


@pytest.mark.parametrize("bound", [-1, 20, 55, 100])
def test_a_helper_returns_out_of_nested_loops(bound):
    x = drawn(5)
    for n in (0, N):
        assert run(searches, x, np.int32(n), np.int32(bound)) == tuple(searches_here(x, n, bound))


def test_a_kernel_returns_out_of_a_loop():
    x = np.arange(N, dtype=np.int32)
    assert run(early, x, np.int32(N), np.int32(10), USE=True) == (1, -777)
    assert run(early, x, np.int32(N), np.int32(100), USE=True) == (1, 2)
    assert run(early, x, np.int32(N), np.int32(10), USE=False) == (1, 2)


def test_what_follows_a_guard_in_a_constant_branch_runs():
    x = np.full(1, 7, np.int32)
    assert run(guard_in_constant_branch, x, np.int32(9), USE=True) == (5, 6)
    assert run(guard_in_constant_branch, x, np.int32(3), USE=True) == (-777, -777)


@pytest.mark.parametrize("n", [-1, 5, 40, 90, 1000])
def test_unrolled_loops_are_left(n):
    for seed in range(2):
        x = np.abs(drawn(seed))
        assert run(unrolled, x, np.int32(n)) == tuple(unrolled_here(x, n))
        assert run(searches_unrolled, x, np.int32(n)) == tuple(searches_unrolled_here(x, n))


@weft.jit
def product_until(x, y, out, n, BLOCK: wl.constexpr):
    at = wl.arange(0, BLOCK)
    tile = at[:, None] * BLOCK + at[None, :]
    total = wl.zeros((BLOCK, BLOCK), wl.float32)
    for i in range(n):
        a = wl.load(x + i * BLOCK * BLOCK + tile)
        if wl.max(wl.max(a, 1), 0) > 100.0:
            break
        total = wl.dot(a, wl.load(y + i * BLOCK * BLOCK + tile), total)
    wl.store(out + tile, total)


def test_products_in_a_loop_that_is_left():
    generator = np.random.default_rng(11)
    x, y = (generator.standard_normal((4, 16, 16)).astype(np.float16) for _ in range(2))
    x[2, 3, 4] = 200
    out = np.full((16, 16), np.nan, np.float32)
    simulate(product_until, (1,), x, y, out, np.int32(4), BLOCK=16)
    wanted = sum(x[i].astype(np.float64) @ y[i].astype(np.float64) for i in range(2))
    np.testing.assert_allclose(out, wanted, rtol=0, atol=1e-3)


@weft.jit
def constant_exits(x, out, n, STOP: wl.constexpr):
    total = 0
    for i in range(n):
        if STOP:
            break
        if i == 3:
            continue
        total += wl.load(x + i)
    wl.store(out, total)


def test_a_loop_that_nothing_leaves_stays_counted():
    matches(tile_ir(constant_exits, "x:*i32, out:*i32, n:i32", STOP=False), "scf.for", "scf.if", "scf.yield")
    assert "scf.for" not in tile_ir(constant_exits, "x:*i32, out:*i32, n:i32", STOP=True)


@weft.jit
def of_two_types(x, n):
    for i in range(n):
        if wl.load(x + i) > 3:
            return i
    return 1.5


@weft.jit
def calls_of_two_types(x, out, n):
    wl.store(out, of_two_types(x, n))


def test_returns_of_two_types_are_refused():
    with pytest.raises(weft.CompilationError, match="expected every return to give one type"):
        calls_of_two_types.compile("x:*i32, out:*i32, n:i32")
