# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""A pattern as a value: which pairs of a query and a key attend, by what it is made of."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..compiler import places
from .checks import LARGEST, array, integer
from .text import PAIR, lowered


class Pattern:
    """A set of pairs of queries and keys. Immutable; two are equal where they are built alike from the same arrays."""

    __slots__ = ("parts", "spelling", "values")
    __weft_fields__ = ("spelling", "values", "parts")  # of which one is made
    spelling: str
    values: tuple[Any, ...]
    parts: tuple[Pattern, ...]

    def __init__(self, spelling: str, values: Sequence[Any] = (), parts: Sequence[Pattern] = ()):
        for name, value in (("spelling", spelling), ("values", tuple(values)), ("parts", tuple(parts))):
            object.__setattr__(self, name, value)

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError("a pattern does not change: combine it by & | ~ into another")

    def __reduce__(self) -> Any:
        return Pattern, (self.spelling, self.values, self.parts)

    __array_ufunc__ = None  # NumPy's operators leave theirs to ours

    def __and__(self, other: Any) -> Pattern:
        return _joined("and", self, _other(other, "&"))

    def __or__(self, other: Any) -> Pattern:
        return _joined("or", self, _other(other, "|"))

    __rand__, __ror__ = __and__, __or__  # whose other operand is no pattern

    def __invert__(self) -> Pattern:
        return self.parts[0] if self.spelling == "not" else Pattern("not", (), (self,))

    def __bool__(self) -> bool:
        raise places.error("expected a truth, but got a pattern", "combine patterns by & | ~, not by and, or, not")

    def shift(self, n: int) -> Pattern:
        """The pattern with (n, m + ``n``) where this has (n, m)."""
        by = integer("shift", "n", n)
        if (most := abs(by) + self._shifts()) > LARGEST:
            raise places.error(f"expected shifts of at most {LARGEST} in all, but got {most}")
        return Pattern("shift", (by,), (self,))

    def _shifts(self) -> int:
        """How far the shifts around any one part of the pattern move it in all."""
        own = abs(self.values[0]) if self.spelling == "shift" else 0
        return int(own) + max((part._shifts() for part in self.parts), default=0)

    def transpose(self) -> Pattern:
        """The pattern of M queries and N keys with (m, n) where this, of N and M, has (n, m)."""
        return self.parts[0] if self.spelling == "transpose" else Pattern("transpose", (), (self,))

    def section(self, rows: Any, keys: Any) -> Pattern:
        """The pattern of a section of its rows and its keys: (n, m) where this has (n + rows[0], m + keys[0]) of
        rows[1] queries and keys[1] keys. ``rows`` and ``keys`` are int32 arrays [2]: one compiled form serves all
        sections. Arrays that the pattern names, and a mask's indices, are those of the whole.

        What they say is taken as promised: that the section lies within, and how many tokens the pattern's arrays
        have."""
        places_of = [array("section", name, a, (1,)) for name, a in (("rows", rows), ("keys", keys))]
        return Pattern("section", places_of, (self,))

    def lower(self, operands: list[Any], masks: list[Any]) -> str:
        """The attribute's text. Arrays it names are appended to the list, unless there already, and its masks as pairs
        of a function and the PairIndex that each argument is."""
        return lowered(self, operands, masks.append, len(masks), PAIR)[0]

    def matrix(self, n: int, m: int | None = None, *, batch: int = 1, heads: int = 1) -> Any:
        """Which pairs of ``n`` queries and ``m`` keys (None: as many) belong: bool [N, M], or [B, H, N, M] where that
        depends on batch or head. ``batch`` and ``heads`` say how many there are where only a mask tells them apart."""
        from . import host  # loads NumPy, which only matrices need

        return host.matrix(self, n, n if m is None else m, batch, heads)

    def blocks_summary(self, n: int, m: int, bm: int, bn: int, *, batch: int = 1, heads: int = 1) -> Any:
        """The classes of blocks of ``bm`` queries and ``bn`` keys: 0 empty, 1 partial, 2 full; uint8 [R, C], or
        [B, H, R, C] as ``matrix`` has it."""
        from . import host

        return host.blocks_summary(self, n, m, bm, bn, batch, heads)

    @property
    def is_plain(self) -> bool:
        """Whether there are no arrays and functions in it."""
        return all(isinstance(v, (int, tuple, type(None))) for v in self.values) and all(p.is_plain for p in self.parts)

    def heads(self) -> set[int]:
        """How many patterns each weft.per_head in this one has: as many as there are query heads."""
        own = {len(self.parts)} if self.spelling == "per_head" else set()
        return own.union(*(part.heads() for part in self.parts))

    def __weft_reads__(self, reads: Any) -> Any:
        return reads.values((self.spelling, self.values, self.parts))

    def _key(self) -> tuple[Any, ...]:
        values = tuple(v if isinstance(v, (int, tuple, type(None))) else id(v) for v in self.values)
        return (self.spelling, values, *(part._key() for part in self.parts))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Pattern) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def __repr__(self) -> str:
        sign = {"and": " & ", "or": " | "}.get(self.spelling)
        if sign:
            return "(" + sign.join(map(repr, self.parts)) + ")"
        if self.spelling == "not":
            return f"~{self.parts[0]!r}"
        values = ", ".join(_spelled(v) for v in self.values)
        if self.spelling in ("shift", "transpose"):
            return f"{self.parts[0]!r}.{self.spelling}({values})"
        if self.spelling == "per_head":
            return f"weft.per_head([{', '.join(map(repr, self.parts))}])"
        if self.spelling == "kept":  # of dropout
            return f"{self.parts[0]!r} with weights of {self.parts[1]!r}"
        return f"weft.{self.spelling}({values})"


def _other(value: Any, sign: str) -> Pattern:
    if not isinstance(value, Pattern):
        wrong = places.error(
            f"expected a pattern on both sides of '{sign}', but got {places.described(value)}",
            "weft.causal(), weft.window(left, right), weft.mask(f), ... make patterns",
        )
        raise TypeError(str(wrong))  # as Python's own operators
    return value


def _spelled(value: Any) -> str:
    if isinstance(value, (int, tuple, type(None))):
        return repr(value)
    if callable(value):
        return getattr(value, "__name__", "...")
    return f"<{', '.join(map(str, value.shape))}>"


def _joined(spelling: str, a: Pattern, b: Pattern) -> Pattern:
    parts = [part for each in (a, b) for part in (each.parts if each.spelling == spelling else (each,))]
    return Pattern(spelling, (), parts)
