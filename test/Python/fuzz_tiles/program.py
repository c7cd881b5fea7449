# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""What a random program is: operations on named tiles, loops and branches around them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Tile:
    """A value's type."""

    dtype: str
    shape: tuple[int, ...]

    @property
    def size(self) -> int:
        size = 1
        for extent in self.shape:
            size *= extent
        return size


@dataclass(frozen=True)
class Op:
    """``out = name(ins)``, or ``out`` is several names; ``attrs`` are what the operation takes besides."""

    name: str
    out: tuple[str, ...]
    ins: tuple[str, ...]
    attrs: tuple[Any, ...] = ()


@dataclass(frozen=True)
class Loop:
    """``kind`` is "constant" or "argument", of n, or "while"; ``carried`` maps names outside to names made by the body,
    of the same types."""

    kind: str
    count: int
    counter: str
    carried: tuple[tuple[str, str], ...]
    body: tuple[Any, ...]
    first: int = 0
    step: int = 1


@dataclass(frozen=True)
class Branch:
    """On a number: assigns to names outside what either side made."""

    condition: str
    assigned: tuple[tuple[str, str, str], ...]
    then: tuple[Any, ...]
    otherwise: tuple[Any, ...]


@dataclass(frozen=True)
class Call:
    """A function of the program's: parameters' names, and results' names, inside and out."""

    function: str
    parameters: tuple[tuple[str, str], ...]
    results: tuple[tuple[str, str], ...]
    body: tuple[Any, ...]


@dataclass(frozen=True)
class Buffer:
    """Memory: ``each`` elements for each program, or for all together where shared."""

    name: str
    dtype: str
    each: int
    role: str  # "in", "out", "inout", "shared"


@dataclass(frozen=True)
class Program:
    seed: int
    programs: int
    warps: int
    stages: int
    n: int
    buffers: tuple[Buffer, ...]
    body: tuple[Any, ...]
    types: dict[str, Tile] = field(hash=False, compare=False)
    target: str = "sm_80"


def every(body: tuple[Any, ...]) -> Iterator[Any]:
    """All statements, inner ones too."""
    for each in body:
        yield each
        for inner in blocks(each):
            yield from every(inner)


def blocks(statement: Any) -> tuple[tuple[Any, ...], ...]:
    """The statements inside of one."""
    if isinstance(statement, (Loop, Call)):
        return (statement.body,)
    if isinstance(statement, Branch):
        return (statement.then, statement.otherwise)
    return ()


def made(statement: Any) -> tuple[str, ...]:
    """The names that a statement gives a value."""
    if isinstance(statement, Op):
        return statement.out
    if isinstance(statement, Loop):
        return tuple(name for name, _ in statement.carried)
    if isinstance(statement, Branch):
        return tuple(name for name, _, _ in statement.assigned)
    return tuple(outer for _, outer in statement.results)


def used(statement: Any) -> tuple[str, ...]:
    """The names that a statement reads, inner statements included."""
    if isinstance(statement, Op):
        return statement.ins
    inner = tuple(name for block in blocks(statement) for each in block for name in used(each))
    if isinstance(statement, Loop):
        return tuple(x for pair in statement.carried for x in pair) + inner
    if isinstance(statement, Branch):
        return (statement.condition, *(x for names in statement.assigned for x in names), *inner)
    return tuple(outer for outer, _ in statement.parameters) + inner + tuple(i for i, _ in statement.results)
