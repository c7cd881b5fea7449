# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Products of matrices: tilings, transpositions, orders of programs, epilogues."""

import torch
import triton
import triton.language as tl
from torch.nn import functional

from . import Case, case, poisoned


@triton.jit
def tile_of_program(pid, M, N, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, GROUP: tl.constexpr):
    tiles_m = tl.cdiv(M, BLOCK_M)
    tiles_n = tl.cdiv(N, BLOCK_N)
    group = pid // (GROUP * tiles_n)
    first = group * GROUP
    rows = min(tiles_m - first, GROUP)
    return first + (pid % (GROUP * tiles_n)) % rows, (pid % (GROUP * tiles_n)) // rows


@triton.jit
def matmul_kernel(
    a, b, c, bias, M, N, K, am, ak, bk, bn, cm,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP: tl.constexpr, WRAP: tl.constexpr,
    EPILOGUE: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    tile_m, tile_n = tile_of_program(tl.program_id(0), M, N, BLOCK_M, BLOCK_N, GROUP)
    rows = tile_m * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = tile_n * BLOCK_N + tl.arange(0, BLOCK_N)
    a_rows = rows % M if WRAP else rows
    b_columns = columns % N if WRAP else columns
    inner = tl.arange(0, BLOCK_K)
    a_at = a + a_rows[:, None] * am + inner[None, :] * ak
    b_at = b + inner[:, None] * bk + b_columns[None, :] * bn
    total = tl.zeros([BLOCK_M, BLOCK_N], tl.float32)
    for k in range(0, tl.cdiv(K, BLOCK_K)):
        a_mask, b_mask = inner[None, :] < K - k * BLOCK_K, inner[:, None] < K - k * BLOCK_K
        a_tile = tl.load(a_at, mask=a_mask, other=0.0)
        b_tile = tl.load(b_at, mask=b_mask, other=0.0)
        total = tl.dot(a_tile, b_tile, total, input_precision=PRECISION)
        a_at += BLOCK_K * ak
        b_at += BLOCK_K * bk
    if EPILOGUE == "bias gelu":
        total += tl.load(bias + columns, mask=columns < N, other=0.0)[None, :].to(tl.float32)
        total = 0.5 * total * (1.0 + tl.erf(total * 0.7071067811865476))
    mask = (rows[:, None] < M) & (columns[None, :] < N)
    tl.store(c + rows[:, None] * cm + columns[None, :], total.to(c.dtype.element_ty), mask=mask)


TILINGS = {
    "128x256x64": (128, 256, 64, 8, 3),
    "64x256x32": (64, 256, 32, 4, 4),
    "128x128x32": (128, 128, 32, 4, 4),
    "128x128x64": (128, 128, 64, 8, 3),
    "128x64x32": (128, 64, 32, 4, 4),
    "64x128x32": (64, 128, 32, 4, 4),
    "128x32x32": (128, 32, 32, 4, 4),
    "64x32x32": (64, 32, 32, 2, 5),
    "64x64x64": (64, 64, 64, 4, 3),
    "16x64x128": (16, 64, 128, 2, 4),
}


def matmul(
    tiling="128x128x32", order="NN", *, dtype=torch.float16, to=None, M=256, N=256, K=256, group=4, wrap=True,
    epilogue="", precision="ieee", tolerance=None,
):  # fmt: skip
    BM, BN, BK, warps, stages = TILINGS[tiling]
    a, b, bias = torch.randn(M, K).to(dtype), torch.randn(K, N).to(dtype), torch.randn(N).to(dtype)
    given_a = a if order[0] == "N" else a.T.contiguous().T
    given_b = b if order[1] == "N" else b.T.contiguous().T
    out = poisoned(M, N, dtype=to or dtype)
    exact = a.double() @ b.double()
    if epilogue:
        exact = functional.gelu(exact + bias.double())
    arguments = {"a": given_a, "b": given_b, "c": out, "bias": bias, "M": M, "N": N, "K": K}
    strides = (*given_a.stride(), *given_b.stride(), N)
    arguments |= dict(zip(("am", "ak", "bk", "bn", "cm"), strides, strict=True))
    constants = {"BLOCK_M": BM, "BLOCK_N": BN, "BLOCK_K": BK, "GROUP": group, "WRAP": wrap}
    constants |= {"EPILOGUE": epilogue, "PRECISION": precision}
    grid = (triton.cdiv(M, BM) * triton.cdiv(N, BN),)
    return Case(matmul_kernel, grid, arguments, constants, {"c": exact}, warps, stages, tolerance)


for each in TILINGS:
    case(f"matmul {each} f16", each)(matmul)
for each in ("NT", "TN", "TT"):
    case(f"matmul 128x128x32 {each} f16", "128x128x32", each)(matmul)
    case(f"matmul 128x128x64 {each} bf16", "128x128x64", each, dtype=torch.bfloat16)(matmul)
case("matmul odd sizes f16", M=200, N=168, K=136)(matmul)
case("matmul masked, not wrapped bf16", "64x64x64", wrap=False, dtype=torch.bfloat16, M=128, N=128)(matmul)
case("matmul tf32", dtype=torch.float32, precision="tf32", tolerance=2e-3)(matmul)
for each in ("64x64x64", "128x64x32", "64x32x32"):
    case(f"matmul {each} f32 by multiply-adds", each, dtype=torch.float32, tolerance=1e-5)(matmul)
for each in ("NT", "TN"):
    case(f"matmul 64x64x64 {each} f32 by multiply-adds", "64x64x64", each, dtype=torch.float32, tolerance=1e-5)(matmul)
case("matmul f32 in three tf32", "64x64x64", dtype=torch.float32, precision="tf32x3", tolerance=1e-5)(matmul)
case("matmul with bias and gelu f16", epilogue="bias gelu")(matmul)
case("matmul to f32 of bf16", "64x128x32", dtype=torch.bfloat16, to=torch.float32)(matmul)


@triton.jit
def batched_kernel(a, b, c, M, N, K, ab, bb, cb, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr):
    batch = tl.program_id(2).to(tl.int64)
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    inner = tl.arange(0, BLOCK_K)
    total = tl.zeros([BLOCK_M, BLOCK_N], tl.float32)
    for k in range(0, K, BLOCK_K):
        at = k + inner
        a_tile = tl.load(a + batch * ab + rows[:, None] * K + at[None, :], mask=at[None, :] < K, other=0.0)
        b_tile = tl.load(b + batch * bb + at[:, None] * N + columns[None, :], mask=at[:, None] < K, other=0.0)
        total += tl.dot(a_tile, b_tile)
    tl.store(c + batch * cb + rows[:, None] * N + columns[None, :], total.to(tl.bfloat16))


@case("batched matmul bf16")
def batched():
    a, b = torch.randn(3, 128, 192).bfloat16(), torch.randn(3, 192, 128).bfloat16()
    arguments = {"a": a, "b": b, "c": poisoned(3, 128, 128, dtype=a.dtype), "M": 128, "N": 128, "K": 192}
    arguments |= {"ab": 128 * 192, "bb": 192 * 128, "cb": 128 * 128}
    constants = {"BLOCK_M": 64, "BLOCK_N": 64, "BLOCK_K": 32}
    return Case(batched_kernel, (2, 2, 3), arguments, constants, {"c": a.double() @ b.double()}, 4, 4)


@triton.jit
def persistent_kernel(
    a, b, c, M, N, K, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP: tl.constexpr,
    PROGRAMS: tl.constexpr,
):  # fmt: skip
    tiles = tl.cdiv(M, BLOCK_M) * tl.cdiv(N, BLOCK_N)
    for tile in range(tl.program_id(0), tiles, PROGRAMS):
        tile_m, tile_n = tile_of_program(tile, M, N, BLOCK_M, BLOCK_N, GROUP)
        rows = tile_m * BLOCK_M + tl.arange(0, BLOCK_M)
        columns = tile_n * BLOCK_N + tl.arange(0, BLOCK_N)
        inner = tl.arange(0, BLOCK_K)
        total = tl.zeros([BLOCK_M, BLOCK_N], tl.float32)
        for k in range(0, K, BLOCK_K):
            a_tile = tl.load(a + rows[:, None] * K + (k + inner)[None, :], mask=rows[:, None] < M, other=0.0)
            b_tile = tl.load(b + (k + inner)[:, None] * N + columns[None, :], mask=columns[None, :] < N, other=0.0)
            total = tl.dot(a_tile, b_tile, total)
        mask = (rows[:, None] < M) & (columns[None, :] < N)
        tl.store(c + rows[:, None] * N + columns[None, :], total.to(tl.float16), mask=mask)


@case("persistent matmul f16")
def persistent():
    a, b = torch.randn(256, 128).half(), torch.randn(128, 320).half()
    arguments = {"a": a, "b": b, "c": poisoned(256, 320, dtype=a.dtype), "M": 256, "N": 320, "K": 128}
    constants = {"BLOCK_M": 64, "BLOCK_N": 64, "BLOCK_K": 32, "GROUP": 4, "PROGRAMS": 6}
    return Case(persistent_kernel, (6,), arguments, constants, {"c": a.double() @ b.double()}, 4, 3)


@triton.jit
def split_k_kernel(
    a, b, c, M, N, K, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, SPLIT: tl.constexpr
):
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    inner = tl.program_id(2) * BLOCK_K + tl.arange(0, BLOCK_K)
    a_at = a + rows[:, None] * K + inner[None, :]
    b_at = b + inner[:, None] * N + columns[None, :]
    total = tl.zeros([BLOCK_M, BLOCK_N], tl.float32)
    for k in range(0, tl.cdiv(K, BLOCK_K * SPLIT)):
        left = K - k * BLOCK_K * SPLIT
        a_tile = tl.load(a_at, mask=inner[None, :] < left, other=0.0)
        b_tile = tl.load(b_at, mask=inner[:, None] < left, other=0.0)
        total = tl.dot(a_tile, b_tile, total)
        a_at += BLOCK_K * SPLIT
        b_at += BLOCK_K * SPLIT * N
    tl.atomic_add(c + rows[:, None] * N + columns[None, :], total, sem="relaxed")


@case("matmul split along K f16")
def split_k():
    a, b = torch.randn(64, 1024).half(), torch.randn(1024, 128).half()
    arguments = {"a": a, "b": b, "c": torch.zeros(64, 128), "M": 64, "N": 128, "K": 1024}
    constants = {"BLOCK_M": 64, "BLOCK_N": 64, "BLOCK_K": 64, "SPLIT": 4}
    return Case(split_k_kernel, (1, 2, 4), arguments, constants, {"c": a.double() @ b.double()}, 4, 3, 1e-5)
