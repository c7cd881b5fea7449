# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Mixers and operations of concrete arrays, outside of a program."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..compiler import places
from . import graph, materialise, static
from .program import Program

_programs: dict[Any, Program] = {}
_RECURRENCES = ("linear_attention", "delta_rule")
_MIXERS = ("softmax", "mean", "toeplitz", "diag", *_RECURRENCES)


def run(call: Callable[..., Any], args: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
    """An operation on arrays: what it computes, or the mixer that it makes."""
    name = call.__name__
    if name in _MIXERS:
        with graph.tracing_into(graph.Graph(name)):
            call(*args, **keywords)  # what is wrong with it is said here, not where it is applied
        return ConcreteMixer(call, args, keywords)
    if name == "domain":
        return call.__wrapped__(*args, **keywords)  # type: ignore[attr-defined]
    found = _programs.get(call)
    if found is None:
        found = _programs[call] = Program(call)
    return found(*args, **keywords)


class ConcreteMixer:
    """A mixer of concrete arrays: what makes it, and of what."""

    __array_ufunc__ = None

    def __init__(self, make: Callable[..., Any], args: tuple[Any, ...], keywords: dict[str, Any]):
        self.make, self.args, self.keywords = make, args, keywords

    def __weft_parts__(self) -> list[tuple[str, Any]]:
        return [("make", self.make), ("args", self.args), ("keywords", self.keywords)]

    @staticmethod
    def __weft_rebuild__(parts: dict[str, Any]) -> Any:
        return parts["make"](*parts["args"], **parts["keywords"])

    def __add__(self, other: Any) -> ConcreteMixer:
        if not isinstance(other, ConcreteMixer):
            raise places.error(
                f"expected a mixer on the right of '+', but got {places.described(other)}", static.ADDING
            )
        return ConcreteMixer(_add, (self, other), {})

    def __matmul__(self, other: Any) -> Any:
        if isinstance(other, ConcreteMixer):
            return ConcreteMixer(_compose, (self, other), {})
        return _apply(self, other)

    def __radd__(self, other: Any) -> ConcreteMixer:
        raise places.error(f"expected a mixer on the left of '+', but got {places.described(other)}")

    def __sub__(self, other: Any) -> ConcreteMixer:
        if not isinstance(other, ConcreteMixer):
            raise places.error(
                f"expected a mixer on the right of '-', but got {places.described(other)}", static.ADDING
            )
        return self + -other

    def __rsub__(self, other: Any) -> ConcreteMixer:
        raise places.error(f"expected a mixer on the left of '-', but got {places.described(other)}")

    def __neg__(self) -> ConcreteMixer:
        return self * -1

    def __mul__(self, factor: Any) -> ConcreteMixer:
        return ConcreteMixer(_scale, (self, static.factor(factor)), {})

    __rmul__ = __mul__

    def __truediv__(self, divisor: Any) -> ConcreteMixer:
        return self * static.factor(divisor, divides=True)

    def __rmatmul__(self, other: Any) -> ConcreteMixer:
        given = places.described(other)
        raise places.error(f"expected a mixer on the left of '@', but got {given}", "A @ v applies a mixer to values")

    def matrix(self, n: int | None = None, *, heads: int | None = None) -> Any:
        """The matrix, float32 [B, H, N, M]; [B, H, C, N, M] where it differs by channel; a tuple for several domains.

        ``n`` is the length, and ``heads`` how many heads taps are for, where no operand says it.
        """
        n = None if n is None else static.integer("n", n, 1)
        heads = None if heads is None else static.integer("heads", heads, 1)
        return materialise.matrix(self, n, heads, _apply)

    def final_state(self, values: Any) -> Any:
        """What a recurrence leaves after these values: the state after the last token."""
        if self.make.__name__ not in _RECURRENCES:
            raise places.error(
                f"expected a mixer with a state, but got {self!r}", "weft.linear_attention and weft.delta_rule have one"
            )
        return _state(self, values)

    def __repr__(self) -> str:
        return f"<mixer {self.make.__name__}>"


def _add(a: Any, b: Any) -> Any:
    return a + b


def _scale(mixer: Any, factor: float) -> Any:
    return mixer * factor


def _compose(a: Any, b: Any) -> Any:
    return a @ b


def _applied(mixer: Any, values: Any) -> Any:
    return mixer @ values


def _left(mixer: Any, values: Any) -> Any:
    return mixer.final_state(values)


_apply, _state = Program(_applied), Program(_left)
