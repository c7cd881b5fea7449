# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Key blocks chosen on the device for each row of query blocks, as NSA and MoBA do; weft.blocks attends to them.

Three kernels in the tile language: the mean key of each block; how much of each query's softmax over those means falls
on each block, summed over a row block and the heads that share keys; the best of each row, in rising order. Nothing
comes back to the host.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import weft.language as wl
from weft.compiler.jit import jit
from weft.integers import cdiv, next_power_of_2
from weft.programs import static
from weft.runtime.plain import refuse

if TYPE_CHECKING:
    import torch


@jit
def _block_means(
    k, means, stride_kb, stride_kh, stride_km, heads, M, C,
    D: wl.constexpr, BLOCK: wl.constexpr, ROWS: wl.constexpr, CHANNELS: wl.constexpr,
):  # fmt: skip
    c, h, b = wl.program_id(0), wl.program_id(1), wl.program_id(2)
    row, channel = wl.arange(0, ROWS), wl.arange(0, CHANNELS)
    key = c * BLOCK + row
    present = (row < BLOCK) & (key < M)
    start = k + b.to(wl.int64) * stride_kb + h.to(wl.int64) * stride_kh
    pointers = start + key[:, None].to(wl.int64) * stride_km + channel[None, :]
    tile = wl.load(pointers, mask=present[:, None] & (channel[None, :] < D), other=0.0).to(wl.float32)
    mean = wl.sum(tile, axis=0) / wl.sum(present.to(wl.float32), axis=0)
    place = (b * heads + h).to(wl.int64) * C + c
    wl.store(means + place * D + channel, mean, mask=channel < D)


@jit
def _scores(
    q_tile, means, start, position, C, scale_log2,
    D: wl.constexpr, BLOCK: wl.constexpr, COLUMNS: wl.constexpr, CHANNELS: wl.constexpr, CAUSAL: wl.constexpr,
):  # fmt: skip
    """Scores [rows, COLUMNS] of key blocks from ``start``, -inf for those that a row may not see."""
    column, channel = start + wl.arange(0, COLUMNS), wl.arange(0, CHANNELS)
    inside = (column[None, :] < C) & (channel[:, None] < D)
    mean = wl.load(means + column[None, :].to(wl.int64) * D + channel[:, None], mask=inside, other=0.0)
    allowed = column[None, :] < C
    if CAUSAL:
        allowed = allowed & (column[None, :] * BLOCK <= position[:, None])
    return wl.where(allowed, wl.dot(q_tile, mean, input_precision="ieee") * scale_log2, -float("inf"))


@jit
def _block_importance(
    q, means, importance, scale_log2, stride_qb, stride_qh, stride_qn, N, M, C, R,
    D: wl.constexpr, BLOCK_M: wl.constexpr, BLOCK_N: wl.constexpr, GROUP: wl.constexpr,
    ROWS: wl.constexpr, COLUMNS: wl.constexpr, CHANNELS: wl.constexpr, CAUSAL: wl.constexpr,
):  # fmt: skip
    r, h, b = wl.program_id(0), wl.program_id(1), wl.program_id(2)
    row, channel = wl.arange(0, ROWS), wl.arange(0, CHANNELS)
    query = r * BLOCK_M + row
    present = (row < BLOCK_M) & (query < N)
    position = query + (M - N)
    head = (b * wl.num_programs(1) + h).to(wl.int64)
    means += head * C * D
    importance += (head * R + r) * C
    for g in range(GROUP):
        start = q + b.to(wl.int64) * stride_qb + (h * GROUP + g).to(wl.int64) * stride_qh
        pointers = start + query[:, None].to(wl.int64) * stride_qn + channel[None, :]
        q_tile = wl.load(pointers, mask=present[:, None] & (channel[None, :] < D), other=0.0)
        highest = wl.full([ROWS], -float("inf"), wl.float32)
        total = wl.zeros([ROWS], wl.float32)
        for first in range(0, C, COLUMNS):
            scores = _scores(q_tile, means, first, position, C, scale_log2, D, BLOCK_N, COLUMNS, CHANNELS, CAUSAL)
            higher = wl.maximum(highest, wl.max(scores, 1))
            shift = wl.where(higher == -float("inf"), 0.0, higher)
            total = total * wl.exp2(highest - shift) + wl.sum(wl.exp2(scores - shift[:, None]), 1)
            highest = higher
        shift = wl.where(highest == -float("inf"), 0.0, highest)
        share = wl.where(present & (total > 0), 1.0 / wl.where(total > 0, total, 1.0), 0.0)
        for first in range(0, C, COLUMNS):
            scores = _scores(q_tile, means, first, position, C, scale_log2, D, BLOCK_N, COLUMNS, CHANNELS, CAUSAL)
            weight = wl.sum(wl.exp2(scores - shift[:, None]) * share[:, None], 0)
            column = first + wl.arange(0, COLUMNS)
            before = wl.load(importance + column, mask=(column < C) & (g > 0), other=0.0)
            wl.store(importance + column, before + weight, mask=column < C)


@jit
def _best_blocks(
    importance, index, count, N, M, C, R,
    BLOCK_M: wl.constexpr, BLOCK_N: wl.constexpr, TOP: wl.constexpr, GROUP: wl.constexpr,
    COLUMNS: wl.constexpr, CAUSAL: wl.constexpr,
):  # fmt: skip
    r, h, b = wl.program_id(0), wl.program_id(1), wl.program_id(2)
    head = (b * wl.num_programs(1) + h).to(wl.int64)
    column = wl.arange(0, COLUMNS)
    left = wl.load(importance + (head * R + r) * C + column, mask=column < C, other=-float("inf"))
    first = r * BLOCK_M + (M - N)
    last = min((r + 1) * BLOCK_M, N) - 1 + (M - N)
    own = (column * BLOCK_N <= last) & ((column + 1) * BLOCK_N > first)
    left = wl.where((column == 0) | own, float("inf"), left)
    allowed = column < C
    if CAUSAL:
        allowed = allowed & (column * BLOCK_N <= last)
    left = wl.where(allowed, left, -float("inf"))
    chosen = column < 0
    for _ in range(TOP):
        best = wl.argmax(left, 0)
        chosen = chosen | ((column == best) & (left > -float("inf")))
        left = wl.where(column == best, -float("inf"), left)
    place = wl.cumsum(chosen.to(wl.int32), 0) - 1
    for g in range(GROUP):
        row = (head * GROUP + g) * R + r
        wl.store(index + row * TOP + place, column, mask=chosen)
        wl.store(count + row, wl.sum(chosen.to(wl.int32), 0))


def select_blocks(
    q: torch.Tensor,
    k: torch.Tensor,
    *,
    top: int,
    block: tuple[int, int] = (64, 64),
    causal: bool = True,
    scale: float | None = None,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Choose ``top`` key blocks for each row of query blocks of q [B, H, N, D] among those of k [B, Hkv, M, D].

    A block's importance is the softmax over key blocks of scale·q·mean(its keys), summed over the row block's queries
    and the heads that share keys. The first block and the row's own are always taken; with ``causal`` a query sees the
    blocks that begin at its position or before. Returns index [B, H, R, top] int32 in rising order, -1 past the
    count, and count [B, H, R] int32, for ``weft.blocks(index, count, block)``. No gradient flows through a choice.
    """
    import torch

    _check(q, k)
    top, causal = static.integer("top", top, 1), static.truth("causal", causal)
    sides = block if isinstance(block, (tuple, list)) else ()
    if len(sides) != 2:
        raise TypeError(f"expected 'block' to be (queries, keys), but got {block!r}")
    block = (static.integer("block", sides[0], 1), static.integer("block", sides[1], 1))
    scale = None if scale is None else static.real("scale", scale)
    (B, H, N, D), (_, heads, M, _) = q.shape, k.shape
    if not heads or H % heads or k.shape[0] != B or k.shape[3] != D:
        raise ValueError(f"expected keys [{B}, a divisor of {H}, M, {D}], but got {list(k.shape)}")
    least = 1 + _most_own_blocks(N, M, *block)
    if top < least:
        raise ValueError(f"expected top of at least {least}, for the first block and the row's own, but got {top}")
    q, k = (x.detach() if x.stride(-1) == 1 else x.detach().contiguous() for x in (q, k))
    C, R = cdiv(M, block[1]), cdiv(N, block[0])
    means = torch.empty((B, heads, C, D), dtype=q.dtype, device=q.device)
    importance = torch.empty((B, heads, R, C), dtype=torch.float32, device=q.device)
    index = torch.full((B, H, R, top), -1, dtype=torch.int32, device=q.device)
    count = torch.zeros((B, H, R), dtype=torch.int32, device=q.device)
    if not (C and R):
        return index, count
    channels = max(16, next_power_of_2(D))
    scale_log2 = (1 / math.sqrt(D) if scale is None else scale) * math.log2(math.e)
    _block_means[(C, heads, B)](
        k, means, *k.stride()[:3], heads, M, C, D=D, BLOCK=block[1],
        ROWS=next_power_of_2(block[1]), CHANNELS=channels, num_warps=4,
    )  # fmt: skip
    _block_importance[(R, heads, B)](
        q, means, importance, scale_log2, *q.stride()[:3], N, M, C, R, D=D, BLOCK_M=block[0], BLOCK_N=block[1],
        GROUP=H // heads, ROWS=max(16, next_power_of_2(block[0])), COLUMNS=min(64, max(16, next_power_of_2(C))),
        CHANNELS=channels, CAUSAL=causal, num_warps=4,
    )  # fmt: skip
    _best_blocks[(R, heads, B)](
        importance, index, count, N, M, C, R, BLOCK_M=block[0], BLOCK_N=block[1], TOP=top, GROUP=H // heads,
        COLUMNS=max(32, next_power_of_2(C)), CAUSAL=causal, num_warps=1,
    )  # fmt: skip
    return index, count


def _check(q: Any, k: Any) -> None:
    """Refuse what are no floating-point tensors of torch of four axes."""
    import torch

    for name, x, shape in (("q", q, "[B, H, N, D]"), ("k", k, "[B, Hkv, M, D]")):
        if not isinstance(x, torch.Tensor):
            raise TypeError(f"expected '{name}' to be a torch.Tensor {shape}, but got '{type(x).__name__}'")
        if x.dim() != 4:
            raise ValueError(f"expected '{name}' {shape}, but got {list(x.shape)}")
        if x.dtype not in (torch.float16, torch.bfloat16, torch.float32):
            given = str(x.dtype).removeprefix("torch.")
            raise TypeError(f"expected '{name}' of float16, bfloat16 or float32, but got {given}")
    refuse((("q", q), ("k", k)))


def _most_own_blocks(N: int, M: int, rows: int, columns: int) -> int:
    """The most key blocks that one row block's positions lie in."""
    shift = M - N
    return max(
        (
            (min((r + 1) * rows, N) - 1 + shift) // columns - (r * rows + shift) // columns + 1
            for r in range(cdiv(N, rows))
        ),
        default=0,
    )
