# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""SFA by its formula, in the precision of its operands; float64 is the reference. Units are found by a plain loop.

Decisions, norms, rotations and sums are in float32 at least; k̂ and the units' rows are rounded once.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from weft.testing import mixers
from weft.testing.attention import Domain, attention, repeat_heads, wide


@dataclass(frozen=True)
class Unit:
    """Tokens ``begin`` to ``end`` - 1 of one sequence, which ends before ``past``."""

    begin: int
    end: int
    past: int
    leads: bool
    """whether it is its sequence's first"""


def sequences(length: int, cu_seqlens: Sequence[int] | None) -> list[tuple[int, int]]:
    """Where each sequence begins and ends."""
    bounds = [0, length] if cu_seqlens is None else [int(x) for x in cu_seqlens]
    return [(a, b) for a, b in itertools.pairwise(bounds) if b > a]


def kept_joins(joins: Sequence[bool], max_joins: int, cu_seqlens: Sequence[int] | None = None) -> list[bool]:
    """The joins of one head that remain: none at a sequence's first token, and no (max_joins + 1)st of a chain."""
    kept = [False] * len(joins)
    for begin, end in sequences(len(joins), cu_seqlens):
        number = 0
        for i in range(begin + 1, end):
            number = number + 1 if joins[i] else 0
            kept[i] = number % (max_joins + 1) != 0
    return kept


def units_of(joins: Sequence[bool], max_joins: int, cu_seqlens: Sequence[int] | None = None) -> list[Unit]:
    """The units of one head, in order."""
    kept, found = kept_joins(joins, max_joins, cu_seqlens), []
    for begin, past in sequences(len(joins), cu_seqlens):
        starts = [i for i in range(begin, past) if not kept[i]]
        for start, end in zip(starts, [*starts[1:], past], strict=True):
            found.append(Unit(start, end, past, start == begin))
    return found


def cosines(k_hat: torch.Tensor, cu_seqlens: Sequence[int] | None = None) -> tuple[torch.Tensor, torch.Tensor]:
    """c[b, h, i] of rows i - 1 and i, 0 where one is zero; and whether i has a predecessor in its sequence, [N]."""
    before = torch.zeros_like(k_hat)
    before[:, :, 1:] = k_hat[:, :, :-1]
    has = torch.zeros(k_hat.shape[2], dtype=torch.bool)
    for begin, end in sequences(k_hat.shape[2], cu_seqlens):
        has[begin + 1 : end] = True
    squares, squares_before = k_hat.square().sum(-1), before.square().sum(-1)
    some = (squares > 0) & (squares_before > 0) & has
    product = torch.where(some, squares, 1).sqrt() * torch.where(some, squares_before, 1).sqrt()
    return torch.where(some, (k_hat * before).sum(-1) / product, 0), has


def decide(
    k_hat: torch.Tensor,
    similarity_heads: int | None = None,
    thresholds: tuple[float, float] = (2e-4, 0.0175),
    cu_seqlens: Sequence[int] | None = None,
) -> tuple[torch.Tensor, torch.Tensor]:
    """The joins [B, Hkv, N], and how far each pair is from its threshold."""
    c, has = cosines(k_hat, cu_seqlens)
    heads = (k_hat.shape[1] + 1) // 2 if similarity_heads is None else similarity_heads
    similar = (torch.arange(k_hat.shape[1]) < heads)[:, None]
    value = torch.where(similar, 1 - c, c.abs())
    threshold = torch.where(similar, thresholds[0], thresholds[1]).to(value.dtype)
    square = k_hat.square().sum(-1)
    some = has & (square > 0)
    some[:, :, 1:] &= square[:, :, :-1] > 0
    return some & (value < threshold), (value - threshold).abs()


def merged(
    x: torch.Tensor, units: Sequence[Sequence[Sequence[Unit]]], mode: str = "sum", offset: int = 0
) -> torch.Tensor:
    """Row m of [B, H, N, D] is unit m's rows of x summed, their mean, or the last; with an offset that of unit m + 1 of
    the sequence."""
    B, H, N, _ = x.shape
    matrix = torch.zeros(B, H, N, N, dtype=wide(x).dtype)
    for b in range(B):
        for h in range(H):
            for m, unit in enumerate(units[b][h]):
                row = m - offset
                if offset and unit.leads:
                    continue
                if mode == "last":
                    matrix[b, h, row, unit.end - 1] = 1
                else:
                    share = 1 / (unit.end - unit.begin) if mode == "mean" else 1.0
                    matrix[b, h, row, unit.begin : unit.end] = share
    return matrix @ wide(x)


def seen(units: Sequence[Sequence[Sequence[Unit]]], length: int, offset: int = 0) -> torch.Tensor:
    """[B, H, N, N]: whether token n sees unit m."""
    mask = torch.zeros(len(units), len(units[0]), length, length, dtype=torch.bool)
    for b, heads in enumerate(units):
        for h, found in enumerate(heads):
            for m, unit in enumerate(found):
                if not offset:
                    mask[b, h, unit.end : unit.past, m] = True
                elif m + 1 < len(found) and not found[m + 1].leads:
                    mask[b, h, found[m + 1].end - 1 : unit.past, m] = True
    return mask


def compression_loss(
    k_hat: torch.Tensor,
    kept: torch.Tensor,
    similarity_heads: int | None = None,
    factor: float = 1.0,
    pairs: str = "all",
    cu_seqlens: Sequence[int] | None = None,
) -> torch.Tensor:
    """SFA's loss, one number: neighbours in the first ``similarity_heads`` heads (half of them unless given) are to be
    alike and those in the rest unlike, by the squared distance of their cosines from 1 and from 0, less the share of
    joins. ``pairs`` "merged" counts the joins in ``kept`` alone; ``factor`` scales it."""
    c, has = cosines(k_hat, cu_seqlens)
    heads = (k_hat.shape[1] + 1) // 2 if similarity_heads is None else similarity_heads
    similar = (torch.arange(k_hat.shape[1]) < heads)[:, None]
    quality = torch.where(similar, (1 - c).square(), c.square())
    total = torch.where(kept if pairs == "merged" else has, quality, 0).sum()
    count, joined = k_hat.shape[0] * k_hat.shape[1] * int(has.sum()), int(kept.sum())
    if count == 0:
        return total * 0
    return factor * (total / (joined or count) - joined / count)


def sfa(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    q_gain: torch.Tensor | None = None,
    k_gain: torch.Tensor | None = None,
    *,
    eps: float = 1e-6,
    similarity_heads: int | None = None,
    similarity_threshold: float = 2e-4,
    difference_threshold: float = 0.0175,
    max_joins: int = 20,
    decisions: torch.Tensor | None = None,
    value_merge: str = "sum",
    value_offset: int = 0,
    cu_seqlens: Any = None,
    rope: bool = False,
    scale: float | None = None,
    return_loss: bool = False,
    loss_factor: float = 1.0,
    loss_pairs: str = "all",
    form: str = "scaled scores",
) -> Any:
    """[B, H, N, Dv], or that and the loss."""
    B, H, N, _ = q.shape
    q_hat, k_hat = mixers.rms_norm(wide(q), q_gain, eps), mixers.rms_norm(wide(k), k_gain, eps)
    plain = k_hat
    joins = decisions
    if joins is None:
        joins, _ = decide(k_hat.detach(), similarity_heads, (similarity_threshold, difference_threshold), cu_seqlens)
    if rope:
        q_hat, k_hat = mixers.rope(q_hat), mixers.rope(k_hat)
    rows = joins.tolist()
    units = [[units_of(row, max_joins, cu_seqlens) for row in heads] for heads in rows]
    keys = merged(k_hat, units).to(q.dtype)
    values = merged(v, units, value_merge, value_offset).to(v.dtype)
    itself = torch.eye(N, dtype=torch.bool)
    domains = [
        Domain(k_hat.to(q.dtype), v, itself),
        Domain(keys, values, repeat_heads(seen(units, N, value_offset), H)),
    ]
    out, _ = attention(q_hat.to(q.dtype), domains, scale=scale, form=form)
    if not return_loss:
        return out
    kept = torch.tensor([[kept_joins(row, max_joins, cu_seqlens) for row in heads] for heads in rows])
    kept = kept.reshape(B, k.shape[1], N)
    return out, compression_loss(plain, kept, similarity_heads, loss_factor, loss_pairs, cu_seqlens)
