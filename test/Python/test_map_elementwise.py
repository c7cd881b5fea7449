# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""map_elementwise: functions of scalars that branch and loop, for every element or every few of them."""

import numpy as np
import pytest
import weft
import weft.language as wl
from weft.compiler.diagnostics import CompilationError


@weft.jit
def order(x, y):
    if x < y:
        return -1
    if x == y:
        return 0
    return 1


@weft.jit
def collatz(x):
    steps = 0
    while x > 1:
        x = x // 2 if x % 2 == 0 else 3 * x + 1
        steps += 1
    return steps


@weft.jit
def parts(a0, a1, b0, b1):
    return a0 // b0, a1 // b1, a0 % b0, a1 % b1


@weft.jit
def mapped(x, y, z, M: wl.constexpr, N: wl.constexpr, F: wl.constexpr):
    at = wl.arange(0, M)[:, None] * N + wl.arange(0, N)[None, :]
    wl.store(z + at, wl.map_elementwise(F, wl.load(x + at), wl.load(y + at)))


@weft.jit
def counted(x, z, N: wl.constexpr):
    at = wl.arange(0, N)
    wl.store(z + at, wl.map_elementwise(collatz, wl.load(x + at)))


@weft.jit
def packed(a, b, c, d, N: wl.constexpr):
    at = wl.arange(0, N)
    quotient, rest = wl.map_elementwise(parts, wl.load(a + at), wl.load(b + at), pack=2)
    wl.store(c + at, quotient)
    wl.store(d + at, rest)


@weft.jit
def of_scalars(x, z):
    wl.store(z, wl.map_elementwise(order, wl.load(x), wl.load(x + 1)))


@pytest.mark.parametrize("shape", [(4, 64), (8, 96), (1, 16)])
@pytest.mark.parametrize("dtype", [np.int32, np.float32, np.int64])
def test_functions_that_branch(shape, dtype, seed):
    rng = np.random.default_rng(seed)
    x, y = (rng.integers(-3, 3, shape).astype(dtype) for _ in range(2))
    z = np.full(shape, 99, np.int32)
    mapped[1,](x, y, z, M=shape[0], N=shape[1], F=order)
    np.testing.assert_array_equal(z, np.sign(x - y))


def test_functions_that_loop_as_long_as_their_element_asks(seed):
    rng = np.random.default_rng(seed)
    x = rng.integers(1, 200, 256).astype(np.int32)
    z = np.full(256, -1, np.int32)
    counted[1,](x, z, N=256)

    def steps(n):
        return 0 if n == 1 else 1 + steps(n // 2 if n % 2 == 0 else 3 * n + 1)

    np.testing.assert_array_equal(z, [steps(int(n)) for n in x])


@pytest.mark.parametrize("size", [512, 32, 96, 1])
@pytest.mark.parametrize("dtype", [np.uint32, np.int16, np.uint8])
def test_several_elements_at_once(size, dtype, seed):
    rng = np.random.default_rng(seed)
    a, b = (rng.integers(1, 100, size).astype(dtype) for _ in range(2))
    c, d = np.zeros(size, dtype), np.zeros(size, dtype)
    packed[1,](a, b, c, d, N=size)
    np.testing.assert_array_equal(c, a // b)
    np.testing.assert_array_equal(d, a % b)


def test_scalars_are_the_call_itself():
    z = np.zeros(1, np.int32)
    of_scalars[1,](np.array([3.0, 2.0], np.float32), z)
    assert z[0] == 1


@weft.jit
def stores(x):
    wl.device_print("x", x)
    return x


@weft.jit
def two(x):
    return x, x


@weft.jit
def three(x, y, z):
    return x, y, z


@weft.jit
def mixed(x, y):
    return x, y.to(wl.float32)


@weft.jit
def wrong(x, N: wl.constexpr, F: wl.constexpr, PACK: wl.constexpr):
    wl.store(x + wl.arange(0, N), wl.map_elementwise(F, wl.load(x + wl.arange(0, N)), pack=PACK))


@weft.jit
def nothing(x):
    wl.store(x, wl.map_elementwise(order))


@pytest.mark.parametrize(
    ("function", "pack", "message"),
    [
        (stores, 1, "neither reads nor writes memory"),
        (three, 3, "power of two up to 32"),
        (two, 4, "expected the arguments of 'two'"),
        (order, 2, "expected the function of 'map_elementwise' to return 2 scalars for each result, but got 1 in all"),
        (mixed, 2, "expected the function of 'map_elementwise' to return scalars, here of int32, but got fp32"),
    ],
)
def test_what_is_refused(function, pack, message):
    with pytest.raises(CompilationError, match=message):
        wrong[1,](np.ones(64, np.int32), N=64, F=function, PACK=pack)


def test_no_block_is_refused():
    with pytest.raises(CompilationError, match="to be given a block at least"):
        nothing[1,](np.ones(64, np.int32))
