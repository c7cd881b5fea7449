# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Addresses of many rows beside products, whose elements are loaded one by one: what they cost in a loop, and in
registers across one."""

import re

import numpy as np
import pytest
import weft
import weft.language as wl
from weft import simulator
from weft.compiler.ptxas import assemble, find_tool


@pytest.fixture
def rng(seed):
    return np.random.default_rng(seed)


def launch(compiled, grid, args, warps=4):
    report = simulator.launch(compiled.ptx, compiled.name, grid, 32 * warps, args, shared=compiled.shared_bytes)
    assert not report.findings, [str(finding) for finding in report.findings]


def close(got, expected):
    return np.abs(got.astype(np.float64) - expected).max() <= 4e-3 * max(1.0, np.abs(expected).max())


@weft.jit
def product_of_rows(a, rows, b, c, M, N, K, BM: wl.constexpr, BN: wl.constexpr, BK: wl.constexpr):
    m, n, k = wl.program_id(0) * BM + wl.arange(0, BM), wl.program_id(1) * BN + wl.arange(0, BN), wl.arange(0, BK)
    row = wl.load(rows + m, m < M, 0)
    at, bt = a + row[:, None] * K + k[None, :], b + k[:, None] * N + n[None, :]
    acc = wl.zeros((BM, BN), wl.float32)
    for i in range(0, K, BK):
        x = wl.load(at, (m < M)[:, None] & (k[None, :] < K - i), 0.0)
        y = wl.load(bt, (n < N)[None, :] & (k[:, None] < K - i), 0.0)
        acc = wl.dot(x, y, acc)
        at += BK
        bt += BK * N
    wl.store(c + m[:, None] * N + n[None, :], acc, (m < M)[:, None] & (n < N)[None, :])


@pytest.mark.parametrize(("tile", "addresses"), [(64, 24), (32, 16)])
def test_rows_that_a_loop_moves_are_whole_addresses(tile, addresses, rng):
    """Each address is one addition an iteration: what they share has been added before the loop."""
    M, N, K = 75, 90, 71
    a, rows = rng.standard_normal((200, K)).astype(np.float16), rng.integers(0, 200, M, np.int64)
    b, c = rng.standard_normal((K, N)).astype(np.float16), np.full((M, N), np.nan, np.float32)
    signature = "a:*fp16:16, rows:*i64:16, b:*fp16:16, c:*fp32:16, M:i32, N:i32, K:i32"
    signature += f", BM={tile}, BN={tile}, BK=32"
    compiled = product_of_rows.compile(signature=signature, target="sm_80", num_warps=4)
    launch(compiled, (weft.cdiv(M, tile), weft.cdiv(N, tile)), [a, rows, b, c, M, N, K])
    assert close(c, a.astype(np.float64)[rows] @ b.astype(np.float64))
    loop = compiled.ptx[compiled.ptx.index("mma.sync") :]  # the loop's end is between its products and its loads
    stored = tile // 4  # rows of the result, behind the loop
    assert len(re.findall(r"add\.s64\s", loop[: loop.index("ret;")])) <= addresses + 1 + stored


@weft.jit
def product_of_blocks(a, b, c, M, N, K, BM: wl.constexpr, BN: wl.constexpr, BK: wl.constexpr):
    left = wl.make_tensor_descriptor(a, [M, K], [K, 1], [BM, BK])
    right = wl.make_tensor_descriptor(b, [N, K], [K, 1], [BN, BK])
    result = wl.make_tensor_descriptor(c, [M, N], [N, 1], [BM, BN])
    for tile in range(wl.program_id(0), wl.cdiv(M, BM) * wl.cdiv(N, BN), wl.num_programs(0)):
        i, j = tile // wl.cdiv(N, BN), tile % wl.cdiv(N, BN)
        acc = wl.zeros((BM, BN), wl.float32)
        for k in range(wl.cdiv(K, BK)):
            acc = wl.dot(left.load([i * BM, k * BK]), right.load([j * BN, k * BK]).T, acc)
        result.store([i * BM, j * BN], acc.to(wl.float16))


def test_rows_of_blocks_of_any_width_fit_in_registers(rng):
    """Rows are sums of few multiples of a width that all threads share, not as many products of 64 bits."""
    M, N, K = 136, 72, 104
    a, b = (rng.standard_normal((rows, K)).astype(np.float16) for rows in (M, N))
    c = np.full((M, N), np.nan, np.float16)
    signature = "a:*fp16:16, b:*fp16:16, c:*fp16:16, M:i32, N:i32, K:i32, BM=64, BN=64, BK=32"
    compiled = product_of_blocks.compile(signature=signature, target="sm_80", num_warps=4)
    launch(compiled, 3, [a, b, c, M, N, K])
    assert close(c, a.astype(np.float64) @ b.astype(np.float64).T)
    assert len(re.findall(r"mul\.lo\.s64\s", compiled.ptx)) <= 8
    if find_tool("ptxas"):
        found = assemble(compiled.ptx, "sm_80")
        assert (found.spill_store_bytes, found.spill_load_bytes) == (0, 0)


@weft.jit
def halvings(x, steps, N: wl.constexpr):
    for i in range(N):
        value = wl.load(x + i)
        count = 0
        while value > 1:
            value = wl.where(value % 2 == 0, value // 2, 3 * value + 1)
            count += 1
        wl.store(steps + i, count)


def test_loops_that_test_first(rng):
    x, steps = rng.integers(-3, 60, 20, np.int32), np.full(20, -1, np.int32)
    launch(halvings.compile("x:*i32, steps:*i32, N=20", target="sm_80", num_warps=1), 1, [x, steps], warps=1)
    for value, got in zip(x.tolist(), steps, strict=True):
        count = 0
        while value > 1:
            value, count = value // 2 if value % 2 == 0 else 3 * value + 1, count + 1
        assert got == count
