# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Kernels that Triton compiles for sm_90a when the tests run, with TMA and wgmma: right against float64, no finding."""

from __future__ import annotations

import re

import numpy as np
import pytest
import weft.simulator as simulator

triton = pytest.importorskip("triton", reason="no Triton on this machine")
import triton.language as tl  # noqa: E402
from triton.backends.compiler import GPUTarget  # noqa: E402
from triton.compiler import ASTSource  # noqa: E402


@triton.jit
def matmul(a_desc, b_desc, c_desc, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    row, column = tl.program_id(0) * BM, tl.program_id(1) * BN
    sums = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(0, K, BK):
        sums = tl.dot(a_desc.load([row, k]), b_desc.load([k, column]), sums)
    c_desc.store([row, column], sums.to(tl.float16))


@triton.jit
def matmul_of_pointers(
    a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, SPECIALIZED: tl.constexpr
):
    a_desc = tl.make_tensor_descriptor(a, [M, K], [K, 1], [BM, BK])
    b_desc = tl.make_tensor_descriptor(b, [K, N], [N, 1], [BK, BN])
    c_desc = tl.make_tensor_descriptor(c, [M, N], [N, 1], [BM, BN])
    row, column = tl.program_id(0) * BM, tl.program_id(1) * BN
    sums = tl.zeros((BM, BN), dtype=tl.float32)
    for k in tl.range(0, K, BK, warp_specialize=SPECIALIZED):
        sums = tl.dot(a_desc.load([row, k]), b_desc.load([k, column]), sums)
    c_desc.store([row, column], sums.to(tl.float16))


@triton.jit
def matmul_of_bytes(a_desc, b_desc, c_desc, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    row, column = tl.program_id(0) * BM, tl.program_id(1) * BN
    sums = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(0, K, BK):
        sums = tl.dot(a_desc.load([row, k]), b_desc.load([column, k]).T, sums)
    c_desc.store([row, column], sums)


@triton.jit
def attention(
    q_desc, k_desc, v_desc, o_desc, N, scale, BM: tl.constexpr, BN: tl.constexpr, D: tl.constexpr, CAUSAL: tl.constexpr
):
    start, base = tl.program_id(0) * BM, tl.program_id(1) * N
    q = q_desc.load([base + start, 0])
    most = tl.full((BM,), float("-inf"), tl.float32)
    sums = tl.zeros((BM,), tl.float32)
    result = tl.zeros((BM, D), tl.float32)
    rows = start + tl.arange(0, BM)
    for j in range(0, start + BM if CAUSAL else N, BN):
        s = tl.dot(q, k_desc.load([base + j, 0]).T) * scale
        if CAUSAL:
            s = tl.where(rows[:, None] >= (j + tl.arange(0, BN))[None, :], s, float("-inf"))
        new = tl.maximum(most, tl.max(s, 1))
        p = tl.exp2(s - new[:, None])
        shrink = tl.exp2(most - new)
        sums = sums * shrink + tl.sum(p, 1)
        result = tl.dot(p.to(tl.bfloat16), v_desc.load([base + j, 0]), result * shrink[:, None])
        most = new
    o_desc.store([base + start, 0], (result / sums[:, None]).to(tl.bfloat16))


def compile_for_hopper(function, types: dict[str, str], constants: dict[str, object], divisible=(), **options):
    signature = {name: types.get(name, "constexpr") for name in function.arg_names}
    numbered = {(function.arg_names.index(name),): value for name, value in constants.items()}
    attributes = {(function.arg_names.index(name),): [["tt.divisibility", 16]] for name in divisible}
    source = ASTSource(function, signature, numbered, attributes)
    return triton.compile(source, target=GPUTarget("cuda", 90, 32), options=options)


def described(array: np.ndarray, meta: dict, dtype: str | None = None) -> list:
    """The parameters that a tensor descriptor of Triton becomes: a map, the shape and the strides."""
    span = {0: None, 1: "32B", 2: "64B", 3: "128B"}[meta["swizzle"]]
    mapped = simulator.tensor_map(array, meta["block_size"], span, dtype)
    return [mapped, *map(np.int32, array.shape), *(np.int64(stride // array.itemsize) for stride in array.strides)]


def run(compiled, ptx: str, grid, args, seed, **options) -> simulator.Report:
    """A launch of a text of a compiled kernel; blocks of a cluster lie along the grid's first axis."""
    meta = compiled.metadata
    count = len(re.findall(r"\.param", re.search(r"\.entry\s+\w+\s*\((.*?)\)", ptx, re.S).group(1)))
    grid = (grid[0] * meta.num_ctas, *grid[1:])
    scratch = np.zeros(max(1, int(np.prod(grid)) * meta.global_scratch_size), np.uint8)
    args = [*args, *[scratch, np.uint64(0)][: count - len(args)]]  # what Triton adds
    return simulator.launch(ptx, meta.name, grid, 32 * meta.num_warps, args, shared=meta.shared, seed=seed, **options)


def launch(compiled, grid, args, seed) -> simulator.Report:
    report = run(compiled, compiled.asm["ptx"], grid, args, seed)
    assert not report.findings, [str(finding) for finding in report.findings]
    return report


@pytest.mark.parametrize(("rows", "columns", "k"), [(128, 128, 192), (100, 72, 136)], ids=["whole", "ragged"])
@pytest.mark.parametrize(("tile", "warps", "stages"), [((64, 64, 64), 4, 3), ((128, 128, 32), 8, 2)])
def test_matmul(rows, columns, k, tile, warps, stages):
    bm, bn, bk = tile
    types = {
        name: f"tensordesc<fp16[{a},{b}]>"
        for name, a, b in (("a_desc", bm, bk), ("b_desc", bk, bn), ("c_desc", bm, bn))
    }
    compiled = compile_for_hopper(
        matmul, {**types, "K": "i32"}, {"BM": bm, "BN": bn, "BK": bk}, num_warps=warps, num_stages=stages
    )
    assert "wgmma.mma_async" in compiled.asm["ptx"] and "cp.async.bulk.tensor" in compiled.asm["ptx"]
    random = np.random.default_rng(rows)
    a, b = random.standard_normal((rows, k)).astype(np.float16), random.standard_normal((k, columns)).astype(np.float16)
    expected = a.astype(np.float64) @ b.astype(np.float64)
    for seed in (0, 3):
        c = np.full((rows, columns), np.nan, np.float16)
        args = [
            part
            for array, meta in zip((a, b, c), compiled.metadata.tensordesc_meta, strict=True)
            for part in described(array, meta)
        ]
        grid = (-(-rows // bm), -(-columns // bn))
        report = launch(compiled, grid, [*args, np.int32(k)], seed)
        np.testing.assert_allclose(c, expected, rtol=2**-10, atol=1e-2)
        assert report.counters["mma_macs"] == grid[0] * bm * grid[1] * bn * (-(-k // bk) * bk)


@pytest.mark.parametrize(("ctas", "specialized"), [(1, False), (1, True), (2, False)], ids=["one", "roles", "cluster"])
def test_matmul_whose_maps_the_kernel_makes(ctas, specialized):
    types = dict.fromkeys("abc", "*fp16") | dict.fromkeys("MNK", "i32")
    constants = {"BM": 128, "BN": 128, "BK": 64, "SPECIALIZED": specialized}
    compiled = compile_for_hopper(
        matmul_of_pointers, types, constants, divisible="abcNK", num_warps=4, num_ctas=ctas, num_stages=3
    )
    ptx = compiled.asm["ptx"]
    assert "tensormap.cp_fenceproxy" in ptx and "fence.proxy.tensormap::generic.acquire" in ptx
    assert ("setmaxnreg" in ptx) == specialized and ("barrier.cluster.arrive" in ptx) == (ctas == 2)
    rows, columns, k = 130, 144, 208
    random = np.random.default_rng(ctas)
    a, b = random.standard_normal((rows, k)).astype(np.float16), random.standard_normal((k, columns)).astype(np.float16)
    expected = a.astype(np.float64) @ b.astype(np.float64)
    for seed in (0, 3):
        c = np.full((rows, columns), np.nan, np.float16)
        sizes = [np.int32(rows), np.int32(columns), np.int32(k)]
        report = launch(compiled, (2, 2), [a, b, c, *sizes], seed)
        np.testing.assert_allclose(c, expected, rtol=2**-10, atol=1e-2)
        assert report.counters["ring_waits_full"] <= report.counters["ring_waits"]
        assert (report.counters["cluster_barriers"] > 0) == (ctas == 2)


#: The numbers of e4m3, by their bits.
E4M3 = np.array(
    [
        (1 - 2 * (bits >> 7)) * (2.0 ** max((bits >> 3 & 15) - 7, -6)) * ((bits & 7) / 8 + ((bits >> 3 & 15) > 0))
        for bits in range(256)
    ]
)


def test_matmul_of_e4m3():
    bm, bn, bk, k = 64, 64, 128, 256
    types = {"a_desc": f"tensordesc<fp8e4nv[{bm},{bk}]>", "b_desc": f"tensordesc<fp8e4nv[{bn},{bk}]>"}
    types |= {"c_desc": f"tensordesc<fp32[{bm},{bn}]>", "K": "i32"}
    compiled = compile_for_hopper(matmul_of_bytes, types, {"BM": bm, "BN": bn, "BK": bk}, num_warps=4, num_stages=2)
    assert "wgmma.mma_async.sync.aligned.m64n64k32.f32.e4m3.e4m3" in compiled.asm["ptx"]
    random = np.random.default_rng(4)
    a, b = (random.integers(0, 0x60, (64, k), np.uint8) | random.integers(0, 2, (64, k), np.uint8) << 7 for _ in "ab")
    expected = E4M3[a] @ E4M3[b].T
    for seed in (0, 3):
        c = np.full((64, 64), np.nan, np.float32)
        metas = compiled.metadata.tensordesc_meta
        args = [part for array, meta in zip((a, b, c), metas, strict=True) for part in described(array, meta)]
        launch(compiled, (1, 1), [*args, np.int32(k)], seed)
        np.testing.assert_allclose(c, expected, rtol=2**-10, atol=2**-8 * np.abs(expected).max())


def to_bf16(array: np.ndarray) -> np.ndarray:
    return ((array.astype(np.float32).view(np.uint32) + 0x8000) >> 16).astype(np.uint16)


def from_bf16(bits: np.ndarray) -> np.ndarray:
    return (bits.astype(np.uint32) << 16).view(np.float32).astype(np.float64)


@pytest.mark.parametrize(("bm", "bn", "d", "causal", "warps"), [(64, 64, 64, False, 4), (128, 64, 128, True, 8)])
def test_attention(bm, bn, d, causal, warps):
    heads, n = 2, 256
    scale = 1 / np.sqrt(d)
    types = {f"{x}_desc": f"tensordesc<bf16[{bm if x in 'qo' else bn},{d}]>" for x in "qkvo"}
    constants = {"BM": bm, "BN": bn, "D": d, "CAUSAL": causal}
    compiled = compile_for_hopper(
        attention, {**types, "N": "i32", "scale": "fp32"}, constants, num_warps=warps, num_stages=2
    )
    random = np.random.default_rng(d)
    q, k, v = (to_bf16(random.standard_normal((heads * n, d))) for _ in range(3))
    wide = [from_bf16(x).reshape(heads, n, d) for x in (q, k, v)]
    scores = wide[0] @ wide[1].transpose(0, 2, 1) * scale
    if causal:
        scores = np.where(np.tril(np.ones((n, n))) > 0, scores, -np.inf)
    p = np.exp(scores - scores.max(-1, keepdims=True))
    expected = p / p.sum(-1, keepdims=True) @ wide[2]
    for seed in (0, 3):
        o = np.full((heads * n, d), 0x7FC0, np.uint16)
        meta = compiled.metadata.tensordesc_meta
        args = [part for array, each in zip((q, k, v, o), meta, strict=True) for part in described(array, each, "bf16")]
        launch(compiled, (n // bm, heads), [*args, np.int32(n), np.float32(scale * np.log2(np.e))], seed)
        np.testing.assert_allclose(from_bf16(o).reshape(heads, n, d), expected, atol=2e-2)
