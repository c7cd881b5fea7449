# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Kernels that Triton compiles for sm_100a when the tests run, with tcgen05: right against float64, no finding."""

from __future__ import annotations

import re

import numpy as np
import pytest
import weft.simulator as simulator

boxes = pytest.importorskip("triton_boxes", reason="no Triton on this machine")
import triton  # noqa: E402
import triton.language as tl  # noqa: E402
from corpus import triton_kernels  # noqa: E402
from triton_boxes import E4M3, attended, compile_for, described, from_bf16, run, to_bf16  # noqa: E402


@triton.jit
def persistent(
    a_desc, b_desc, c_desc, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
    FLATTEN: tl.constexpr, SPECIALIZED: tl.constexpr,
):  # fmt: skip
    columns = tl.cdiv(N, BN)
    for tile in tl.range(
        tl.program_id(0), tl.cdiv(M, BM) * columns, tl.num_programs(0), flatten=FLATTEN, warp_specialize=SPECIALIZED
    ):
        row, column = tile // columns * BM, tile % columns * BN
        sums = tl.zeros((BM, BN), dtype=tl.float32)
        for k in range(0, K, BK):
            sums = tl.dot(a_desc.load([row, k]), b_desc.load([k, column]), sums)
        c_desc.store([row, column], sums.to(tl.float16))


@triton.jit
def scaled_matmul(
    a, b, a_scales, b_scales, c, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, A: tl.constexpr, B: tl.constexpr,
    A_PACKED: tl.constexpr, B_PACKED: tl.constexpr,
):  # fmt: skip
    m, n, scales = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K // 32)
    left = tl.load(a + m[:, None] * (K // A_PACKED) + tl.arange(0, K // A_PACKED)[None, :])
    right = tl.load(b + n[None, :] * (K // B_PACKED) + tl.arange(0, K // B_PACKED)[:, None])
    left_scales = tl.load(a_scales + m[:, None] * (K // 32) + scales[None, :])
    right_scales = tl.load(b_scales + n[:, None] * (K // 32) + scales[None, :])
    tl.store(c + m[:, None] * N + n[None, :], tl.dot_scaled(left, left_scales, A, right, right_scales, B))


def launch(compiled, grid, args, seed) -> simulator.Report:
    """What is advised is that Triton leaves out fences where mbarriers and barriers order threads."""
    assert re.search(r"tcgen05\.mma", compiled.asm["ptx"]) and ".target sm_100a" in compiled.asm["ptx"]
    report = run(compiled, compiled.asm["ptx"], grid, args, seed)
    assert not report.findings, [str(finding) for finding in report.findings]
    advised = [str(each) for each in report.advisories if each.kind == "tensor-race"]
    assert all("no tcgen05.fence lies on both sides" in each for each in advised), advised
    assert report.counters["tcgen05_mma"] > 0
    return report


def drawn(rows: int, columns: int, k: int, dtype=np.float16):
    """Two factors, and their product."""
    random = np.random.default_rng(rows)
    a, b = random.standard_normal((rows, k)).astype(dtype), random.standard_normal((k, columns)).astype(dtype)
    return a, b, a.astype(np.float64) @ b.astype(np.float64)


def boxed_types(bm: int, bn: int, bk: int) -> dict[str, str]:
    shapes = {"a_desc": (bm, bk), "b_desc": (bk, bn), "c_desc": (bm, bn)}
    return {name: f"tensordesc<fp16[{rows},{columns}]>" for name, (rows, columns) in shapes.items()}


def maps_of(compiled, *arrays, dtype=None) -> list:
    metas = compiled.metadata.tensordesc_meta
    return [part for array, meta in zip(arrays, metas, strict=True) for part in described(array, meta, dtype)]


@pytest.mark.parametrize(("rows", "columns", "k"), [(128, 128, 192), (130, 72, 136)], ids=["whole", "ragged"])
@pytest.mark.parametrize(
    ("tile", "warps", "stages"),
    [((64, 64, 64), 4, 3), ((128, 128, 64), 4, 3), ((128, 64, 32), 8, 2), ((128, 256, 64), 8, 2)],
)
def test_matmul(rows, columns, k, tile, warps, stages):
    bm, bn, bk = tile
    constants = {"BM": bm, "BN": bn, "BK": bk}
    types = {**boxed_types(*tile), "K": "i32"}
    compiled = compile_for(100, boxes.matmul, types, constants, num_warps=warps, num_stages=stages)
    a, b, expected = drawn(rows, columns, k)
    for seed in (0, 3):
        c = np.full((rows, columns), np.nan, np.float16)
        grid = (-(-rows // bm), -(-columns // bn))
        report = launch(compiled, grid, [*maps_of(compiled, a, b, c), np.int32(k)], seed)
        np.testing.assert_allclose(c, expected, rtol=2**-10, atol=1e-2)
        assert report.counters["mma_macs"] == grid[0] * bm * grid[1] * bn * (-(-k // bk) * bk)


@pytest.mark.parametrize(("ctas", "specialized"), [(1, False), (1, True), (2, False)], ids=["one", "roles", "cluster"])
def test_matmul_whose_maps_the_kernel_makes(ctas, specialized):
    types = dict.fromkeys("abc", "*fp16") | dict.fromkeys("MNK", "i32")
    constants = {"BM": 128, "BN": 128, "BK": 64, "SPECIALIZED": specialized}
    compiled = compile_for(
        100, boxes.matmul_of_pointers, types, constants, divisible="abcNK", num_warps=4, num_ctas=ctas, num_stages=3
    )
    rows, columns, k = 130, 144, 208
    a, b, expected = drawn(rows, columns, k)
    for seed in (0, 3, 4, 5):
        c = np.full((rows, columns), np.nan, np.float16)
        launch(compiled, (2, 2), [a, b, c, *map(np.int32, (rows, columns, k))], seed)
        np.testing.assert_allclose(c, expected, rtol=2**-10, atol=1e-2)


@pytest.mark.parametrize(("flatten", "specialized"), [(False, False), (True, False), (False, True), (True, True)])
def test_persistent_matmul(flatten, specialized):
    tile = bm, bn, bk = 128, 128, 64
    constants = {"BM": bm, "BN": bn, "BK": bk, "FLATTEN": flatten, "SPECIALIZED": specialized}
    types = {**boxed_types(*tile), **dict.fromkeys("MNK", "i32")}
    compiled = compile_for(100, persistent, types, constants, num_warps=4, num_stages=3)
    rows, columns, k = 300, 200, 192
    a, b, expected = drawn(rows, columns, k)
    for seed in (0, 3):
        c = np.full((rows, columns), np.nan, np.float16)
        launch(compiled, (2, 1), [*maps_of(compiled, a, b, c), *map(np.int32, (rows, columns, k))], seed)
        np.testing.assert_allclose(c, expected, rtol=2**-10, atol=1e-2)


@pytest.mark.parametrize(("dtype", "tile"), [("fp16", (128, 128, 32)), ("fp16", (64, 64, 32)), ("fp32", (128, 64, 32))])
def test_matmul_of_the_tutorial(dtype, tile):
    """Of pointers: copied by cp.async, through the generic proxy."""
    kernel = triton_kernels.matmul
    types = dict(zip(kernel.arg_names, [f"*{dtype}"] * 3 + ["i32"] * 3, strict=False))
    constants = dict(zip(("BM", "BN", "BK"), tile, strict=True))
    compiled = compile_for(100, kernel, types, constants, divisible=list(types), num_warps=4, num_stages=3)
    kind = "kind::f16" if dtype == "fp16" else "kind::tf32"
    assert "cp.async." in compiled.asm["ptx"] and kind in compiled.asm["ptx"]
    rows, columns, k = 144, 112, 96
    numbers = {"fp16": np.float16, "fp32": np.float32}[dtype]
    a, b, expected = drawn(rows, columns, k, numbers)
    for seed in (0, 3):
        c = np.full((rows, columns), np.nan, numbers)
        grid = (-(-rows // tile[0]), -(-columns // tile[1]))
        launch(compiled, grid, [a, b, c, *map(np.int32, (rows, columns, k))], seed)
        np.testing.assert_allclose(c, expected, rtol=2**-9, atol=2e-2)


@pytest.mark.parametrize("bm", [64, 128])
def test_matmul_of_e4m3(bm):
    bn, bk, k = 64, 128, 256
    types = {"a_desc": f"tensordesc<fp8e4nv[{bm},{bk}]>", "b_desc": f"tensordesc<fp8e4nv[{bn},{bk}]>"}
    types |= {"c_desc": f"tensordesc<fp32[{bm},{bn}]>", "K": "i32"}
    constants = {"BM": bm, "BN": bn, "BK": bk}
    compiled = compile_for(100, boxes.matmul_of_bytes, types, constants, num_warps=4, num_stages=2)
    assert "kind::f8f6f4" in compiled.asm["ptx"]
    random = np.random.default_rng(4)
    a, b = (
        random.integers(0, 0x60, (rows, k), np.uint8) | random.integers(0, 2, (rows, k), np.uint8) << 7
        for rows in (bm, bn)
    )
    expected = E4M3[a] @ E4M3[b].T
    for seed in (0, 3):
        c = np.full((bm, bn), np.nan, np.float32)
        launch(compiled, (1, 1), [*maps_of(compiled, a, b, c), np.int32(k)], seed)
        np.testing.assert_allclose(c, expected, rtol=1e-5, atol=1e-6 * np.abs(expected).max())


#: The numbers of e2m1, by their bits.
E2M1 = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6])


@pytest.mark.parametrize(
    ("a_type", "b_type", "kind"),
    [("e4m3", "e4m3", "mxf8f6f4"), ("e2m1", "e2m1", "mxf4"), ("e4m3", "e2m1", "mxf8f6f4")],
)
def test_scaled_matmul(a_type, b_type, kind):
    m, n, k = 128, 128, 256
    random = np.random.default_rng(3)

    def operand(name: str, rows: int):
        if name == "e2m1":
            codes = random.integers(0, 16, (rows, k))
            return E2M1[codes], (codes[:, 0::2] | codes[:, 1::2] << 4).astype(np.uint8)
        codes = random.integers(0, 0x60, (rows, k), np.uint8) | random.integers(0, 2, (rows, k), np.uint8) << 7
        return E4M3[codes], codes

    (a, a_bytes), (b, b_bytes) = operand(a_type, m), operand(b_type, n)
    scales = [random.integers(120, 134, (rows, k // 32), np.uint8) for rows in (m, n)]
    wide = [np.repeat(2.0 ** (each - 127.0), 32, 1) for each in scales]
    expected = (a * wide[0]) @ (b * wide[1]).T
    pointers = {"e2m1": "*u8", "e4m3": "*fp8e4nv"}
    types = {"a": pointers[a_type], "b": pointers[b_type], "a_scales": "*u8", "b_scales": "*u8", "c": "*fp32"}
    constants = {"M": m, "N": n, "K": k, "A": a_type, "B": b_type}
    constants |= {"A_PACKED": 1 + (a_type == "e2m1"), "B_PACKED": 1 + (b_type == "e2m1")}
    compiled = compile_for(100, scaled_matmul, types, constants, divisible=list(types), num_warps=4)
    assert f"kind::{kind}.block_scale" in compiled.asm["ptx"]
    for seed in (0, 3):
        c = np.full((m, n), np.nan, np.float32)
        launch(compiled, (1, 1), [a_bytes, b_bytes, *scales, c], seed)
        np.testing.assert_allclose(c, expected, rtol=1e-5, atol=1e-6 * np.abs(expected).max())


@pytest.mark.parametrize(
    ("bm", "bn", "d", "causal", "warps"),
    [(64, 64, 64, False, 4), (128, 64, 128, True, 8), (128, 128, 64, False, 4), (128, 64, 64, True, 4)],
)
def test_attention(bm, bn, d, causal, warps):
    heads, n = 2, 256
    scale = 1 / np.sqrt(d)
    types = {f"{x}_desc": f"tensordesc<bf16[{bm if x in 'qo' else bn},{d}]>" for x in "qkvo"}
    constants = {"BM": bm, "BN": bn, "D": d, "CAUSAL": causal}
    types |= {"N": "i32", "scale": "fp32"}
    compiled = compile_for(100, boxes.attention, types, constants, num_warps=warps, num_stages=2)
    assert re.search(r"tcgen05\.mma[\w.:]* \[[^\]]*\], \[", compiled.asm["ptx"]), "P as A in tensor memory"
    random = np.random.default_rng(d)
    q, k, v = (to_bf16(random.standard_normal((heads * n, d))) for _ in range(3))
    expected = attended(*(from_bf16(x).reshape(heads, n, d) for x in (q, k, v)), scale, causal)
    for seed in (0, 3):
        o = np.full((heads * n, d), 0x7FC0, np.uint16)
        maps = maps_of(compiled, q, k, v, o, dtype="bf16")
        launch(compiled, (n // bm, heads), [*maps, np.int32(n), np.float32(scale * np.log2(np.e))], seed)
        np.testing.assert_allclose(from_bf16(o).reshape(heads, n, d), expected, atol=2e-2)
