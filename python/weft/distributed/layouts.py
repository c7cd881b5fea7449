# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Which tokens of a sequence each rank holds. The sequence is cut into equal runs, numbered from its start; every rank
has as many of them.

    consecutive   4 ranks:   0 | 1 | 2 | 3               the run of a rank is its number
    head-tail     4 ranks:   0 7 | 1 6 | 2 5 | 3 4       under causal patterns all ranks have as much to do
    counted       by the pattern: runs are dealt out so that the blocks with pairs are even
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .needs import classes

KINDS = ("consecutive", "head-tail", "counted")


@dataclass(frozen=True)
class Layout:
    """``runs[r]`` are the numbers of the runs that rank r holds, in the order in which it holds them."""

    runs: tuple[tuple[int, ...], ...]

    def __post_init__(self) -> None:
        each = {len(held) for held in self.runs}
        found = sorted(run for held in self.runs for run in held)
        if len(each) != 1 or found != list(range(len(found))) or not found:
            raise ValueError(
                f"expected a layout in which each rank holds as many runs, and each run lies on one rank, but got "
                f"{[list(held) for held in self.runs]}"
            )

    @property
    def ranks(self) -> int:
        """How many ranks there are."""
        return len(self.runs)

    @property
    def count(self) -> int:
        """How many runs there are."""
        return self.ranks * len(self.runs[0])

    @property
    def owners(self) -> Any:
        """The rank of each run, [count]."""
        owners = np.empty(self.count, np.int64)
        for rank, held in enumerate(self.runs):
            owners[list(held)] = rank
        return owners

    def shard(self, x: Any, rank: int, dim: int = 2) -> Any:
        """A rank's part of a whole tensor, along ``dim``."""
        import torch

        length = x.shape[dim]
        if length % self.count:
            raise ValueError(f"expected a length that {self.count} runs divide, but got {length}")
        each = x.split(length // self.count, dim)
        return torch.cat([each[run] for run in self.runs[rank]], dim)

    def unshard(self, parts: Sequence[Any], dim: int = 2) -> Any:
        """The whole tensor from the parts of all ranks."""
        import torch

        if len(parts) != self.ranks:
            raise ValueError(f"expected the parts of {self.ranks} ranks, but got {len(parts)}")
        found: list[Any] = [None] * self.count
        for part, held in zip(parts, self.runs, strict=True):
            for run, piece in zip(held, part.chunk(len(held), dim), strict=True):
                found[run] = piece
        return torch.cat(found, dim)


def layout(kind: str, ranks: int, pattern: Any = None, length: int | None = None, *, runs: int = 2) -> Layout:
    """The layout of a ``kind``: "consecutive", "head-tail", or "counted", which asks for the pattern and the length of
    the whole; then each rank holds as many as ``runs`` runs."""
    if kind not in KINDS:
        raise ValueError(f"expected a layout among {', '.join(KINDS)}, but got {kind!r}")
    if ranks < 1:
        raise ValueError(f"expected at least one rank, but got {ranks}")
    if kind == "consecutive":
        return Layout(tuple((rank,) for rank in range(ranks)))
    if kind == "head-tail":
        return Layout(tuple((rank, 2 * ranks - 1 - rank) for rank in range(ranks)))
    if length is None or length % (ranks * runs):
        raise ValueError(f"expected the length of the whole, which {ranks * runs} runs divide, but got {length}")
    return counted(classes(pattern, length, length, ranks * runs), ranks)


def counted(found: Any, ranks: int) -> Layout:
    """Runs dealt out by what is to be done for their rows, the most first, each to the rank with least so far that may
    still have one. ``found`` are classes of blocks [count, count]."""
    work = (np.asarray(found, np.float64) / 2).sum(axis=1)  # a partial block is half of a full one
    each = len(work) // ranks
    held: list[list[int]] = [[] for _ in range(ranks)]
    load = np.zeros(ranks)
    for run in sorted(range(len(work)), key=lambda run: (-work[run], run)):
        rank = min((r for r in range(ranks) if len(held[r]) < each), key=lambda r: (load[r], r))
        held[rank].append(run)
        load[rank] += work[run]
    return Layout(tuple(tuple(sorted(runs)) for runs in held))
