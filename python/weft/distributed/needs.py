# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Which runs of keys each run of queries needs: what the pattern leaves empty is neither sent nor computed.

Where the whole is small, or the pattern a formula, the classes are exact. Where a long pattern is not, they are what
follows from its parts: a run may then be taken for partial that is empty, never the other way about.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from ..patterns import Pattern
from ..patterns.families import is_formula

EMPTY, PARTIAL, FULL = 0, 1, 2
#: pairs that are asked one by one where no formula has them
_FEW = 1 << 22


def classes(pattern: Any, n: int, m: int, count: int) -> Any:
    """The classes of ``count`` runs of ``n`` queries with as many of ``m`` keys, uint8 [count, count]: 0 where no head
    of no batch has a pair, 2 where all have all."""
    if pattern is None:
        return np.full((count, count), FULL, np.uint8)
    if pattern.is_plain:
        return _of_plain(pattern, n, m, count)
    return _classes(pattern, n, m, count)


@functools.lru_cache(64)
def _of_plain(pattern: Pattern, n: int, m: int, count: int) -> Any:
    found = _classes(pattern, n, m, count)
    found.flags.writeable = False
    return found


def _classes(pattern: Pattern, n: int, m: int, count: int) -> Any:
    if n * m <= _FEW or is_formula(pattern):
        return _asked(pattern, n, m, count)
    some, every = _bounds(pattern, n, m, count)
    return np.where(every, FULL, np.where(some, PARTIAL, EMPTY)).astype(np.uint8)


def _asked(pattern: Pattern, n: int, m: int, count: int) -> Any:
    """By the compiler, of all batches and heads together."""
    found = pattern.blocks_summary(n, m, n // count, m // count)
    if found.ndim == 2:
        return np.ascontiguousarray(found)
    low, high = found.min(axis=(0, 1)), found.max(axis=(0, 1))
    return np.where(low == FULL, FULL, np.where(high == EMPTY, EMPTY, PARTIAL)).astype(np.uint8)


def _bounds(pattern: Pattern, n: int, m: int, count: int) -> tuple[Any, Any]:
    """Where some pair may belong, and where every one is known to; bool [count, count]."""
    parts = [
        _bounds(part, n, m, count) for part in pattern.parts if pattern.spelling in ("and", "or", "not", "per_head")
    ]
    somes, everies = [some for some, _ in parts], [every for _, every in parts]
    match pattern.spelling:
        case "and":
            return np.logical_and.reduce(somes), np.logical_and.reduce(everies)
        case "or":
            return np.logical_or.reduce(somes), np.logical_or.reduce(everies)
        case "per_head":
            return np.logical_or.reduce(somes), np.logical_and.reduce(everies)
        case "not":
            return ~everies[0], ~somes[0]
        case "document":
            return _documents(pattern, n, m, count)
        case "span":
            return _spans(pattern, n, m, count)
        case "dilated":
            from_window, _ = _bounds(_reach(pattern), n, m, count)
            return from_window, np.zeros((count, count), bool)
    if is_formula(pattern):
        found = _asked(pattern, n, m, count)
        return found != EMPTY, found == FULL
    return np.ones((count, count), bool), np.zeros((count, count), bool)


def _reach(pattern: Pattern) -> Pattern:
    step, width = pattern.values
    return Pattern("window", (step * width, step * width))


def _documents(pattern: Pattern, n: int, m: int, count: int) -> tuple[Any, Any]:
    """By the ids that each run has."""
    from ..patterns.host import to_numpy

    some, every = np.zeros((count, count), bool), np.ones((count, count), bool)
    queries, keys = (np.atleast_2d(to_numpy(ids)) for ids in pattern.values)
    for what, ids, length in (("q_ids", queries, n), ("k_ids", keys, m)):
        if ids.shape[-1] != length:
            raise ValueError(
                f"expected '{what}' of weft.document for the whole sequence of {length} tokens, but got {ids.shape[-1]}"
            )
    batches = max(len(queries), len(keys))
    for q, k in zip(np.broadcast_to(queries, (batches, n)), np.broadcast_to(keys, (batches, m)), strict=True):
        of_rows, of_keys = ([frozenset(run.tolist()) for run in np.split(ids, count)] for ids in (q, k))
        meet = np.array([[not a.isdisjoint(b) for b in of_keys] for a in of_rows])
        some |= meet
        every &= np.array([[len(a) == 1 and a == b for b in of_keys] for a in of_rows])
    return some, every


def _spans(pattern: Pattern, n: int, m: int, count: int) -> tuple[Any, Any]:
    """By the keys that each query has."""
    from ..patterns.host import to_numpy

    lower, upper = (to_numpy(bounds) for bounds in pattern.values[:2])
    for what, bounds in (("lower", lower), ("upper", upper)):
        if bounds.shape[-1] != n:
            raise ValueError(
                f"expected '{what}' of weft.span for the whole sequence of {n} tokens, but got {bounds.shape[-1]}"
            )
    first = np.arange(count) * (m // count)
    low, high = (bounds.reshape(-1, count, n // count, 1) for bounds in (lower, upper))
    reach = np.minimum(high, first + m // count) - np.maximum(low, first)  # how many keys of each run a query has
    return (reach > 0).any((0, 2)), (reach == m // count).all((0, 2))
