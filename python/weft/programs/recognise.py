# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Masks that are patterns with formulas: what ``q_idx >= kv_idx`` or ``q_idx // 64 == kv_idx // 64`` says of a pair is
weft.causal() or weft.block_window(64), whose blocks are found by arithmetic and not from a mask.

A mask is traced, and its comparisons are read as bounds on n, m or n - m:

    n >= m                       weft.causal()
    n - m <= 8                   weft.window(8, None)
    (n >= m) & (m < 4) | ...     what & | ~ make of them
    anything else                no pattern: the mask stays a mask

A pattern counts a query's position p from the last query at the last key, a mask's n counts from 0. So the pattern is
the mask's where there are as many queries as keys, and where the mask is given p in the place of n, unless it has
bounds on n alone.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ..compiler.diagnostics import CompilationError
from ..compiler.reads import key_of
from ..patterns import Pattern, block_window, causal, full, prefix, window
from ..patterns.checks import LARGEST
from ..recent import Recent
from . import graph
from .foreign import tracing, trust_libraries
from .graph import Graph, Operation, Region, Value
from .regions import mask_region
from .sizes import Size, Symbol


@dataclass(frozen=True)
class _Linear:
    """rows · n + keys · m + constant."""

    rows: int = 0
    keys: int = 0
    constant: int = 0

    def times(self, factor: int) -> _Linear:
        return _Linear(self.rows * factor, self.keys * factor, self.constant * factor)

    def plus(self, other: _Linear) -> _Linear:
        return _Linear(self.rows + other.rows, self.keys + other.keys, self.constant + other.constant)


@dataclass(frozen=True)
class _Quotient:
    """n // size, or m // size."""

    of: _Linear
    size: int


@dataclass(frozen=True)
class _Absolute:
    """|of|."""

    of: _Linear


# What a value of a mask's region is; None is anything else.
_Meaning = _Linear | _Quotient | _Absolute | Pattern | None
_NAMES = ("eq", "ne", "lt", "le", "gt", "ge")  # arith.cmpi's predicates


def pattern_of(function: Callable[..., Any]) -> Pattern | None:
    """The pattern with formulas that a mask(b, h, p, m) is; None where it is none, or where it cannot be traced, which
    its use in a program will say. It is remembered for functions of equal code that read equal values, and None of
    others, such as those that read tensors."""
    trust_libraries()
    key = key_of(function)
    if key is None:
        return None
    found = _known.get(key)
    return (found or _known.keep(key, (_traced(function),)))[0]


_known: Recent[Any, tuple[Pattern | None]] = Recent(256)


def _traced(function: Callable[..., Any]) -> Pattern | None:
    unknown = (Size(1, Symbol()), Size(1, Symbol()), Size(1, Symbol()), Size(1, Symbol()))
    with graph.tracing_into(Graph("mask")), tracing():
        try:
            region = mask_region(function, unknown, moved=[False] * 4)
        except (CompilationError, ArithmeticError, AttributeError, LookupError, TypeError, ValueError):
            return None
    return _meaning_of(region)


def _meaning_of(region: Region) -> Pattern | None:
    known: dict[int, _Meaning] = {
        id(region.arguments[2]): _Linear(rows=1),
        id(region.arguments[3]): _Linear(keys=1),
    }
    for operation in region.body:
        if operation.name == "attn.yield":
            found = known.get(id(operation.operands[0]))
            return found if isinstance(found, Pattern) else None
        if len(operation.results) == 1:
            known[id(operation.results[0])] = _meaning(operation, known)
    return None


def _meaning(operation: Operation, known: dict[int, _Meaning]) -> _Meaning:
    def of(value: Value) -> _Meaning:
        return known.get(id(value))

    name = operation.name.removeprefix("arith.")
    if name == "constant":
        return _constant(operation.attributes["value"])
    if len(operation.operands) != 2:
        return None
    a, b = map(of, operation.operands)
    if name == "cmpi":
        predicate = str(operation.attributes["predicate"]).split(" ")[0]
        return _compared(_NAMES[int(predicate)], a, b)
    if isinstance(a, Pattern) and isinstance(b, Pattern):
        return _joined(name, a, b)
    if isinstance(a, _Linear) and isinstance(b, _Linear):
        return _computed(name, a, b)
    return None


def _constant(value: Any) -> _Meaning:
    if value in ("true", "false"):
        return full() if value == "true" else ~full()
    if not isinstance(value, str):  # a real, which is written when the IR is made
        return None
    return _Linear(constant=int(value.split(" ")[0]))


def _joined(name: str, a: Pattern, b: Pattern) -> _Meaning:
    if name == "andi":
        return b if a == full() else a if b == full() else a & b
    if name == "ori":
        return b if a == ~full() else a if b == ~full() else a | b
    if name == "xori" and full() in (a, b):  # ~x
        return ~(a if b == full() else b)
    return None


def _computed(name: str, a: _Linear, b: _Linear) -> _Meaning:
    if name == "addi":
        return a.plus(b)
    if name == "subi":
        return a.plus(b.times(-1))
    if name == "muli" and a in (_Linear(), _Linear(constant=a.constant)):
        return b.times(a.constant)
    if name == "muli" and b == _Linear(constant=b.constant):
        return a.times(b.constant)
    if name == "maxsi" and a == b.times(-1):
        return _Absolute(a)
    if name == "divsi" and a in (_Linear(1), _Linear(0, 1)) and b == _Linear(constant=b.constant) and b.constant > 0:
        return _Quotient(a, b.constant)
    return None


def _compared(order: str, a: _Meaning, b: _Meaning) -> _Meaning:
    if isinstance(a, _Quotient) and isinstance(b, _Quotient):
        one_window = a.size == b.size and a.of != b.of and a.size <= LARGEST
        return {"eq": block_window(a.size), "ne": ~block_window(a.size)}.get(order) if one_window else None
    if isinstance(a, _Absolute) and isinstance(b, _Linear):  # |x| <= y: x <= y and -x <= y
        both = "andi" if order in ("lt", "le") else "ori" if order in ("gt", "ge") else ""
        sides = _compared(order, a.of, b), _compared(order, a.of.times(-1), b)
        return _joined(both, *sides) if all(isinstance(side, Pattern) for side in sides) else None  # type: ignore[arg-type]
    if not isinstance(a, _Linear) or not isinstance(b, _Linear):
        return None
    difference = a.plus(b.times(-1))  # difference ⋈ 0
    if abs(difference.constant) >= LARGEST:
        return None
    if order in ("ne", "ge", "gt"):
        opposite = _compared({"ne": "eq", "ge": "lt", "gt": "le"}[order], a, b)
        return _inverted(opposite) if isinstance(opposite, Pattern) else None
    bounds = {"lt": (None, -1), "le": (None, 0), "eq": (0, 0)}[order]  # of the difference
    return _bounded(difference, *bounds)


def _inverted(pattern: Pattern) -> Pattern:
    """The pairs that a pattern has not, spelled as one does: n >= m is weft.causal(), not ~weft.window(-1, None)."""
    if pattern.spelling == "window":
        left, right = pattern.values
        if left is None and right is not None:
            return _window(-right - 1, None)
        if right is None and left is not None:
            return _window(None, -left - 1)
    return ~pattern


def _window(left: int | None, right: int | None) -> Pattern:
    return causal() if (left, right) == (None, 0) else window(left, right)


def _bounded(value: _Linear, least: int | None, most: int | None) -> _Meaning:
    """The pairs of which least <= value <= most."""
    low = None if least is None else least - value.constant
    high = None if most is None else most - value.constant
    match (value.rows, value.keys):
        case (0, 0):
            inside = (low is None or low <= 0) and (high is None or high >= 0)
            return full() if inside else ~full()
        case (1, -1):  # low <= n - m <= high
            return _window(high, None if low is None else -low)
        case (-1, 1):
            return _window(None if low is None else -low, high)
        case (0, 1):
            return _between(low, high)
        case (0, -1):
            return _between(None if high is None else -high, None if low is None else -low)
        case (1, 0):
            return _of_rows(_between(low, high))
        case (-1, 0):
            return _of_rows(_between(None if high is None else -high, None if low is None else -low))
    return None


def _between(low: int | None, high: int | None) -> Pattern:
    """low <= m <= high; no position is below 0."""
    if high is not None and high < max(low or 0, 0):
        return ~full()
    parts = [] if high is None else [prefix(high + 1)]
    parts += [~prefix(low)] if low is not None and low > 0 else []
    return functools.reduce(operator.and_, parts) if parts else full()


def _of_rows(pattern: Pattern) -> Pattern:
    """What a pattern says of keys, said of queries."""
    return pattern if pattern in (full(), ~full()) else pattern.transpose()
