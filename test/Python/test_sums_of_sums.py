# Part of Weft. SPDX-License-Identifier: Apache-2.0

"""Offsets that are sums of sums twice over: right, and compiled in as many steps as there are ops, not paths."""

from __future__ import annotations

import concurrent.futures
import multiprocessing

import numpy as np
import pytest
import weft
import weft.language as wl


@weft.jit
def doubled(x, y, stride, TIMES: wl.constexpr, BLOCK: wl.constexpr):
    row = wl.program_id(0)
    lanes = wl.arange(0, BLOCK)
    offset = row.to(wl.int64) * stride
    for _ in wl.static_range(TIMES):
        offset = offset + offset
    both = (offset + lanes) + (row + offset)
    wl.store(y + row * BLOCK + lanes, wl.load(x + both))


@weft.jit
def product(x, y, n, TIMES: wl.constexpr, BLOCK: wl.constexpr):
    start = wl.program_id(0) + n
    for _ in wl.static_range(TIMES):
        start = start + start
    lanes = wl.arange(0, BLOCK)
    total = wl.zeros((BLOCK, BLOCK), wl.float32)
    for k in range(0, n, BLOCK):
        at = k + start
        for _ in wl.static_range(TIMES):
            at = at + at
        a = wl.load(x + (start + lanes[:, None]) * n + at + lanes[None, :], mask=at + lanes[None, :] < n, other=0.0)
        b = wl.load(x + (at + lanes[:, None]) * n + lanes[None, :])
        total = wl.dot(a, b, total)
    wl.store(y + lanes[:, None] * n + lanes[None, :], total)


@pytest.mark.parametrize("target", ["sm_80", "sm_90a"])
@pytest.mark.parametrize("times", [0, 1, 3])
def test_right(target, times, monkeypatch):
    monkeypatch.setenv("WEFT_TARGET", target)
    rows, block, stride = 3, 64, 70
    x = np.random.default_rng().standard_normal(4096).astype(np.float32)
    y = np.full((rows, block), np.nan, np.float32)
    doubled[(rows,)](x, y, np.int64(stride), TIMES=times, BLOCK=block)
    starts = np.arange(rows) * (2 * stride * 2**times + 1)
    np.testing.assert_array_equal(y, x[starts[:, None] + np.arange(block)])


def compiled(target: str) -> int:
    constants = {"TIMES": 40, "BLOCK": 64}
    texts = [
        product.compile("x: *fp16, y: *fp32, n: i32", constants, target).ptx,
        doubled.compile("x: *fp32, y: *fp32, stride: i64", constants, target).ptx,
    ]
    return min(map(len, texts))


@pytest.mark.parametrize("target", ["sm_80", "sm_90a"])
def test_forty_times_over_comes_to_an_end(target):
    """In a process of its own, which can be ended: 2^40 paths would never be walked."""
    with concurrent.futures.ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        try:
            assert pool.submit(compiled, target).result(timeout=240)
        except concurrent.futures.TimeoutError:
            for process in pool._processes.values():
                process.kill()
            raise
