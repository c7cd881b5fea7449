# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""How keys and values travel. A route is a list of steps; a step, moves that are under way together while every rank
computes with what it has. What no rank needs does not move.

    ring         from neighbour to neighbour, both ways round, as far as somebody needs it: d steps for ranks d apart
    all-to-all   from who has it straight to each who needs it, in one step
    all-gather   what somebody needs to all, in one step
"""

from __future__ import annotations

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


def route(needed: Any, owners: Any, rotate: str, rank: int | None = None) -> tuple[Step, ...]:
    """The steps by which every rank gets what it needs: ``needed`` [ranks, runs] of bool. Of one ``rank``, those moves
    that it has a part in."""
    others = _others(needed, owners)
    if rotate == "ring":
        return _ring(others, owners, rank)
    goes = _goes(others, owners, rotate)
    if not goes.any():
        return ()
    if rank is not None:
        goes[np.arange(len(goes)) != rank] &= owners == rank
    pairs = zip(*map(np.ndarray.tolist, np.nonzero(goes)), strict=True)
    return (tuple(sorted(Move(run, int(owners[run]), target) for target, run in pairs)),)


def _others(needed: Any, owners: Any) -> Any:
    """What ranks need of others."""
    others = np.array(needed, bool)
    others[owners, np.arange(len(owners))] = False
    return others


def _goes(others: Any, owners: Any, rotate: str) -> Any:
    """What goes to whom, where all of it goes in one step."""
    if rotate == "all-to-all":
        return others.copy()
    return _others(np.broadcast_to(others.any(axis=0), others.shape), owners)


def reach(others: Any, owners: Any) -> tuple[Any, Any]:
    """How far each run travels forwards and backwards, [runs] each: to whom it is nearer that way."""
    ranks = len(others)
    distance = (np.arange(ranks)[:, None] - owners[None, :]) % ranks
    ahead = np.where(others & (2 * distance <= ranks), distance, 0)
    behind = np.where(others & (2 * distance > ranks), ranks - distance, 0)
    return ahead.max(axis=0, initial=0), behind.max(axis=0, initial=0)


def _ring(others: Any, owners: Any, rank: int | None) -> tuple[Step, ...]:
    ranks = len(others)
    ahead, behind = reach(others, owners)
    steps = []
    for step in range(1, 1 + int(max(ahead.max(initial=0), behind.max(initial=0)))):
        moves = []
        for way, far in ((1, ahead), (-1, behind)):
            sources = (owners + way * (step - 1)) % ranks
            goes = far >= step
            if rank is not None:
                goes &= (sources == rank) | ((sources + way) % ranks == rank)
            for run in np.flatnonzero(goes):
                source = int(sources[run])
                moves.append(Move(int(run), source, (source + way) % ranks))
        steps.append(tuple(sorted(moves)))
    return tuple(steps)


def arrivals(needed: Any, owners: Any, rotate: str) -> Any:
    """The step after which each rank has each run that it needs, [ranks, runs]: 0 of its own, -1 of what it does not
    need."""
    others = _others(needed, owners)
    ranks = len(others)
    if rotate != "ring":
        return np.where(others, 1, np.where(needed, 0, -1))
    distance = (np.arange(ranks)[:, None] - owners[None, :]) % ranks
    return np.where(needed, np.minimum(distance, ranks - distance), -1)


def counted(needed: Any, owners: Any, rotate: str) -> tuple[Any, Any]:
    """How many runs each rank sends and receives while each step is computed, [steps + 1, ranks]: the route's moves,
    counted without making them."""
    others = _others(needed, owners)
    ranks = len(others)
    if rotate != "ring":
        goes = _goes(others, owners, rotate)
        sent, received = np.zeros((2, int(goes.any()) + 1, ranks))
        np.add.at(sent[0], owners, goes.sum(axis=0))
        received[0] = goes.sum(axis=1)
        return sent, received
    ahead, behind = reach(others, owners)
    steps = int(max(ahead.max(initial=0), behind.max(initial=0)))
    sent, received = np.zeros((2, steps + 1, ranks))
    for step in range(steps):
        for way, far in ((1, ahead), (-1, behind)):
            source = (owners[far > step] + way * step) % ranks
            np.add.at(sent[step], source, 1)
            np.add.at(received[step], (source + way) % ranks, 1)
    return sent, received
