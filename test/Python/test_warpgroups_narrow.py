# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Products of 8-bit integers by matrix instructions of warpgroups: the sums of int64 to the bit, no finding of the
simulator whatever is early or late, and what the instructions do not take by those of single warps.
"""

import math

import numpy as np
import pytest
import weft
import weft.language as wl
import weft.simulator
from weft.compiler.ptxas import assemble, find_tool
from weft.cycles.flow import loops_of
from weft.targets import targets

TARGET = next(name for name, each in targets().items() if each.warpgroup_mma)
needs_ptxas = pytest.mark.skipif(
    not (find_tool("ptxas") and find_tool("nvdisasm")), reason="ptxas or nvdisasm was not found"
)


@weft.jit
def matmul(
    a, b, c, M, N, K, sam, sak, sbk, sbn, scm,
    BM: wl.constexpr, BN: wl.constexpr, BK: wl.constexpr, EXACT: wl.constexpr,
):  # fmt: skip
    m = wl.program_id(0) * BM + wl.arange(0, BM)
    n = wl.program_id(1) * BN + wl.arange(0, BN)
    k = wl.arange(0, BK)
    a_ptrs = a + m[:, None] * sam + k[None, :] * sak
    b_ptrs = b + k[:, None] * sbk + n[None, :] * sbn
    acc = wl.zeros((BM, BN), dtype=wl.int32)
    for start in range(0, K, BK):
        if EXACT:
            a_tile, b_tile = wl.load(a_ptrs), wl.load(b_ptrs)
        else:
            inside = k < K - start
            a_tile = wl.load(a_ptrs, mask=(m[:, None] < M) & inside[None, :], other=0)
            b_tile = wl.load(b_ptrs, mask=inside[:, None] & (n[None, :] < N), other=0)
        acc = wl.dot(a_tile, b_tile, acc)
        a_ptrs += BK * sak
        b_ptrs += BK * sbk
    wl.store(c + m[:, None] * scm + n[None, :], acc, mask=(m[:, None] < M) & (n[None, :] < N))


def compile_matmul(tile, warps, order="nt", stages=3, exact=False, pointer=16):
    """Of order "n" are rows that lie along the second axis, of "t" those along the first."""
    unit = {"n": ("sam:i32:16", "sak=1"), "t": ("sam=1", "sak:i32:16")}[order[0]]
    other = {"n": ("sbk:i32:16", "sbn=1"), "t": ("sbk=1", "sbn:i32:16")}[order[1]]
    text = (
        f"a:*i8:{pointer}, b:*i8:{pointer}, c:*i32:16, M:i32, N:i32, K:i32, {', '.join(unit + other)}, scm:i32:16, "
        f"BM={tile[0]}, BN={tile[1]}, BK={tile[2]}, EXACT={exact}"
    )
    return matmul.compile(text, target=TARGET, num_warps=warps, num_stages=stages)


def random_integers():
    seed = np.random.SeedSequence().entropy
    print("seed", seed)
    rng = np.random.default_rng(seed)
    return lambda *shape: rng.integers(-128, 128, shape, dtype=np.int8)


def judge(kernel, sizes, tile, warps, order="nt", seeds=2):
    M, N, K = sizes
    draw = random_integers()
    a, b = draw(M, K), draw(K, N)
    stored = [np.ascontiguousarray(x if way == "n" else x.T) for x, way in zip((a, b), order, strict=True)]
    width = -(-N // 16) * 16
    for seed in range(seeds):
        c = np.full((M, width), -(2**31), np.int32)
        scalars = [np.int32(each) for each in (*sizes, *(each.shape[1] for each in stored), width)]
        report = weft.simulator.launch(
            kernel.ptx, kernel.name, (math.ceil(M / tile[0]), math.ceil(N / tile[1])), (32 * kernel.num_warps,),
            [*stored, c, *scalars], shared=kernel.shared_bytes, seed=seed,
        )  # fmt: skip
        assert report.findings == []
        np.testing.assert_array_equal(c[:, :N], a.astype(np.int64) @ b.astype(np.int64))
    return report


#: Lines of 32, 64 and 128 bytes and panels of them; several tiles of a warpgroup, and warpgroups along both axes.
TILES = [((64, 16, 32), 4), ((128, 64, 64), 4), ((64, 32, 256), 4), ((128, 64, 128), 8), ((64, 128, 64), 8)]


@pytest.mark.parametrize("tile, warps", TILES)
def test_every_line(tile, warps):
    kernel = compile_matmul(tile, warps)
    assert "mma.sync" not in kernel.ptx and ".s32.s8.s8" in kernel.ptx
    assert judge(kernel, (tile[0], tile[1], 3 * tile[2]), tile, warps).counters["wgmma"] > 0


@pytest.mark.parametrize("stages", [1, 3])
def test_ragged_sizes(stages):
    tile = (64, 64, 64)
    judge(compile_matmul(tile, 4, stages=stages), (80, 96, 208), tile, 4, seeds=8)


def test_narrow_pieces():
    """What cp.async cannot copy is stored by the threads, and fenced."""
    tile = (64, 32, 64)
    kernel = compile_matmul(tile, 4, pointer=1)
    assert "cp.async.c" not in kernel.ptx and "complete_tx" not in kernel.ptx and "fence.proxy.async" in kernel.ptx
    judge(kernel, (64, 32, 128), tile, 4)


@pytest.mark.parametrize("order", ["nn", "tn", "tt"])
def test_operands_that_lie_the_other_way(order):
    """No descriptor turns elements of 8 bits: instructions of single warps take them."""
    tile = (64, 32, 64)
    kernel = compile_matmul(tile, 4, order=order)
    assert "wgmma" not in kernel.ptx and "mma.sync" in kernel.ptx
    judge(kernel, (64, 32, 128), tile, 4, order=order, seeds=1)


@weft.jit
def chained(q, k, v, out, BM: wl.constexpr, BN: wl.constexpr, D: wl.constexpr):
    """(q kᵀ >> 9) v, v given with its tokens along the second axis."""
    m, n, d = wl.arange(0, BM), wl.arange(0, BN), wl.arange(0, D)
    scores = wl.dot(wl.load(q + m[:, None] * D + d[None, :]), wl.load(k + n[None, :] * D + d[:, None]))
    weights = (scores >> 9).to(wl.int8)
    sums = wl.dot(weights, wl.load(v + d[None, :] * BN + n[:, None]))
    wl.store(out + m[:, None] * D + d[None, :], sums)


def test_operands_that_are_computed():
    BM, BN, D = 64, 64, 32
    text = f"q:*i8:16, k:*i8:16, v:*i8:16, out:*i32:16, BM={BM}, BN={BN}, D={D}"
    kernel = chained.compile(text, target=TARGET, num_warps=4)
    assert kernel.ptx.count("wgmma.mma_async") == 1 + 2 and "mma.sync" not in kernel.ptx
    draw = random_integers()
    q, k, v = draw(BM, D), draw(BN, D), draw(D, BN)
    wide = [each.astype(np.int64) for each in (q, k, v)]
    wanted = ((wide[0] @ wide[1].T) >> 9).astype(np.int8).astype(np.int64) @ wide[2].T
    for seed in range(8):
        out = np.full((BM, D), -(2**31), np.int32)
        report = weft.simulator.launch(
            kernel.ptx, kernel.name, (1,), (128,), [q, k, v, out], shared=kernel.shared_bytes, seed=seed
        )
        assert report.findings == []
        np.testing.assert_array_equal(out, wanted)


def test_instructions_and_bytes():
    """128 × 256 × 128 on 8 warps is 4 instructions for each warpgroup, which read their rows of A and all of B."""
    tile = (128, 256, 128)
    counters = judge(compile_matmul(tile, 8, exact=True), tile, tile, 8, seeds=1).counters
    assert counters["wgmma"] == 2 * 4
    assert counters["mma_macs"] == math.prod(tile)
    assert counters["wgmma_shared_bytes"] == 2 * (64 + 256) * 128
    # Sums of 32 bits go by pairs into the tile that leaves as boxes: two rows meet in each bank.
    assert counters["shared_wavefronts"] == counters["shared_wavefronts_ideal"] + 8 * 64 * 2


@needs_ptxas
def test_the_loop_of_a_matmul():
    kernel = compile_matmul((128, 256, 128), 8, exact=True)
    found = assemble(kernel.ptx, TARGET)
    assert (found.spill_store_bytes, found.spill_load_bytes) == (0, 0)
    (loop,) = (each for each in loops_of(kernel.ptx, TARGET)[kernel.name] if each.matrix)
    assert (loop.matrix, loop.classes["IGMMA"]) == (4, 4)
    assert loop.count <= 76, loop.classes
