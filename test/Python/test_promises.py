# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Promises about what a loop carries: kept where they can be, else said."""

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
def pointers(x, y, n, N: wl.constexpr):
    p = x + wl.arange(0, N)
    total = wl.zeros((N,), wl.float32)
    for _ in range(n):
        p = wl.multiple_of(p, 16)
        total += wl.load(p)
        p += n
    wl.store(y + wl.arange(0, N), total)


def test_one_that_has_no_effect_is_said_with_its_line_each_time(tmp_path, monkeypatch):
    monkeypatch.setenv("WEFT_CACHE_DIR", str(tmp_path))
    line = pointers.fn.__code__.co_firstlineno + 5
    for cached in (False, True):
        said = rf"test_promises.py:{line}: 'multiple_of' of what a loop carries has no effect"
        with pytest.warns(RuntimeWarning, match=said) as caught:
            assert pointers.compile("x:*fp32:16, y:*fp32:16, n:i32, N=64").cached is cached
        assert len(caught) == 1
