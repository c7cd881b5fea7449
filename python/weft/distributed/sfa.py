# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""weft.distributed.sfa: units, runs of joined tokens that serve as one key, of a sequence that ranks share.

Who joins is decided with one row of the rank before; the decisions, a byte a token, go to all ranks, so that each knows
where units begin and end. A unit lies on the rank of its last token, which gets the rows of earlier ranks that belong
to it. What travels then are units and no tokens.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
import torch.distributed as dist

from ..attention.sfa import checked
from ..patterns import window
from ..programs import functions, merging
from ..programs.program import program
from .agreement import agreed
from .edges import Halo, Total, gathered
from .job import Domain, Job
from .layouts import layout
from .meshes import group_of
from .needs import EMPTY, FULL, PARTIAL
from .parts import Scores
from .ring import Ring
from .routes import ROTATIONS


def sfa(
    q: Any,
    k: Any,
    v: Any,
    q_gain: Any = None,
    k_gain: Any = None,
    group: Any = None,
    *,
    eps: float = 1e-6,
    similarity_heads: int | None = None,
    similarity_threshold: float = 2e-4,
    difference_threshold: float = 0.0175,
    max_joins: int = 20,
    decisions: Any = None,
    value_merge: str = "sum",
    rope: bool = False,
    scale: float | None = None,
    return_loss: bool = False,
    loss_factor: float = 1.0,
    loss_pairs: str = "all",
    rotate: str = "ring",
) -> Any:
    """weft.attention.sfa of a sequence that the ranks of a ``group`` share in consecutive runs: each gives its part of
    q [B, H, N/P, D], of k and v, and of ``decisions`` where there are any, and gets its part [B, H, N/P, Dv].

    Gradients of the gains are this rank's share. The loss is that of the whole on every rank, and its gradient on a
    rank that of the rank's pairs: over all ranks it counts once. How many units travel is asked of the device: a call
    waits for it.
    """
    group = group_of(group)
    thresholds = (similarity_threshold, difference_threshold)

    def made() -> tuple[int, str]:
        joins = checked(q, k, v, q_gain, k_gain, decisions, value_merge, loss_pairs, max_joins)
        if not isinstance(q, torch.Tensor):
            raise TypeError(f"expected 'q' to be a tensor of torch's, but got '{type(q).__name__}'")
        if rotate not in ROTATIONS:
            raise ValueError(f"expected 'rotate' among {', '.join(ROTATIONS)}, but got {rotate!r}")
        said = [list(each.shape) for each in (q, k, v)]
        options = (eps, similarity_heads, thresholds, value_merge, rope, scale, return_loss, loss_factor, loss_pairs)
        return joins, f"{said}, {q.dtype}, max_joins={max_joins}, {options}, rotate={rotate!r}"

    most = agreed(group, made)
    rank, ranks, tokens = dist.get_rank(group), dist.get_world_size(group), q.shape[2]
    near = Halo.apply(k, [(1, 0)] * ranks, group)
    own = decisions
    if own is None:
        with torch.no_grad():
            own = merging.merge_decide(
                *(near.detach(), k_gain),
                similarity_heads=similarity_heads,
                similarity_threshold=thresholds[0],
                difference_threshold=thresholds[1],
            )[:, :, 1:]
    units = _Units.of(_capped(torch.cat(gathered(own.to(torch.uint8), group), 2).bool(), most), rank, ranks)

    wide = [(most, 0)] * ranks
    q_hat, k_hat, keys, values, numbers = prepared(
        *(q, Halo.apply(k, wide, group), Halo.apply(v, wide, group), units.joins(most), q_gain, k_gain),
        *(_angles(q, rank * tokens, rope), _angles(k, rank * tokens - most, rope)),
        eps=eps,
        most=most,
        merge=value_merge,
    )
    first = numbers[:, :, most]  # the first unit that ends here
    keys, values = (units.packed(each, first) for each in (keys, values))
    job = _job(group, rank, ranks, rotate, scale, q_hat, (k_hat[:, :, most:], v), (keys, values), units)
    out, _ = Ring.apply(job, None, q_hat, k_hat[:, :, most:], v, keys, values)
    if not return_loss:
        return out
    heads = (k.shape[1] + 1) // 2 if similarity_heads is None else similarity_heads
    return out, loss_factor * _loss(near, k_gain, units, heads, loss_pairs, group)


def _capped(joins: Any, most: int) -> Any:
    """The joins of the whole of which every (most + 1)st of a chain is dropped; the first token joins none."""
    joins[:, :, 0] = False
    place = torch.arange(joins.shape[2], device=joins.device)
    begins = torch.where(joins, torch.zeros_like(place), place).cummax(2).values
    return joins & ((place - begins) % (most + 1) != 0)


@dataclass(frozen=True, eq=False)
class _Units:
    """Units by their last tokens: ``kept`` [B, Hkv, N] of the whole, ``counts`` [P, B, Hkv] of those of each rank."""

    kept: Any
    counts: Any
    rank: int
    tokens: int
    most: int

    @staticmethod
    def of(kept: Any, rank: int, ranks: int) -> _Units:
        tokens = kept.shape[2] // ranks
        ends = ~torch.nn.functional.pad(kept[:, :, 1:], (0, 1))
        counts = torch.stack([part.sum(2) for part in ends.split(tokens, 2)])
        return _Units(kept, counts, rank, tokens, max(1, int(counts.max())))

    def joins(self, before: int) -> Any:
        """The joins of this rank's tokens and of so many before them."""
        first = self.rank * self.tokens
        there = self.kept[:, :, max(first - before, 0) : first + self.tokens]
        return torch.nn.functional.pad(there, (before + self.tokens - there.shape[2], 0))

    def packed(self, x: Any, first: Any) -> Any:
        """Rows of the units that end on this rank, from unit ``first`` [B, Hkv] on; 0 behind the last of them."""
        place = torch.arange(self.most, device=x.device)
        at = (first[..., None] + place).clamp(max=x.shape[2] - 1).long()
        found = x.gather(2, at[..., None].expand(*at.shape, x.shape[3]))
        return torch.where((place < self.counts[self.rank][..., None])[..., None], found, 0)

    def spans(self, row: int, run: int) -> tuple[Any, Any, Any, Any]:
        """Which units of rank ``run`` the tokens of rank ``row``, this one, see: those that end before the token's own
        begins, as the bounds of weft.span."""
        count = self.counts[run].to(torch.int32)
        batch, heads = count.shape
        place = torch.arange(self.most, device=count.device, dtype=torch.int32)
        if run != row:
            upper = count[..., None].expand(batch, heads, self.tokens)
            begins = torch.where(place < count[..., None], 0, self.tokens)
        else:
            begin = self.rank * self.tokens
            # a unit ends before each token that joins none, but for the rank's first one
            upper = (~self.kept[:, :, begin : begin + self.tokens]).int()
            upper[:, :, 0] = 0
            upper = upper.cumsum(2)
            begins = torch.searchsorted(upper, place.long().expand(batch, heads, -1).contiguous(), right=True)
        past = torch.full_like(begins, self.tokens)
        tables = (torch.zeros_like(upper), upper, begins, past)
        lower, upper, begins, past = (each.to(torch.int32).contiguous() for each in tables)
        return lower, upper, begins, past


def _job(
    group: Any,
    rank: int,
    ranks: int,
    rotate: str,
    scale: float | None,
    q: Any,
    itself: tuple[Any, Any],
    merged: tuple[Any, Any],
    units: _Units,
) -> Job:
    """The token itself, and the units before it, under one softmax."""
    here = np.where(np.eye(ranks, dtype=bool), PARTIAL, EMPTY).astype(np.uint8)
    before = (np.tri(ranks, k=-1, dtype=np.uint8) * FULL + here).astype(np.uint8)
    some = units.counts.flatten(1).any(1).cpu().numpy()
    alone = Domain(*itself, Scores(window(0, 0), None, scale, None), here)
    others = Domain(*merged, Scores(None, None, scale, None), np.where(some[None, :], before, EMPTY), units.spans)
    return Job(group, rank, layout("consecutive", ranks), rotate, q, (alone, others))


def _angles(x: Any, first: int, rope: bool) -> Any:
    """The cosines and sines by which rows are turned before their own positions turn them: those of the first one."""
    if not rope:
        return None
    size = x.shape[3]
    turns = first * 10000.0 ** (-torch.arange(0, size, 2, dtype=torch.float64) / size)
    return torch.stack([turns.cos(), turns.sin()]).float().to(x.device)


def _turned(x: Any, angles: Any) -> Any:
    """Pairs (2i, 2i+1) of channels turned."""
    if angles is None:
        return x
    even, odd = x[..., 0::2], x[..., 1::2]
    cosine, sine = angles
    return torch.stack([even * cosine - odd * sine, even * sine + odd * cosine], -1).flatten(-2)


def prepared(
    q: Any,
    k: Any,
    v: Any,
    joins: Any,
    q_gain: Any,
    k_gain: Any,
    of_q: Any,
    of_k: Any,
    *,
    eps: float,
    most: int,
    merge: str,
) -> tuple[Any, Any, Any, Any, Any]:
    """Queries and keys normalised and turned, the units' keys and values, and the unit of each token."""
    if of_q is None:
        found: tuple[Any, Any, Any, Any, Any] = _plain(q, k, v, joins, q_gain, k_gain, eps=eps, most=most, merge=merge)
        return found
    q_hat, k_hat = _normalised(q, k, q_gain, k_gain, eps=eps)
    q_hat, k_hat = functions.rope(_turned(q_hat, of_q)), functions.rope(_turned(k_hat, of_k))
    units = merging.merge_units(joins, k_hat, v, max_joins=most, modes=("sum", merge), to=q.dtype)
    return q_hat.to(q.dtype), k_hat.to(q.dtype), *units.merged, units.unit


@program
def _normalised(q: Any, k: Any, q_gain: Any, k_gain: Any, *, eps: float) -> Any:
    return functions.rms_norm(q.to("fp32"), q_gain, eps), functions.rms_norm(k.to("fp32"), k_gain, eps)


@program
def _plain(q: Any, k: Any, v: Any, joins: Any, q_gain: Any, k_gain: Any, *, eps: float, most: int, merge: str) -> Any:
    q_hat = functions.rms_norm(q.to("fp32"), q_gain, eps)
    k_hat = functions.rms_norm(k.to("fp32"), k_gain, eps)
    units = merging.merge_units(joins, k_hat, v, max_joins=most, modes=("sum", merge), to=q.dtype)
    keys, values = units.merged
    return q_hat.to(q.dtype), k_hat.to(q.dtype), keys, values, units.unit


def _loss(near: Any, gain: Any, units: _Units, heads: int, pairs: str, group: Any) -> Any:
    """The compression loss of the whole (weft.merge_loss), with the gradient of this rank's pairs."""
    rows = near.float() if gain is None else near.float() * gain.float()[None, :, None]
    before, own = rows[:, :, :-1], rows[:, :, 1:]
    some = (before.square().sum(-1) > 0) & (own.square().sum(-1) > 0)
    size = (
        torch.where(some, own.square().sum(-1), 1.0).rsqrt() * torch.where(some, before.square().sum(-1), 1.0).rsqrt()
    )
    cosine = torch.where(some, (before * own).sum(-1) * size, 0.0)
    similar = (torch.arange(rows.shape[1], device=rows.device) < heads)[None, :, None]
    each = torch.where(similar, (1.0 - cosine) ** 2, cosine**2)
    first = units.rank * units.tokens
    place = torch.arange(units.tokens, device=rows.device) + first
    counted = units.kept[:, :, first : first + units.tokens] if pairs == "merged" else place > 0
    mine = torch.where(counted, each, 0.0).sum()
    whole = mine + (Total.apply(mine.detach(), group) - mine.detach())
    batch, groups, tokens = units.kept.shape
    present = max(batch * groups * (tokens - 1), 1)
    merged = units.kept.sum().float()
    return whole / torch.where(merged > 0, merged, float(present)) - merged / present
