# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""What is sent between ranks: posted together, counted, and waited for when it is needed.

Transfers are in flight while kernels run: NCCL has streams of its own, for which the current one waits where a result
is asked for; gloo has threads.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
import torch.distributed as dist

from .routes import Step


@dataclass
class Traffic:
    """What this rank has sent and received, in bytes: keys and values, and gradients on their way back."""

    sent: int = 0
    received: int = 0
    messages: int = 0


_counting: list[Traffic] = []


@contextlib.contextmanager
def counting() -> Iterator[Traffic]:
    """Count what this rank sends and receives meanwhile, in bytes."""
    traffic = Traffic()
    _counting.append(traffic)
    try:
        yield traffic
    finally:
        _counting.remove(traffic)


@dataclass(frozen=True)
class Message:
    """A tensor to or from a rank of the group; messages of two ranks are told apart by ``tag``."""

    tensor: Any
    peer: int
    tag: int
    sends: bool


class Post:
    """Messages under way."""

    def __init__(self, messages: Sequence[Message], group: Any) -> None:
        self.messages = messages  # and their memory, until they are done
        operations = [
            dist.P2POp(
                dist.isend if each.sends else dist.irecv,
                each.tensor,
                dist.get_global_rank(group, each.peer),
                group,
                each.tag,
            )
            for each in messages
        ]
        self.works = dist.batch_isend_irecv(operations) if operations else []
        for each in messages:
            size = each.tensor.numel() * each.tensor.element_size()
            for traffic in _counting:
                traffic.messages += 1
                if each.sends:
                    traffic.sent += size
                else:
                    traffic.received += size

    def wait(self) -> None:
        """Until all of it is there, and what was sent may change."""
        for work in self.works:
            work.wait()
        self.works = []


def travel(steps: Sequence[Step], rank: int, own: dict[int, Any], group: Any) -> Iterator[tuple[int, list[int], Any]]:
    """The runs that this rank has after each step: the step's number, their numbers, and a dict of their buffers. What
    follows is on its way already when they are given."""
    like = next(iter(own.values()))

    def posted(number: int, held: dict[int, Any]) -> tuple[dict[int, Any], Post]:
        moves = steps[number] if number < len(steps) else ()
        coming = {move.run: torch.empty_like(like) for move in moves if move.target == rank}
        messages = [Message(coming[move.run], move.source, move.run, False) for move in moves if move.target == rank]
        messages += [Message(held[move.run], move.target, move.run, True) for move in moves if move.source == rank]
        return coming, Post(messages, group)

    held = dict(own)
    coming, post = posted(0, held)
    yield 0, sorted(own), own
    for number in range(1, len(steps) + 1):
        post.wait()
        arrived = coming
        coming, post = posted(number, {**own, **arrived})
        yield number, sorted(arrived), arrived
    post.wait()
