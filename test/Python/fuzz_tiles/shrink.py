# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Makes a failing program smaller, as long as it fails."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from greedy import smallest

from .program import Branch, Call, Loop, Op, Program, made, used


def shrink(program: Program, fails: Callable[[Program], bool]) -> Program:
    """The smallest program found that still fails."""
    return smallest(program, smaller, fails)


def smaller(program: Program) -> Iterator[Program]:
    """Programs with a statement less, or a simpler one; only those whose values are all made."""
    bodies = [*without(program.body, 8), *without(program.body, 1), *simpler(program)]
    for body in bodies:
        body = needed(body)
        if body != program.body and closed(body, frozenset()):
            names = {s.attrs[0] for s in _operations(body) if s.name in ("load", "store", "atomic")}
            buffers = tuple(b for b in program.buffers if b.name in names)
            yield replace(program, body=body, buffers=buffers)
    if program.programs > 1:
        yield replace(program, programs=1)
    if program.warps > 1:
        yield replace(program, warps=program.warps // 2)
    if program.stages > 1:
        yield replace(program, stages=1)
    if program.target != "sm_80":
        yield replace(program, target="sm_80")


def _operations(body: tuple[Any, ...]) -> list[Op]:
    from .program import every

    return [s for s in every(body) if isinstance(s, Op)]


def without(body: tuple[Any, ...], count: int) -> Iterator[tuple[Any, ...]]:
    """A body with some statements less, inner ones too."""
    for i in range(len(body) - count, -1, -count):
        yield body[:i] + body[i + count :]
    for i, s in enumerate(body):
        if isinstance(s, (Loop, Call)):
            for inner in without(s.body, 1):
                yield (*body[:i], replace(s, body=inner), *body[i + 1 :])
        if isinstance(s, Branch):
            yield body[:i] + s.then + body[i + 1 :]
            for inner in without(s.then, 1):
                yield (*body[:i], replace(s, then=inner), *body[i + 1 :])


def simpler(program: Program) -> Iterator[tuple[Any, ...]]:
    """A value loaded or filled in place of what makes it; plain orders, no masks; a loop's values dropped."""
    body = program.body
    for i, s in enumerate(body):
        if isinstance(s, Loop) and (s.first, s.step) != (0, 1):
            yield (*body[:i], replace(s, first=0, step=1), *body[i + 1 :])
        if isinstance(s, Loop) and len(s.carried) > 1:
            for pair in s.carried:
                yield (*body[:i], replace(s, carried=tuple(x for x in s.carried if x != pair)), *body[i + 1 :])
        if not isinstance(s, Op):
            continue
        if len(s.out) == 1 and s.name not in ("load", "full", "argument"):
            tile = program.types[s.out[0]]
            if tile.dtype != "int1":
                yield (*body[:i], Op("full", s.out, (), (tile.shape, 1, tile.dtype)), *body[i + 1 :])
        if s.name in ("load", "store", "atomic") and (s.attrs[2], s.attrs[3]) != ("e", None):
            yield (*body[:i], replace(s, attrs=(*s.attrs[:2], "e", None, *s.attrs[4:])), *body[i + 1 :])


def needed(body: tuple[Any, ...]) -> tuple[Any, ...]:
    """Without what nobody reads."""
    while True:
        read = {name for s in body for name in used(s)}
        kept = tuple(s for s in body if not _useless(s, read))
        if kept == body:
            return body
        body = kept


def _useless(s: Any, read: set[str]) -> bool:
    if isinstance(s, Op) and s.name in ("store", "atomic"):
        return False
    if any(x.name in ("store", "atomic") for x in _operations((s,))):
        return False
    return not set(made(s)) & read


def closed(body: tuple[Any, ...], known: frozenset[str]) -> bool:
    """Whether every value is made before it is used."""
    names = set(known)
    for s in body:
        if isinstance(s, Op):
            if not set(s.ins) <= names:
                return False
        elif isinstance(s, Loop):
            inner = frozenset({*names, s.counter})
            if not closed(s.body, inner) or not {x for p in s.carried for x in p} <= inner | _made(s.body):
                return False
        elif isinstance(s, Branch):
            both = names | _made(s.then), names | _made(s.otherwise)
            sides = {a for _, a, _ in s.assigned} <= both[0] and {b for _, _, b in s.assigned} <= both[1]
            if s.condition not in names or not sides or not {n for n, _, _ in s.assigned} <= names:
                return False
            if not (closed(s.then, frozenset(names)) and closed(s.otherwise, frozenset(names))):
                return False
        else:
            inner = frozenset(name for _, name in s.parameters)
            if not {x for x, _ in s.parameters} <= names or not closed(s.body, inner):
                return False
            if not {x for x, _ in s.results} <= inner | _made(s.body):
                return False
        names |= set(made(s))
    return True


def _made(body: tuple[Any, ...]) -> frozenset[str]:
    return frozenset(name for s in body for name in made(s))
