# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Triton's kernels that copy boxes, compiled for a target when the tests run, and how they are launched."""

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


def compile_for(
    capability: int, function, types: dict[str, str], constants: dict[str, object], divisible=(), **options
):
    signature = {name: types.get(name, "constexpr") for name in function.arg_names}
    numbered = {(function.arg_names.index(name),): value for name, value in constants.items()}
    attributes = {(function.arg_names.index(name),): [["tt.divisibility", 16]] for name in divisible}
    source = ASTSource(function, signature, numbered, attributes)
    return triton.compile(source, target=GPUTarget("cuda", capability, 32), options=options)


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


#: The numbers of e4m3, by their bits.
E4M3 = np.array(
    [
        (1 - 2 * (bits >> 7)) * (2.0 ** max((bits >> 3 & 15) - 7, -6)) * ((bits & 7) / 8 + ((bits >> 3 & 15) > 0))
        for bits in range(256)
    ]
)


def to_bf16(array: np.ndarray) -> np.ndarray:
    return ((array.astype(np.float32).view(np.uint32) + 0x8000) >> 16).astype(np.uint16)


def from_bf16(bits: np.ndarray) -> np.ndarray:
    return (bits.astype(np.uint32) << 16).view(np.float32).astype(np.float64)


def attended(q: np.ndarray, k: np.ndarray, v: np.ndarray, scale: float, causal: bool) -> np.ndarray:
    """Attention of heads [heads, length, channels] in float64."""
    scores = q @ k.transpose(0, 2, 1) * scale
    if causal:
        scores = np.where(np.tril(np.ones(scores.shape[-2:])) > 0, scores, -np.inf)
    p = np.exp(scores - scores.max(-1, keepdims=True))
    return p / p.sum(-1, keepdims=True) @ v
