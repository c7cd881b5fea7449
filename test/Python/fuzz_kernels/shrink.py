# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Makes a failing kernel smaller, as long as it fails."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass, replace

from greedy import smallest

from . import describe as d


def shrink(kernel: d.Kernel, fails: Callable[[d.Kernel], bool]) -> d.Kernel:
    """The smallest kernel found that still fails."""
    return smallest(kernel, smaller, fails)


def smaller(kernel: d.Kernel) -> Iterator[d.Kernel]:
    """Kernels with a statement, a program, warps or a clause less; only those whose values are all made."""
    for body in without_one(kernel.body):
        if is_closed(body):
            yield replace(kernel, body=body)
    if kernel.programs > 1:
        yield replace(kernel, programs=kernel.programs - 1)
    if kernel.warps > 1:
        yield replace(kernel, warps=kernel.warps // 2)
    used = {name for s in d_every(kernel.body) for name in names_of(s)}
    buffers = tuple(buffer for buffer in kernel.buffers if buffer.name in used)
    if buffers != kernel.buffers:
        yield replace(kernel, buffers=buffers)
    for body in with_simpler_clause(kernel.body):
        yield replace(kernel, body=body)


def d_every(body: tuple) -> Iterator[object]:
    for statement in body:
        yield statement
        yield from d_every(getattr(statement, "body", ()))


def names_of(statement: object) -> set[str]:
    return {v for f in fields(statement) if isinstance(v := getattr(statement, f.name), str)}


def without_one(body: tuple) -> Iterator[tuple]:
    for i, statement in enumerate(body):
        yield body[:i] + body[i + 1 :]
        if isinstance(statement, (d.Loop, d.Turn)):
            for inner in without_one(statement.body):
                yield (*body[:i], replace(statement, body=inner), *body[i + 1 :])


def is_closed(body: tuple, known: frozenset[str] = frozenset({"0"})) -> bool:
    """Whether every value is made before it is used."""
    made = set(known)
    for s in body:
        inner = set(made)
        if isinstance(s, (d.Loop, d.Turn)):
            if not is_closed(s.body, frozenset(made)):
                return False
            inner |= {x.to for x in d_every(s.body) if hasattr(x, "to")}
        for name in ("a", "b", "value", "expected", "carried", "added"):
            if getattr(s, name, None) is not None and getattr(s, name) not in inner:
                return False
        if hasattr(s, "to"):
            made.add(s.to)
    return True


_SIMPLER = {"mask": None, "index": "e", "policy": "", "sem": None, "scope": None, "count": 1, "axis": 0}


def with_simpler_clause(body: tuple) -> Iterator[tuple]:
    for i, s in enumerate(body):
        if not is_dataclass(s):
            continue
        for name, simple in _SIMPLER.items():
            if getattr(s, name, simple) == simple or (isinstance(s, d.Where) and name == "mask"):
                continue
            changed = {name: simple}
            if name == "mask" and isinstance(s, d.Load):
                changed["other"] = None
            yield (*body[:i], replace(s, **changed), *body[i + 1 :])
        if isinstance(s, (d.Loop, d.Turn)):
            for inner in with_simpler_clause(s.body):
                yield (*body[:i], replace(s, body=inner), *body[i + 1 :])
