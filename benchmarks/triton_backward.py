# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""The backward of flash attention written for Triton, in the structure of its fused-attention tutorial:

One program first makes dk and dv of a block of keys, walking the queries in small steps, then dq of the block of
queries with the same number, walking the keys; scores in base 2 of keys that were multiplied with the scale before; on
the diagonal, steps of half the size. The peer that Weft's backward is held against; compiled without a GPU, run on the
simulator. Lengths are multiples of the blocks, strides those of contiguous [B, H, N, D] tensors.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

LN_2 = tl.constexpr(0.6931471824645996)


@triton.jit
def delta_kernel(out, grad, delta, N, BLOCK: tl.constexpr, D: tl.constexpr):
    rows = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    batch_head = tl.program_id(1)
    channels = tl.arange(0, D)
    at = batch_head * D * N + rows[:, None] * D + channels[None, :]
    o = tl.load(out + at)
    g = tl.load(grad + at).to(tl.float32)
    tl.store(delta + batch_head * N + rows, tl.sum(o * g, axis=1))


@triton.jit
def keys_walk(
    dk, dv, q, k, v, scale, grad, lse, delta, stride_row, stride_channel, BLOCK_Q: tl.constexpr, BLOCK_K: tl.constexpr,
    D: tl.constexpr, first_key, first_query, steps, MASK: tl.constexpr,
):  # fmt: skip
    queries = first_query + tl.arange(0, BLOCK_Q)
    keys = first_key + tl.arange(0, BLOCK_K)
    channels = tl.arange(0, D)
    q_t_ptrs = q + queries[None, :] * stride_row + channels[:, None] * stride_channel
    grad_ptrs = grad + queries[:, None] * stride_row + channels[None, :] * stride_channel
    tl.static_assert(BLOCK_K % BLOCK_Q == 0)
    now = first_query
    for _ in range(steps):
        q_t = tl.load(q_t_ptrs)
        queries = now + tl.arange(0, BLOCK_Q)
        shift = tl.load(lse + queries)
        scores_t = tl.dot(k, q_t)
        weights_t = tl.math.exp2(scores_t - shift[None, :])
        if MASK:
            weights_t = tl.where(queries[None, :] >= keys[:, None], weights_t, 0.0)
        g = tl.load(grad_ptrs)
        dv += tl.dot(weights_t.to(tl.float16), g)
        row_delta = tl.load(delta + queries)
        d_weights_t = tl.dot(v, tl.trans(g)).to(tl.float32)
        d_scores_t = (weights_t * (d_weights_t - row_delta[None, :])).to(tl.float16)
        dk += tl.dot(d_scores_t, tl.trans(q_t))
        now += BLOCK_Q
        q_t_ptrs += BLOCK_Q * stride_row
        grad_ptrs += BLOCK_Q * stride_row
    return dk, dv


@triton.jit
def queries_walk(
    dq, q, k, v, grad, shift, delta, stride_row, stride_channel, BLOCK_Q: tl.constexpr, BLOCK_K: tl.constexpr,
    D: tl.constexpr, first_query, first_key, steps, MASK: tl.constexpr,
):  # fmt: skip
    queries = first_query + tl.arange(0, BLOCK_Q)
    keys = first_key + tl.arange(0, BLOCK_K)
    channels = tl.arange(0, D)
    k_t_ptrs = k + keys[None, :] * stride_row + channels[:, None] * stride_channel
    v_t_ptrs = v + keys[None, :] * stride_row + channels[:, None] * stride_channel
    row_delta = tl.load(delta + queries)
    tl.static_assert(BLOCK_Q % BLOCK_K == 0)
    now = first_key
    for _ in range(steps):
        k_t = tl.load(k_t_ptrs)
        v_t = tl.load(v_t_ptrs)
        weights = tl.math.exp2(tl.dot(q, k_t) - shift)
        if MASK:
            keys = now + tl.arange(0, BLOCK_K)
            weights = tl.where(queries[:, None] >= keys[None, :], weights, 0.0)
        d_weights = tl.dot(grad, v_t).to(tl.float32)
        d_scores = (weights * (d_weights - row_delta[:, None])).to(tl.float16)
        dq += tl.dot(d_scores, tl.trans(k_t))
        now += BLOCK_K
        k_t_ptrs += BLOCK_K * stride_row
        v_t_ptrs += BLOCK_K * stride_row
    return dq


@triton.jit
def backward_kernel(
    q, k, v, scale, grad, dq_out, dk_out, dv_out, lse, delta, stride_batch, stride_head, stride_row, stride_channel,
    heads, N, STEP_Q: tl.constexpr, BLOCK_K: tl.constexpr, BLOCK_Q: tl.constexpr, STEP_K: tl.constexpr,
    SLICES: tl.constexpr, D: tl.constexpr, CAUSAL: tl.constexpr,
):  # fmt: skip
    batch_head = tl.program_id(2)
    offset = (stride_head * (batch_head % heads) + stride_batch * (batch_head // heads)).to(tl.int64)
    block = tl.program_id(0)
    q += offset
    k += offset
    v += offset
    grad += offset
    dq_out += offset
    dk_out += offset
    dv_out += offset
    lse += (batch_head * N).to(tl.int64)
    delta += (batch_head * N).to(tl.int64)
    channels = tl.arange(0, D)

    first_key = block * BLOCK_K
    first_query = 0
    diagonal_q: tl.constexpr = STEP_Q // SLICES
    keys = first_key + tl.arange(0, BLOCK_K)
    at = keys[:, None] * stride_row + channels[None, :] * stride_channel
    dv = tl.zeros([BLOCK_K, D], dtype=tl.float32)
    dk = tl.zeros([BLOCK_K, D], dtype=tl.float32)
    k_tile = tl.load(k + at)
    v_tile = tl.load(v + at)
    if CAUSAL:
        first_query = first_key
        steps = BLOCK_K // diagonal_q
        dk, dv = keys_walk(dk, dv, q, k_tile, v_tile, scale, grad, lse, delta, stride_row, stride_channel,
                           diagonal_q, BLOCK_K, D, first_key, first_query, steps, MASK=True)  # fmt: skip
        first_query += steps * diagonal_q
    steps = (N - first_query) // STEP_Q
    dk, dv = keys_walk(dk, dv, q, k_tile, v_tile, scale, grad, lse, delta, stride_row, stride_channel,
                       STEP_Q, BLOCK_K, D, first_key, first_query, steps, MASK=False)  # fmt: skip
    tl.store(dv_out + at, dv)
    tl.store(dk_out + at, dk * scale)

    first_query = block * BLOCK_Q
    first_key = 0
    steps = N // STEP_K
    diagonal_k: tl.constexpr = STEP_K // SLICES
    queries = first_query + tl.arange(0, BLOCK_Q)
    at = queries[:, None] * stride_row + channels[None, :] * stride_channel
    q_tile = tl.load(q + at)
    dq = tl.zeros([BLOCK_Q, D], dtype=tl.float32)
    g_tile = tl.load(grad + at)
    shift = tl.load(lse + queries)[:, None]
    if CAUSAL:
        end = first_query + BLOCK_Q
        steps = BLOCK_Q // diagonal_k
        dq = queries_walk(dq, q_tile, k, v, g_tile, shift, delta, stride_row, stride_channel,
                          BLOCK_Q, diagonal_k, D, first_query, end - steps * diagonal_k, steps, MASK=True)  # fmt: skip
        end -= steps * diagonal_k
        steps = end // STEP_K
        first_key = end - steps * STEP_K
    dq = queries_walk(dq, q_tile, k, v, g_tile, shift, delta, stride_row, stride_channel,
                      BLOCK_Q, STEP_K, D, first_query, first_key, steps, MASK=False)  # fmt: skip
    dq *= LN_2
    tl.store(dq_out + at, dq)


@dataclass(frozen=True)
class Compiled:
    """A kernel as Triton made it for sm_80."""

    ptx: str
    name: str
    shared_bytes: int
    parameters: int
    """how many the entry has: Triton adds scratch buffers of its own"""


def compile_kernel(kernel, types: dict[str, str], constants: dict[str, object], *, warps: int, stages: int) -> Compiled:
    """Compile for sm_80; all pointers, and the integers but `heads` and a stride of 1, are multiples of 16."""
    names = kernel.arg_names
    aligned = [name for name, kind in types.items() if kind.startswith("*") or (kind == "i32" and name != "heads")]
    source = ASTSource(
        kernel,
        {name: types.get(name, "constexpr") for name in names},
        {(names.index(name),): value for name, value in constants.items()},
        {(names.index(name),): [["tt.divisibility", 16]] for name in aligned},
    )
    made = triton.compile(source, target=GPUTarget("cuda", 80, 32), options={"num_warps": warps, "num_stages": stages})
    ptx = made.asm["ptx"]
    entry = re.search(r"\.entry\s+\w+\s*\((.*?)\)", ptx, re.S)
    assert entry, "expected an entry in Triton's PTX"
    return Compiled(ptx, made.metadata.name, made.metadata.shared, len(re.findall(r"\.param", entry.group(1))))


@dataclass(frozen=True)
class Tiling:
    """Rows that a program holds, rows of a step along the other side, warps, stages."""

    block: int
    step: int
    warps: int
    stages: int

    def __str__(self) -> str:
        return f"{self.block}x{self.step}x{self.warps}x{self.stages}"


#: the tutorial's own first; what shared memory cannot hold is left out by who measures them
TILINGS = tuple(
    Tiling(block, step, warps, stages)
    for block, step, warps in (
        (128, 32, 4), (128, 32, 8), (128, 64, 8), (128, 64, 4), (128, 16, 4), (64, 32, 4), (64, 64, 4), (64, 64, 8),
        (64, 16, 4),
    )
    for stages in (3, 2)
)  # fmt: skip


def backward(D: int, causal: bool, tiling: Tiling) -> Compiled:
    """Blocks of keys by steps of queries, then as many queries by steps of keys."""
    pointers = ("q", "k", "v", "grad", "dq_out", "dk_out", "dv_out")
    types = dict.fromkeys(pointers, "*fp16") | {"lse": "*fp32", "delta": "*fp32", "scale": "fp32"}
    types |= dict.fromkeys(("stride_batch", "stride_head", "stride_row", "heads", "N"), "i32")
    sizes = {"STEP_Q": tiling.step, "STEP_K": tiling.step, "BLOCK_Q": tiling.block, "BLOCK_K": tiling.block}
    slices = 2 if tiling.step >= 32 else 1  # steps of a product are 16 at least
    constants = sizes | {"SLICES": slices, "D": D, "CAUSAL": causal, "stride_channel": 1}
    return compile_kernel(backward_kernel, types, constants, warps=tiling.warps, stages=tiling.stages)


def delta(D: int) -> Compiled:
    """The kernel before it: row sums of out ⊙ d_out."""
    types = {"out": "*fp16", "grad": "*fp16", "delta": "*fp32", "N": "i32"}
    return compile_kernel(delta_kernel, types, {"BLOCK": 128, "D": D}, warps=4, stages=3)
