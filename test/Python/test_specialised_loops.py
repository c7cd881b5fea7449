# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Loops that ask for warps of their own for copies: persistent kernels, against float64."""

import numpy as np
import pytest
import weft
import weft.language as wl
from kernel_support import compiled, simulate
from weft.compiler.ptxas import assemble, find_tool
from weft.cycles.flow import loops_of


@weft.jit
def persistent(
    a_ptr, b_ptr, c_ptr, M, N, K, PROGRAMS: wl.constexpr, BM: wl.constexpr, BN: wl.constexpr, BK: wl.constexpr,
    GROUP: wl.constexpr, ASKS: wl.constexpr,
):  # fmt: skip
    a = wl.make_tensor_descriptor(a_ptr, shape=[M, K], strides=[K, 1], block_shape=[BM, BK])
    b = wl.make_tensor_descriptor(b_ptr, shape=[N, K], strides=[K, 1], block_shape=[BN, BK])
    c = wl.make_tensor_descriptor(c_ptr, shape=[M, N], strides=[N, 1], block_shape=[BM, BN])
    rows, columns = wl.cdiv(M, BM), wl.cdiv(N, BN)
    for tile in wl.range(wl.program_id(0), rows * columns, PROGRAMS, flatten=True, warp_specialize=ASKS):
        first = tile // (GROUP * columns) * GROUP
        size = min(rows - first, GROUP)
        m = (first + tile % size) * BM
        n = tile % (GROUP * columns) // size * BN
        acc = wl.zeros((BM, BN), dtype=wl.float32)
        for k in range(wl.cdiv(K, BK)):
            acc = wl.dot(a.load([m, k * BK]), b.load([n, k * BK]).T, acc)
        c.store([m, n], acc.to(wl.float16))


@weft.jit
def strided(a, b, c, M, N, K, BM: wl.constexpr, BN: wl.constexpr, BK: wl.constexpr, ASKS: wl.constexpr):
    """The same of pointers, and of rows of b that are turned."""
    m = wl.program_id(0) * BM + wl.arange(0, BM)
    n = wl.program_id(1) * BN + wl.arange(0, BN)
    acc = wl.zeros((BM, BN), dtype=wl.float32)
    for start in wl.range(0, K, BK, warp_specialize=ASKS):
        k = start + wl.arange(0, BK)
        x = wl.load(a + m[:, None] * K + k[None, :], mask=(m[:, None] < M) & (k[None, :] < K), other=0.0)
        y = wl.load(b + n[:, None] * K + k[None, :], mask=(n[:, None] < N) & (k[None, :] < K), other=0.0)
        acc = wl.dot(x, y.trans(), acc)
    wl.store(c + m[:, None] * N + n[None, :], acc.to(wl.float16), mask=(m[:, None] < M) & (n[None, :] < N))


TILE = {"BM": 128, "BN": 128, "BK": 64}


def operands(seed, M, N, K):
    random = np.random.default_rng(seed)
    a, b = (random.standard_normal(shape).astype(np.float16) for shape in ((M, K), (N, K)))
    return a, b, np.full((M, N), np.nan, np.float16), np.int32(M), np.int32(N), np.int32(K)


def check(a, b, c):
    exact = a.astype(np.float64) @ b.astype(np.float64).T
    assert (np.abs(c - exact) <= 2**-10 * np.abs(exact) + 2**-18 * np.abs(a).astype(np.float64) @ np.abs(b).T).all()


@pytest.mark.parametrize("asks", [True, False])
@pytest.mark.parametrize("M, N, K, warps", [(300, 280, 200, 8), (256, 128, 64, 8), (130, 264, 8, 4), (128, 128, 0, 8)])
@pytest.mark.parametrize("order", range(3))
def test_persistent(seed, monkeypatch, M, N, K, warps, asks, order):
    """More tiles than programs, sizes that tiles do not divide, one and no step of the inner loop."""
    monkeypatch.setenv("WEFT_TARGET", "sm_90a")
    given = operands(seed, M, N, K)
    options = {"PROGRAMS": 2, "GROUP": 2, "ASKS": asks, "num_warps": warps, "num_stages": 3, **TILE}
    report = simulate(persistent, (2,), *given, seed=order, **options)
    assert not report.findings
    check(*given[:3])


@weft.jit
def uneven(
    a_ptr, b_ptr, c_ptr, steps_ptr, M, N, K, PROGRAMS: wl.constexpr, BM: wl.constexpr, BN: wl.constexpr,
    BK: wl.constexpr,
):  # fmt: skip
    """Tiles of which each has steps of its own, and some have none."""
    a = wl.make_tensor_descriptor(a_ptr, shape=[M, K], strides=[K, 1], block_shape=[BM, BK])
    b = wl.make_tensor_descriptor(b_ptr, shape=[N, K], strides=[K, 1], block_shape=[BN, BK])
    rows, columns = wl.cdiv(M, BM), wl.cdiv(N, BN)
    for tile in wl.range(wl.program_id(0), rows * columns, PROGRAMS, warp_specialize=True):
        m, n = tile % rows * BM, tile // rows * BN
        acc = wl.zeros((BM, BN), dtype=wl.float32)
        for k in range(wl.load(steps_ptr + tile)):
            acc = wl.dot(a.load([m, k * BK]), b.load([n, k * BK]).T, acc)
        i, j = m + wl.arange(0, BM), n + wl.arange(0, BN)
        wl.store(c_ptr + i[:, None] * N + j[None, :], acc, mask=(i[:, None] < M) & (j[None, :] < N))


@pytest.mark.parametrize("warps, stages, programs", [(8, 3, 1), (8, 2, 2), (4, 3, 1), (8, 4, 3)])
@pytest.mark.parametrize("order", range(3))
def test_rings_go_on_from_tile_to_tile(seed, monkeypatch, warps, stages, programs, order):
    """Whatever turn a tile's steps leave the ring at."""
    monkeypatch.setenv("WEFT_TARGET", "sm_90a")
    random = np.random.default_rng(seed)
    M, N, K, BM, BN, BK = 376, 128, 320, 128, 64, 64
    a, b = (random.standard_normal(shape).astype(np.float16) for shape in ((M, K), (N, K)))
    steps, c = random.integers(0, K // BK + 1, 6).astype(np.int32), np.full((M, N), np.nan, np.float32)
    given = (a, b, c, steps, np.int32(M), np.int32(N), np.int32(K))
    options = {"PROGRAMS": programs, "BM": BM, "BN": BN, "BK": BK, "num_warps": warps, "num_stages": stages}
    made, _ = compiled(uneven, *given, **options)
    assert "\n      warp.mbarrier_init" in made.ir["pipelined"]  # by the producer, before the loop over tiles
    report = simulate(uneven, (programs,), *given, seed=order, **options)
    assert not report.findings
    for tile in range(6):
        m, n, k = tile % 3 * BM, tile // 3 * BN, steps[tile] * BK
        exact = a[m : m + BM, :k].astype(np.float64) @ b[n : n + BN, :k].astype(np.float64).T
        assert np.allclose(c[m : m + BM, n : n + BN], exact, rtol=1e-4, atol=1e-3)


@weft.jit
def one_behind_another(
    a_ptr, b_ptr, c_ptr, steps_ptr, M, N, K, BM: wl.constexpr, BN: wl.constexpr, BK: wl.constexpr, ASKS: wl.constexpr,
):  # fmt: skip
    """The second loop's columns begin where the first one's sum of what memory has says."""
    a = wl.make_tensor_descriptor(a_ptr, shape=[M, K], strides=[K, 1], block_shape=[BM, BK])
    b = wl.make_tensor_descriptor(b_ptr, shape=[N, K], strides=[K, 1], block_shape=[BN, BK])
    m, n = wl.program_id(0) * BM, 0
    acc = wl.zeros((BM, BN), dtype=wl.float32)
    for k in wl.range(0, K, BK, warp_specialize=ASKS):
        acc = wl.dot(a.load([m, k]), b.load([0, k]).T, acc)
        n += wl.load(steps_ptr + k // BK)
    for k in wl.range(0, K, BK, warp_specialize=ASKS):
        acc = wl.dot(a.load([m, k]), b.load([n, k]).T, acc)
    i, j = m + wl.arange(0, BM), wl.arange(0, BN)
    wl.store(c_ptr + i[:, None] * BN + j[None, :], acc, mask=i[:, None] < M)


@pytest.mark.parametrize("asks", [True, False])
@pytest.mark.parametrize("warps, stages", [(8, 3), (4, 2)])
def test_a_loop_places_the_next_ones_copies(seed, monkeypatch, warps, stages, asks):
    monkeypatch.setenv("WEFT_TARGET", "sm_90a")
    random = np.random.default_rng(seed)
    M, N, K, BM, BN, BK = 250, 192, 200, 128, 64, 64
    a, b = (random.standard_normal(shape).astype(np.float16) for shape in ((M, K), (N, K)))
    steps, c = random.integers(0, 40, 4).astype(np.int32), np.full((M, BN), np.nan, np.float32)
    given = (a, b, c, steps, np.int32(M), np.int32(N), np.int32(K))
    options = {"BM": BM, "BN": BN, "BK": BK, "ASKS": asks, "num_warps": warps, "num_stages": stages}
    report = simulate(one_behind_another, (2,), *given, seed=int(random.integers(0, 50)), **options)
    assert not report.findings
    rows = np.concatenate([b.astype(np.float64), np.zeros((BN, K))])
    n = steps.sum()
    assert np.allclose(c, a.astype(np.float64) @ (rows[:BN] + rows[n : n + BN]).T, rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("M, N, K", [(200, 136, 104)])
def test_pointers(seed, monkeypatch, M, N, K):
    monkeypatch.setenv("WEFT_TARGET", "sm_90a")
    given = operands(seed, M, N, K)
    report = simulate(strided, (2, 2), *given, ASKS=True, num_warps=8, num_stages=3, **TILE)
    assert not report.findings
    check(*given[:3])


def test_a_target_without(seed, monkeypatch):
    """Where no thread copies whole tiles, it changes nothing."""
    monkeypatch.setenv("WEFT_TARGET", "sm_80")
    given = operands(seed, 128, 128, 128)
    options = {"num_warps": 8, "num_stages": 3, **TILE}
    made = [compiled(strided, *given, ASKS=asks, **options)[0].ptx for asks in (True, False)]
    assert made[0] == made[1]


@pytest.mark.skipif(not (find_tool("ptxas") and find_tool("nvdisasm")), reason="ptxas or nvdisasm was not found")
def test_instructions():
    """A step of 128×128×64 takes a third of the instructions where others copy."""
    signature = "a_ptr:*fp16:16, b_ptr:*fp16:16, c_ptr:*fp16:16, M:i32, N:i32:16, K:i32:16, PROGRAMS=132, GROUP=8"
    counts = {}
    for asks in (True, False):
        kernel = persistent.compile(
            f"{signature}, BM=128, BN=128, BK=64, ASKS={asks}", target="sm_90a", num_warps=8, num_stages=3
        )
        loops = [loop for found in loops_of(kernel.ptx, "sm_90a").values() for loop in found if loop.matrix]
        counts[asks] = min(loop.count for loop in loops)
        assert assemble(kernel.ptx, "sm_90a").spill_store_bytes == 0
    assert counts[True] <= 34
    assert counts[False] <= 40
