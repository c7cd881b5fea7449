# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Kernels that Triton compiles for sm_90a when the tests run, with TMA and wgmma: right against float64, no finding."""

from __future__ import annotations

import functools

import numpy as np
import pytest

boxes = pytest.importorskip("triton_boxes", reason="no Triton on this machine")
from triton_boxes import (  # noqa: E402
    E4M3,
    attended,
    attention,
    described,
    from_bf16,
    launch,
    matmul,
    matmul_of_bytes,
    matmul_of_pointers,
    to_bf16,
)

compile_for_hopper = functools.partial(boxes.compile_for, 90)


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
    expected = attended(*(from_bf16(x).reshape(heads, n, d) for x in (q, k, v)), scale, causal)
    for seed in (0, 3):
        o = np.full((heads * n, d), 0x7FC0, np.uint16)
        meta = compiled.metadata.tensordesc_meta
        args = [part for array, each in zip((q, k, v, o), meta, strict=True) for part in described(array, each, "bf16")]
        launch(compiled, (n // bm, heads), [*args, np.int32(n), np.float32(scale * np.log2(np.e))], seed)
        np.testing.assert_allclose(from_bf16(o).reshape(heads, n, d), expected, atol=2e-2)
