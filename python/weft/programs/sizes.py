# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Sizes of a program's tensors: integers, symbols and multiples of a symbol, made equal as operations demand it.

While a program is traced every size has a symbol of its own. Operations unify them: the keys' batch is the queries',
"4*Hkv" heads share Hkv. Where the sizes of a call are known, unifying checks them, so that a mistake is found on the
line that makes it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from ..compiler import places


class Mismatch(Exception):
    """Two sizes that cannot be equal."""


@dataclass(eq=False)
class Symbol:
    """A size with a name. ``value`` is what it is in the present call; ``bound`` what it turned out to be.

    ``names`` are what it may be called, each with a rank: the lowest wins. ``least`` is the smallest number for which
    the compiled form is meant.
    """

    value: int | None = None
    names: list[tuple[int, str]] = field(default_factory=list)
    bound: Size | None = None
    least: int = 0


@dataclass(frozen=True)
class Size:
    """``factor`` times ``symbol``; the integer ``factor`` where there is no symbol."""

    factor: int
    symbol: Symbol | None = None

    @property
    def resolved(self) -> Size:
        """This size in terms of symbols that are not bound."""
        factor, symbol = self.factor, self.symbol
        while symbol is not None and symbol.bound is not None:
            factor, symbol = factor * symbol.bound.factor, symbol.bound.symbol
        return Size(factor, symbol)

    @property
    def static(self) -> int | None:
        """The integer that this size is in every call, or None."""
        found = self.resolved
        return found.factor if found.symbol is None else None

    @property
    def value(self) -> int | None:
        """The integer that this size is in the present call, where that is known."""
        found = self.resolved
        if found.symbol is None:
            return found.factor
        return None if found.symbol.value is None else found.factor * found.symbol.value

    def times(self, factor: int) -> Size:
        """This size times an integer."""
        return Size(self.factor * factor, self.symbol)

    def called(self, rank: int, name: str) -> None:
        """Propose a name for the symbol of a size that is one."""
        found = self.resolved
        if found.symbol is not None and found.factor == 1:
            found.symbol.names.append((rank, name))

    def at_least(self, number: int) -> None:
        """Keep the compiled form for sizes from ``number`` on."""
        found = self.resolved
        if found.symbol is not None:
            found.symbol.least = max(found.symbol.least, -(-number // found.factor))

    # A size as Python sees it: asking for its number fixes it for this compiled form.
    def __index__(self) -> int:
        return fix(self)

    __int__ = __index__

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Size):
            return isinstance(other, int) and fix(self) == other
        mine, theirs = self.resolved, other.resolved
        if mine.symbol is theirs.symbol:
            return mine.factor == theirs.factor
        if mine.value is None or theirs.value is None:
            return False
        if mine.value == theirs.value:  # Python goes one way here: the compiled form is for equal sizes
            unify(mine, theirs)
            return True
        return fix(mine) == fix(theirs)

    __hash__ = None  # type: ignore[assignment]

    def _reckoned(self, other: Any) -> Any:
        """No size is computed of sizes and numbers alone; what scalars and tensors do with a size is theirs."""
        if not isinstance(other, (int, float, Size)):
            return NotImplemented
        raise places.error(
            f"expected a number to compute with, but got the size '{self!r}', which each call has its own of",
            "int(x.shape[2]) makes it an integer of the compiled form; in a mask or score_mod begin with an index: "
            "m - k.shape[2] + q.shape[2]",
        )

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = _reckoned
    __floordiv__ = __rfloordiv__ = __mod__ = __rmod__ = __lt__ = __le__ = __gt__ = __ge__ = _reckoned

    def __repr__(self) -> str:
        found = self.resolved
        if found.symbol is None:
            return str(found.factor)
        name = min(found.symbol.names)[1] if found.symbol.names else "?"
        return name if found.factor == 1 else f"{found.factor}*{name}"


@dataclass(frozen=True)
class Requirement:
    """A size that is no less than another in every call; ``what`` says it in words, as errors have it after
    "expected"."""

    size: Size
    at_least: Size
    what: str

    def holds(self, number: Callable[[Size], int | None]) -> bool:
        """Whether it does where ``number`` tells the integers that the sizes are; true where it does not. Symbols of
        torch's are not asked, which would be for these sizes from then on: a run has integers."""
        size, least = number(self.size), number(self.at_least)
        return not isinstance(size, int) or not isinstance(least, int) or size >= least

    @property
    def settled(self) -> bool:
        """Whether both sizes are the same in every call."""
        return self.size.static is not None and self.at_least.static is not None


def fix(size: Size) -> int:
    """Make a size static, and give it. Mismatch where the call's sizes are not known, or the size is 0: no kernel is
    compiled for nothing."""
    found = size.resolved
    if found.symbol is not None:
        if found.symbol.value is None:
            raise Mismatch(f"expected the size '{size!r}' to be an integer")
        found.symbol.bound = Size(int(found.symbol.value))
    if not found.value:
        raise Mismatch("expected a size of at least 1 where the compiled form has an integer, but got 0")
    return size.resolved.factor


def forget(sizes: Iterable[Size]) -> None:
    """Let go of what sizes are in the present call."""
    for size in sizes:
        symbol = size.symbol
        while symbol is not None:
            symbol.value, symbol = None, symbol.bound.symbol if symbol.bound is not None else None


def unify(a: Size, b: Size) -> None:
    """Make two sizes the same. Mismatch where they cannot be, or are not in the present call."""
    a, b = a.resolved, b.resolved
    if a.value is not None and b.value is not None and a.value != b.value:
        raise Mismatch(f"expected equal sizes, but got {a.value} and {b.value}")
    if a.symbol is b.symbol:
        if a.factor != b.factor:
            raise Mismatch(f"expected equal sizes, but got {a!r} and {b!r}")
        return
    if a.symbol is None or (b.symbol is not None and a.factor % b.factor == 0):
        a, b = b, a
    # now b = k * (a's factor), or b is an integer, where that is possible at all
    assert a.symbol is not None
    if b.factor % a.factor:
        if b.symbol is None:
            raise Mismatch(f"expected a multiple of {a.factor}, but got {b.factor}")
        unify(a, Size(fix(b)))
        return
    target = Size(b.factor // a.factor, b.symbol)
    if target.symbol is not None:
        if target.factor == 1:
            target.symbol.names.extend(a.symbol.names)
        if target.symbol.value is None and a.symbol.value is not None:
            target.symbol.value = a.symbol.value // target.factor
        target.symbol.least = max(target.symbol.least, -(-a.symbol.least // target.factor))
    a.symbol.bound = target


def group(many: Size, few: Size) -> int:
    """Make ``many`` a multiple of ``few``, in the ratio of the present call; gives the ratio."""
    a, b = many.resolved, few.resolved
    if a.symbol is b.symbol and b.factor and a.factor % b.factor == 0:
        return a.factor // b.factor
    if a.value is None or b.value is None:
        if a.symbol is not None and b.symbol is not None and a.factor == b.factor == 1:
            raise Mismatch(f"expected the ratio of '{a!r}' and '{b!r}' to be known; write the larger one as a multiple")
        unify(a, b)
        return 1
    if a.value == b.value == 0:  # any ratio: none is the simplest
        unify(a, b)
        return 1
    if b.value == 0 or a.value % b.value:
        raise Mismatch(f"expected a multiple of {b.value}, but got {a.value}")
    ratio = int(a.value // b.value)
    unify(many, few.times(ratio))
    return ratio


def larger(a: Size, b: Size) -> bool:
    """Whether ``a`` is more than ``b``, as far as the present call, or the symbol they share, says."""
    if a.value is not None and b.value is not None:
        return a.value > b.value
    return a.resolved.factor > b.resolved.factor


def name_all(sizes: Iterable[Size]) -> dict[int, str]:
    """A name for each symbol that is not bound, by ``id`` of the symbol: its best proposal that is still free."""
    found: dict[int, str] = {}
    taken: set[str] = set()
    symbols: list[Symbol] = []
    for size in sizes:
        symbol = size.resolved.symbol
        if symbol is not None and symbol not in symbols:
            symbols.append(symbol)
    for symbol in sorted(symbols, key=lambda s: min(s.names)[0] if s.names else 99):
        proposals = [name for _, name in sorted(symbol.names)] or ["S"]
        number = 2
        name = next((n for n in proposals if n not in taken), "")
        while not name:
            name = f"{proposals[0]}{number}" if f"{proposals[0]}{number}" not in taken else ""
            number += 1
        taken.add(name)
        found[id(symbol)] = name
    return found


def spell(size: Size, names: dict[int, str]) -> str:
    """A size in the language of grid expressions."""
    found = size.resolved
    if found.symbol is None:
        return str(found.factor)
    name = names[id(found.symbol)]
    return name if found.factor == 1 else f"{found.factor}*{name}"
