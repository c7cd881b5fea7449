# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Flash attention, backward, by hand:

What the compiler generates from a program (attn.attend_backward), as tile kernels that one can read. F16 and bf16, full
and causal, any lengths. Run it: python examples/05_flash_attention_backward.py
"""

import math

import torch
import weft
import weft.language as wl
from weft.testing import demonstrate, masks
from weft.testing.attention import Domain, attention

LOG2_E = wl.constexpr(1.4426950408889634)


@weft.jit
def rows_kernel(
    out, d_out, lse, minus_shift, minus_delta, stride_ob, stride_oh, stride_on, stride_gb, stride_gh, stride_gn,
    heads, N, D: wl.constexpr, BLOCK: wl.constexpr,
):  # fmt: skip
    """Two numbers of each query: -lse in base 2, and -delta, the row sum of out ⊙ d_out."""
    rows = wl.program_id(0) * BLOCK + wl.arange(0, BLOCK)
    batch_head = wl.program_id(1).to(wl.int64)
    batch, head = batch_head // heads, batch_head % heads
    channels = wl.arange(0, D)
    inside = rows[:, None] < N
    o_ptrs = out + batch * stride_ob + head * stride_oh + rows[:, None] * stride_on + channels[None, :]
    g_ptrs = d_out + batch * stride_gb + head * stride_gh + rows[:, None] * stride_gn + channels[None, :]
    o = wl.load(o_ptrs, mask=inside, other=0.0).to(wl.float32)
    g = wl.load(g_ptrs, mask=inside, other=0.0).to(wl.float32)
    wl.store(minus_delta + batch_head * N + rows, -wl.sum(o * g, 1), mask=rows < N)
    natural = wl.load(lse + batch_head * N + rows, mask=rows < N, other=0.0)
    # A row that sees no key has -inf; kept so, each of its weights is 2^-inf.
    empty = natural == -float("inf")
    wl.store(minus_shift + batch_head * N + rows, wl.where(empty, natural, natural * -LOG2_E), mask=rows < N)


@weft.jit
def walk_queries(
    dk, dv, k_tile, v_tile, q, d_out, minus_shift, minus_delta, scale_log2, stride_qn, stride_gn, keys,
    begin, end, N, M, D: wl.constexpr, CAUSAL: wl.constexpr, BLOCK_M: wl.constexpr, PARTIAL: wl.constexpr,
):  # fmt: skip
    """Adds what the queries `begin` to `end` - 1 give a block of keys. Where PARTIAL, pairs are masked."""
    columns = wl.arange(0, BLOCK_M)
    channels = wl.arange(0, D)
    q_ptrs = q + (begin + columns[:, None]) * stride_qn + channels[None, :]
    g_ptrs = d_out + (begin + columns[:, None]) * stride_gn + channels[None, :]
    shift_ptrs = minus_shift + begin + columns
    delta_ptrs = minus_delta + begin + columns
    for first in range(begin, end, BLOCK_M):
        if PARTIAL:
            inside = first + columns < N
            q_tile = wl.load(q_ptrs, mask=first + columns[:, None] < N, other=0.0)
            g_tile = wl.load(g_ptrs, mask=first + columns[:, None] < N, other=0.0)
            shift = wl.load(shift_ptrs, mask=inside, other=0.0)
            start = wl.load(delta_ptrs, mask=inside, other=0.0)
        else:
            q_tile = wl.load(q_ptrs)
            g_tile = wl.load(g_ptrs)
            shift = wl.load(shift_ptrs)
            start = wl.load(delta_ptrs)
        # Keys down, queries across: the weights and their gradients are the left operands of the products below as
        # they are, with no trip through shared memory.
        weights = wl.exp2(wl.dot(k_tile, q_tile.T) * scale_log2 + shift[None, :])
        if PARTIAL:
            allowed = (first + columns[None, :] < N) & (keys[:, None] < M)
            if CAUSAL:
                allowed = allowed & (keys[:, None] <= first + columns[None, :] + (M - N))
            weights = wl.where(allowed, weights, 0.0)
        dv = wl.dot(weights.to(k_tile.dtype), g_tile, dv)
        # The sum of the product starts at -delta.
        d_weights = wl.dot(v_tile, g_tile.T, wl.broadcast_to(start[None, :], weights.shape))
        d_scores = weights * d_weights
        dk = wl.dot(d_scores.to(k_tile.dtype), q_tile, dk)
        q_ptrs += BLOCK_M * stride_qn
        g_ptrs += BLOCK_M * stride_gn
        shift_ptrs += BLOCK_M
        delta_ptrs += BLOCK_M
    return dk, dv


@weft.jit
def keys_kernel(
    q, k, v, d_out, minus_shift, minus_delta, dk_out, dv_out, scale,
    stride_qb, stride_qh, stride_qn, stride_kb, stride_kh, stride_km, stride_vb, stride_vh, stride_vm,
    stride_gb, stride_gh, stride_gn, heads, N, M,
    D: wl.constexpr, CAUSAL: wl.constexpr, BLOCK_M: wl.constexpr, BLOCK_N: wl.constexpr,
):  # fmt: skip
    """dk and dv of a block of keys, walking the queries; dk_out and dv_out are contiguous."""
    start = wl.program_id(0) * BLOCK_N
    batch_head = wl.program_id(1).to(wl.int64)
    batch, head = batch_head // heads, batch_head % heads
    keys = start + wl.arange(0, BLOCK_N)
    channels = wl.arange(0, D)
    inside = keys[:, None] < M
    k_tile = wl.load(
        k + batch * stride_kb + head * stride_kh + keys[:, None] * stride_km + channels[None, :], mask=inside, other=0.0
    )
    v_tile = wl.load(
        v + batch * stride_vb + head * stride_vh + keys[:, None] * stride_vm + channels[None, :], mask=inside, other=0.0
    )
    q += batch * stride_qb + head * stride_qh
    d_out += batch * stride_gb + head * stride_gh
    minus_shift += batch_head * N
    minus_delta += batch_head * N
    dk = wl.zeros((BLOCK_N, D), dtype=wl.float32)
    dv = wl.zeros((BLOCK_N, D), dtype=wl.float32)
    scale_log2 = scale * LOG2_E

    # Three walks: blocks of queries on the diagonal, blocks that all keys attend from, and the ragged end.
    full = N // BLOCK_M * BLOCK_M
    if start + BLOCK_N > M:
        full = 0
    begin = 0
    diagonal = 0
    if CAUSAL:  # query n sits at n + (M - N): the first that sees key `start`, the first that sees all keys
        begin = wl.maximum(start - (M - N), 0) // BLOCK_M * BLOCK_M
        diagonal = wl.maximum(wl.cdiv(start + BLOCK_N - 1 - (M - N), BLOCK_M) * BLOCK_M, begin)
        diagonal = wl.minimum(diagonal, full)
        dk, dv = walk_queries(
            dk, dv, k_tile, v_tile, q, d_out, minus_shift, minus_delta, scale_log2, stride_qn, stride_gn, keys,
            begin, diagonal, N, M, D, CAUSAL, BLOCK_M, True,
        )  # fmt: skip
    dk, dv = walk_queries(
        dk, dv, k_tile, v_tile, q, d_out, minus_shift, minus_delta, scale_log2, stride_qn, stride_gn, keys,
        diagonal, full, N, M, D, CAUSAL, BLOCK_M, False,
    )  # fmt: skip
    dk, dv = walk_queries(
        dk, dv, k_tile, v_tile, q, d_out, minus_shift, minus_delta, scale_log2, stride_qn, stride_gn, keys,
        wl.maximum(full, begin), N, N, M, D, CAUSAL, BLOCK_M, True,
    )  # fmt: skip

    offsets = (batch_head * M + keys[:, None]) * D + channels[None, :]
    wl.store(dk_out + offsets, (dk * scale).to(k.dtype.element_ty), mask=inside)
    wl.store(dv_out + offsets, dv.to(k.dtype.element_ty), mask=inside)


@weft.jit
def walk_keys(
    dq, q_tile, g_tile, shift, start, k, v, scale_log2, stride_km, stride_vm, rows, begin, end, N, M,
    D: wl.constexpr, CAUSAL: wl.constexpr, BLOCK_N: wl.constexpr, PARTIAL: wl.constexpr,
):  # fmt: skip
    """Adds what the keys `begin` to `end` - 1 give a block of queries. Where PARTIAL, pairs are masked."""
    columns = wl.arange(0, BLOCK_N)
    channels = wl.arange(0, D)
    k_ptrs = k + (begin + columns[:, None]) * stride_km + channels[None, :]
    v_ptrs = v + (begin + columns[:, None]) * stride_vm + channels[None, :]
    for first in range(begin, end, BLOCK_N):
        if PARTIAL:
            k_tile = wl.load(k_ptrs, mask=first + columns[:, None] < M, other=0.0)
            v_tile = wl.load(v_ptrs, mask=first + columns[:, None] < M, other=0.0)
        else:
            k_tile = wl.load(k_ptrs)
            v_tile = wl.load(v_ptrs)
        weights = wl.exp2(wl.dot(q_tile, k_tile.T) * scale_log2 + shift[:, None])
        if PARTIAL:
            allowed = (first + columns[None, :] < M) & (rows[:, None] < N)
            if CAUSAL:
                allowed = allowed & (first + columns[None, :] <= rows[:, None] + (M - N))
            weights = wl.where(allowed, weights, 0.0)
        d_scores = weights * wl.dot(g_tile, v_tile.T, start)
        dq = wl.dot(d_scores.to(q_tile.dtype), k_tile, dq)
        k_ptrs += BLOCK_N * stride_km
        v_ptrs += BLOCK_N * stride_vm
    return dq


@weft.jit
def queries_kernel(
    q, k, v, d_out, minus_shift, minus_delta, dq_out, scale,
    stride_qb, stride_qh, stride_qn, stride_kb, stride_kh, stride_km, stride_vb, stride_vh, stride_vm,
    stride_gb, stride_gh, stride_gn, heads, N, M,
    D: wl.constexpr, CAUSAL: wl.constexpr, BLOCK_M: wl.constexpr, BLOCK_N: wl.constexpr,
):  # fmt: skip
    """dq of a block of queries, walking the keys; dq_out is contiguous."""
    first_row = wl.program_id(0) * BLOCK_M
    batch_head = wl.program_id(1).to(wl.int64)
    batch, head = batch_head // heads, batch_head % heads
    rows = first_row + wl.arange(0, BLOCK_M)
    channels = wl.arange(0, D)
    inside = rows[:, None] < N
    q_tile = wl.load(
        q + batch * stride_qb + head * stride_qh + rows[:, None] * stride_qn + channels[None, :], mask=inside, other=0.0
    )
    g_tile = wl.load(
        d_out + batch * stride_gb + head * stride_gh + rows[:, None] * stride_gn + channels[None, :],
        mask=inside, other=0.0,
    )  # fmt: skip
    shift = wl.load(minus_shift + batch_head * N + rows, mask=rows < N, other=0.0)
    row_delta = wl.load(minus_delta + batch_head * N + rows, mask=rows < N, other=0.0)
    start = wl.broadcast_to(row_delta[:, None], (BLOCK_M, BLOCK_N))
    k += batch * stride_kb + head * stride_kh
    v += batch * stride_vb + head * stride_vh
    dq = wl.zeros((BLOCK_M, D), dtype=wl.float32)
    scale_log2 = scale * LOG2_E

    end = M
    full = M // BLOCK_N * BLOCK_N
    if CAUSAL:
        end = wl.minimum(M, first_row + BLOCK_M + (M - N))
        full = wl.minimum(full, wl.maximum(first_row + 1 + (M - N), 0) // BLOCK_N * BLOCK_N)
    dq = walk_keys(
        dq, q_tile, g_tile, shift, start, k, v, scale_log2, stride_km, stride_vm, rows, 0, full, N, M,
        D, CAUSAL, BLOCK_N, False,
    )  # fmt: skip
    dq = walk_keys(
        dq, q_tile, g_tile, shift, start, k, v, scale_log2, stride_km, stride_vm, rows, full, end, N, M,
        D, CAUSAL, BLOCK_N, True,
    )  # fmt: skip
    offsets = (batch_head * N + rows[:, None]) * D + channels[None, :]
    wl.store(dq_out + offsets, (dq * scale).to(q.dtype.element_ty), mask=inside)


def flash_attention_backward(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, out: torch.Tensor, lse: torch.Tensor, d_out: torch.Tensor, *,
    causal: bool = False, scale: float | None = None,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:  # fmt: skip
    """Gradients of q, k and v, given the forward's output and natural-log LSE [B, H, N], and the output's gradient.

    Shapes as in examples/04_flash_attention.py: q [B, H, N, D]; k, v [B, H, M, D]; D 64 or 128. Two runs
    give the same bits.
    """
    B, H, N, D = q.shape
    M = k.shape[2]
    scale = 1 / math.sqrt(D) if scale is None else scale
    q, k, v, out, d_out = (x if x.stride(-1) == 1 else x.contiguous() for x in (q, k, v, out, d_out))
    minus_shift, minus_delta = (torch.full((B, H, N), torch.nan, device=q.device) for _ in range(2))
    rows_kernel[(weft.cdiv(N, 64), B * H)](
        out, d_out, lse, minus_shift, minus_delta, *out.stride()[:3], *d_out.stride()[:3], H, N, D=D, BLOCK=64
    )
    dq, dk, dv = (torch.full(x.shape, torch.nan, dtype=x.dtype, device=x.device) for x in (q, k, v))
    strides = [stride for x in (q, k, v, d_out) for stride in x.stride()[:3]]
    common = (scale, *strides, H, N, M)
    keys_kernel[(weft.cdiv(M, 128), B * H)](
        q, k, v, d_out, minus_shift, minus_delta, dk, dv, *common,
        D=D, CAUSAL=causal, BLOCK_M=4096 // D, BLOCK_N=128, num_warps=8, num_stages=3,
    )  # fmt: skip
    queries_kernel[(weft.cdiv(N, 128), B * H)](
        q, k, v, d_out, minus_shift, minus_delta, dq, *common,
        D=D, CAUSAL=causal, BLOCK_M=128, BLOCK_N=D // 2, num_warps=D // 16, num_stages=3,
    )  # fmt: skip
    return dq, dk, dv


class FlashAttention(torch.autograd.Function):
    """The forward in plain operations; the backward above."""

    @staticmethod
    def forward(ctx, q, k, v, causal):
        mask = masks.causal(q.shape[2], k.shape[2]) if causal else None
        out, lse = attention(q, [Domain(k, v, mask)])
        ctx.save_for_backward(q, k, v, out, lse)
        ctx.causal = causal
        return out

    @staticmethod
    def backward(ctx, d_out):
        return *flash_attention_backward(*ctx.saved_tensors, d_out, causal=ctx.causal), None


def main():
    for dtype, D, causal, (N, M) in (
        (torch.float16, 64, False, (256, 256)),
        (torch.float16, 64, True, (113, 203)),
        (torch.bfloat16, 128, True, (200, 130)),
    ):

        def program(q, k, v, causal=causal):
            return FlashAttention.apply(q, k, v, causal)

        def formula(q, k, v, form, causal=causal):
            mask = masks.causal(q.shape[2], k.shape[2]) if causal else None
            return attention(q, [Domain(k, v, mask)], form=form)[0]

        def inputs(randn, D=D, N=N, M=M):
            return {"q": randn(1, 2, N, D), "k": randn(1, 2, M, D), "v": randn(1, 2, M, D)}

        title = f"flash attention backward, {'causal' if causal else 'full'}, D = {D}, {N} x {M}"
        demonstrate(program, formula, inputs, title=title, dtypes=[dtype])


if __name__ == "__main__":
    main()
