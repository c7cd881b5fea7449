# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""What crosses ranks beside attention: rows around a rank's own, and sums over all rows. Both differentiable."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
import torch.distributed as dist

from ..runtime.first_order import first_order
from .traffic import Message, Post


def overlaps(rank: int, ranks: int, tokens: int, before: int, after: int) -> list[tuple[int, int, int]]:
    """Of whom a rank gets rows around its own ``tokens``: (rank, first, past) in the indices of the whole, in order."""
    first, past = rank * tokens, (rank + 1) * tokens
    found = []
    for other in range(ranks):
        begin, end = other * tokens, (other + 1) * tokens
        for low, high in ((first - before, first), (past, past + after)):
            at, to = max(low, begin), min(high, end)
            if other != rank and at < to:
                found.append((other, at, to))
    return found


class Halo(torch.autograd.Function):
    """Halo.apply(x, reaches, group): [B, H, before + N + after, D] of x [B, H, N, D], with rows of other ranks around;
    0 where the sequence has none. ``reaches[r]`` are how many rows rank r wants before and after its own."""

    @staticmethod
    def forward(ctx: Any, x: Any, reaches: Sequence[tuple[int, int]], group: Any) -> Any:
        """The rank's rows with those around them."""
        rank, ranks, tokens = dist.get_rank(group), dist.get_world_size(group), x.shape[2]
        before, after = reaches[rank]
        ctx.where = reaches, group, tokens
        wide = x.new_zeros((*x.shape[:2], before + tokens + after, *x.shape[3:]))
        wide[:, :, before : before + tokens] = x
        first = rank * tokens
        coming = [
            (other, at, to, x.new_empty((*x.shape[:2], to - at, *x.shape[3:])))
            for other, at, to in overlaps(rank, ranks, tokens, before, after)
        ]
        messages = [Message(buffer, other, at, False) for other, at, _, buffer in coming]
        for other in range(ranks):
            for of, at, to in overlaps(other, ranks, tokens, *reaches[other]) if other != rank else ():
                if of == rank:
                    messages.append(Message(x[:, :, at - first : to - first].contiguous(), other, at, True))
        Post(messages, group).wait()
        for _, at, to, buffer in coming:
            wide[:, :, at - first + before : to - first + before] = buffer
        return wide

    @staticmethod
    def backward(ctx: Any, wide: Any) -> Any:
        """What other ranks say of this rank's rows is added up in the ranks' order."""
        (found,) = first_order("weft.distributed", lambda: [_returned(wide, *ctx.where)], [wide])
        return found, None, None


def _returned(wide: Any, reaches: Sequence[tuple[int, int]], group: Any, tokens: int) -> Any:
    """The gradients of this rank's rows, of those of all that it gave them to."""
    rank, ranks = dist.get_rank(group), dist.get_world_size(group)
    before, after = reaches[rank]
    first = rank * tokens
    coming, messages = [], []
    for other, at, to in overlaps(rank, ranks, tokens, before, after):
        piece = wide[:, :, at - first + before : to - first + before].contiguous()
        messages.append(Message(piece, other, at, True))
    for other in range(ranks):
        for of, at, to in overlaps(other, ranks, tokens, *reaches[other]) if other != rank else ():
            if of == rank:
                buffer = wide.new_empty((*wide.shape[:2], to - at, *wide.shape[3:]))
                coming.append((at, to, buffer))
                messages.append(Message(buffer, other, at, False))
    Post(messages, group).wait()
    total = wide[:, :, before : before + tokens].float().clone()
    for at, to, buffer in coming:  # in the order of ranks
        total[:, :, at - first : to - first] += buffer.float()
    return total.to(wide.dtype)


class Total(torch.autograd.Function):
    """Total.apply(x, group): the sum of x over ranks, in their order, the same bits on each."""

    @staticmethod
    def forward(ctx: Any, x: Any, group: Any) -> Any:
        """The sum, on every rank."""
        ctx.group = group
        return _total(x, group)

    @staticmethod
    def backward(ctx: Any, gradient: Any) -> Any:
        """What all ranks make of the sum."""
        return Total.apply(gradient, ctx.group), None


def gathered(x: Any, group: Any) -> list[Any]:
    """x of every rank."""
    found = [torch.empty_like(x, memory_format=torch.contiguous_format) for _ in range(dist.get_world_size(group))]
    dist.all_gather(found, x.contiguous(), group=group)
    return found


def _total(x: Any, group: Any) -> Any:
    first, *rest = gathered(x, group)
    for each in rest:
        first = first + each
    return first
