# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Promises about what a loop carries are kept; where one has no effect, that is said."""

import numpy as np
import pytest
import weft
import weft.language as wl


@weft.jit
def strided(x, y, n, step, N: wl.constexpr, PROMISE: wl.constexpr):
    offset = 0
    total = wl.zeros((N,), wl.float32)
    for _ in range(n):
        if PROMISE:
            offset = wl.multiple_of(offset, 16)
        total += wl.load(x + offset + wl.arange(0, N))
        offset += step
    wl.store(y + wl.arange(0, N), total)


def test_a_carried_scalar_keeps_its_promise():
    signature = "x:*fp32:16, y:*fp32:16, n:i32, step:i32, N=512"
    assert "ld.global.v4" in strided.compile(signature + ", PROMISE=True").ptx
    assert "ld.global.v4" not in strided.compile(signature + ", PROMISE=False").ptx
    x, y = np.random.default_rng().standard_normal(2048).astype(np.float32), np.zeros(512, np.float32)
    strided[1,](x, y, 4, 48, N=512, PROMISE=True)
    np.testing.assert_allclose(y, sum(x[i * 48 : i * 48 + 512] for i in range(4)), rtol=1e-5, atol=1e-5)


@weft.jit
def pointers(x, y, n, step, N: wl.constexpr, NAME: wl.constexpr):
    p = x + wl.arange(0, N)
    total = wl.zeros((N,), wl.float32)
    for _ in range(n):
        if NAME == "multiple_of":
            p = wl.multiple_of(p, 16)
        if NAME == "max_contiguous":
            p = wl.max_contiguous(wl.multiple_of(p, 16), N)
        if NAME == "statement":
            wl.multiple_of(p, 16)
        if NAME == "unused":
            wl.multiple_of((p, n)[0], 16)
        total += wl.load(p)
        p += step
    wl.store(y + wl.arange(0, N), total)


@pytest.mark.parametrize("name", ["multiple_of", "max_contiguous", "statement"])
@pytest.mark.parametrize("size", [512, 320])
def test_a_carried_block_keeps_its_promise(name, size):
    signature = f"x:*fp32:16, y:*fp32:16, n:i32, step:i32, N={size}"
    assert "ld.global.v4" in pointers.compile(f"{signature}, NAME={name!r}", num_warps=1).ptx
    assert "ld.global.v4" not in pointers.compile(f"{signature}, NAME=''", num_warps=1).ptx
    x, y = np.random.default_rng().standard_normal(2048).astype(np.float32), np.zeros(size, np.float32)
    pointers[1,](x, y, 4, 48, N=size, NAME=name)
    np.testing.assert_allclose(y, sum(x[i * 48 : i * 48 + size] for i in range(4)), rtol=1e-5, atol=1e-5)


@weft.jit
def inner(x, y, n, flag, N: wl.constexpr):
    p = x + wl.arange(0, N)
    total = wl.zeros((N,), wl.float32)
    for _ in range(n):
        for _ in range(n):
            wl.multiple_of(p, 16)
            total += wl.load(p)
        if flag > 0:
            wl.multiple_of(p, 16)
            total += wl.load(p)
        p += 48
        total -= wl.load(p)
    wl.store(y + wl.arange(0, N), total)


def test_a_promise_within_a_block_ends_with_it():
    assert inner.compile("x:*fp32:16, y:*fp32:16, n:i32, flag:i32, N=512", num_warps=1).ptx.count("ld.global.v4") >= 8
    x, y = np.random.default_rng().standard_normal(2048).astype(np.float32), np.zeros(512, np.float32)
    inner[1,](x, y, 2, 1, N=512)
    parts = [x[i * 48 : i * 48 + 512] for i in range(3)]
    np.testing.assert_allclose(y, 3 * parts[0] + 2 * parts[1] - parts[2], rtol=1e-5, atol=1e-4)


@weft.jit
def repeated(x, y, n, N: wl.constexpr, PROMISE: wl.constexpr):
    at = wl.arange(0, N)
    which = at * 0
    total = wl.zeros((N,), wl.float32)
    while n > 0:
        if PROMISE:
            which = wl.max_constancy(which, N)
        total += wl.load(x + which * N + at)
        which += n
        n -= 1
    wl.store(y + at, total)


def test_constancy_of_what_a_while_loop_carries():
    signature = "x:*fp32:16, y:*fp32:16, n:i32, N=512"
    assert "ld.global.v4" in repeated.compile(signature + ", PROMISE=True").ptx
    x, y = np.random.default_rng().standard_normal(512 * 6).astype(np.float32), np.zeros(512, np.float32)
    repeated[1,](x, y, 3, N=512, PROMISE=True)
    np.testing.assert_allclose(y, sum(x.reshape(6, 512)[i] for i in (0, 3, 5)), rtol=1e-5, atol=1e-5)


def test_one_whose_result_is_not_used_is_said_with_its_line_each_time(tmp_path, monkeypatch):
    monkeypatch.setenv("WEFT_CACHE_DIR", str(tmp_path))
    line = pointers.fn.__code__.co_firstlineno + 12
    for cached in (False, True):
        said = rf"test_promises.py:{line}: 'multiple_of' of what a loop carries holds for its result"
        with pytest.warns(RuntimeWarning, match=said) as caught:
            made = pointers.compile("x:*fp32:16, y:*fp32:16, n:i32, step:i32, N=64, NAME='unused'")
            assert made.cached is cached
        assert len(caught) == 1
