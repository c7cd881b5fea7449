# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""How keys and values travel. A route is a list of steps; a step, moves that are under way together while every rank
computes with what it has. What no rank needs does not move.

    ring         from neighbour to neighbour, both ways round, as far as somebody needs it: d steps for ranks d apart
    all-to-all   from who has it straight to each who needs it, in one step
    all-gather   what somebody needs to all, in one step
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

ROTATIONS = ("ring", "all-gather", "all-to-all")


@dataclass(frozen=True, order=True)
class Move:
    """A run's keys and values, from one rank to another."""

    run: int
    source: int
    target: int


Step = tuple[Move, ...]


def route(needed: Any, owners: Any, rotate: str) -> tuple[Step, ...]:
    """The steps by which every rank gets what it needs: ``needed`` [ranks, runs] of bool."""
    others = np.asarray(needed, bool).copy()
    runs = np.arange(len(owners))
    others[owners, runs] = False
    if rotate == "ring":
        return _ring(others, owners)
    if rotate == "all-gather":
        others = np.broadcast_to(others.any(axis=0), others.shape).copy()
        others[owners, runs] = False
    pairs = zip(*map(np.ndarray.tolist, np.nonzero(others)), strict=True)
    moves = sorted(Move(run, int(owners[run]), rank) for rank, run in pairs)
    return (tuple(moves),) if moves else ()


def reach(others: Any, owners: Any) -> tuple[Any, Any]:
    """How far each run travels forwards and backwards, [runs] each: to whom it is nearer that way."""
    ranks = len(others)
    distance = (np.arange(ranks)[:, None] - np.asarray(owners)[None, :]) % ranks
    ahead = np.where(others & (2 * distance <= ranks), distance, 0)
    behind = np.where(others & (2 * distance > ranks), ranks - distance, 0)
    return ahead.max(axis=0, initial=0), behind.max(axis=0, initial=0)


def _ring(others: Any, owners: Any) -> tuple[Step, ...]:
    ranks = len(others)
    ahead, behind = reach(others, owners)
    steps = []
    for step in range(1, 1 + int(max(ahead.max(initial=0), behind.max(initial=0)))):
        moves = []
        for way, far in ((1, ahead), (-1, behind)):
            for run in np.flatnonzero(far >= step):
                source = (int(owners[run]) + way * (step - 1)) % ranks
                moves.append(Move(int(run), source, (source + way) % ranks))
        steps.append(tuple(sorted(moves)))
    return tuple(steps)


def arrivals(steps: Sequence[Step], owners: Any, ranks: int) -> Any:
    """The step after which each rank has each run, [ranks, runs]: 0 of its own, -1 of what it never has."""
    found = np.full((ranks, len(owners)), -1, np.int64)
    found[owners, np.arange(len(owners))] = 0
    for number, moves in enumerate(steps, 1):
        for move in moves:
            found[move.target, move.run] = number
    return found
