# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Tables of spans made on the host, from random bounds or from units of merged tokens, with the masks they mean."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch


class Span(NamedTuple):
    """What weft.span takes, [B, Hkv, N] twice and [B, Hkv, M] twice, i32."""

    lower: torch.Tensor
    upper: torch.Tensor
    first: torch.Tensor
    past: torch.Tensor

    @property
    def mask(self) -> torch.Tensor:
        """[B, Hkv, N, M]: which pairs belong."""
        return span_mask(self.lower, self.upper, self.first.shape[-1])


def span_mask(lower: torch.Tensor, upper: torch.Tensor, m: int) -> torch.Tensor:
    """lower ≤ m < upper, [B, Hkv, N, M]."""
    key = torch.arange(m)
    return (lower[..., None] <= key) & (key < upper[..., None])


def from_bounds(lower: torch.Tensor, upper: torch.Tensor, m: int) -> Span:
    """The span of bounds that never fall: a key's first query is after those that have not come to it, and its past
    after those that have not gone by."""
    key = torch.arange(m)
    first = (upper[..., None] <= key).sum(-2)
    past = torch.maximum((lower[..., None] <= key).sum(-2), first)
    return Span(*(x.to(torch.int32).contiguous() for x in (lower, upper, first, past)))


def random_span(batch: int, heads: int, n: int, m: int, *, generator: torch.Generator | None = None) -> Span:
    """Random bounds, sorted."""
    drawn = torch.randint(0, m + 1, (2, batch, heads, n), generator=generator).sort(-1).values
    return from_bounds(drawn.amin(0), drawn[1], m)


def empty_span(batch: int, heads: int, n: int, m: int) -> Span:
    """No pair at all."""
    return Span(*(torch.zeros(batch, heads, size, dtype=torch.int32) for size in (n, n, m, m)))


def units_span(joins: torch.Tensor, starts: Sequence[int] = ()) -> Span:
    """Tokens see the units of their sequence that end before them. ``joins`` [B, Hkv, N]: whether a token is of its
    predecessor's unit; sequences begin at 0 and at ``starts``. There are as many columns as tokens."""
    n = joins.shape[-1]
    joins = joins.clone()
    joins[..., [0, *starts]] = False
    unit = (~joins).cumsum(-1) - 1
    sequence = torch.zeros(n, dtype=torch.long)
    for start in starts:
        sequence[start:] = start
    return from_bounds(unit[..., sequence], unit, n)
