# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Patterns: which pairs of a query and a key attend. Values that combine: & | ~ .shift(n) weft.per_head .transpose().

With N queries and M keys, query n stands at position p = n + (M - N): the last query at the last key.

    weft.full()                      every pair
    weft.causal()                    m <= p
    weft.window(left, right)         p - left <= m <= p + right; None is open
    weft.block_window(w)             p and m in one window of w; (rows, columns) with grid=(h, w) over a grid of tokens
    weft.prefix(n)                   m < n
    weft.global_tokens(n)            p < n or m < n
    weft.strided(step)               step divides p - m
    weft.dilated(step, width)        step divides p - m, and |p - m| <= step * width
    weft.neighbourhood(shape, kernel, dilation=1)    as NATTEN, on one to three axes
    weft.random_blocks(seed, per_row, block)         per_row distinct blocks of keys for each block of queries
    weft.document(q_ids, k_ids)      equal ids, [N] or [B, N] and [M] or [B, M]
    weft.blocks(index, count, block=(bm, bn))        blocks listed: index [B, H, R, K], count [B, H, R]
    weft.block_bitmap(bits, block=(bm, bn))          blocks set: bits [B, H, R, C]
    weft.span(lower, upper, first, past)             lower[b, h, n] <= m < upper[b, h, n]; its transpose by first, past
    weft.mask(f)                     f(b, h, n, m) of scalars gives the truth
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

from .programs import places

_LARGEST = 2**30
_SPAN = ("lower", "upper", "first", "past")


class Pattern:
    """A set of pairs of queries and keys. Immutable; two are equal where they are built alike from the same arrays."""

    __slots__ = ("_parts", "_spelling", "_values")
    _spelling: str
    _values: tuple[Any, ...]
    _parts: tuple[Pattern, ...]

    def __init__(self, spelling: str, values: Sequence[Any] = (), parts: Sequence[Pattern] = ()):
        for name, value in (("_spelling", spelling), ("_values", tuple(values)), ("_parts", tuple(parts))):
            object.__setattr__(self, name, value)

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError("a pattern does not change: combine it by & | ~ into another")

    def __reduce__(self) -> Any:
        return Pattern, (self._spelling, self._values, self._parts)

    __array_ufunc__ = None  # NumPy's operators leave theirs to ours

    def __and__(self, other: Any) -> Pattern:
        return _joined("and", self, _other(other, "&"))

    def __or__(self, other: Any) -> Pattern:
        return _joined("or", self, _other(other, "|"))

    __rand__, __ror__ = __and__, __or__  # whose other operand is no pattern

    def __invert__(self) -> Pattern:
        return self._parts[0] if self._spelling == "not" else Pattern("not", (), (self,))

    def __bool__(self) -> bool:
        raise places.error("expected a truth, but got a pattern", "combine patterns by & | ~, not by and, or, not")

    def shift(self, n: int) -> Pattern:
        """The pattern with (n, m + ``n``) where this has (n, m)."""
        return Pattern("shift", (_integer("shift", "n", n),), (self,))

    def transpose(self) -> Pattern:
        """The pattern of M queries and N keys with (m, n) where this, of N and M, has (n, m)."""
        return self._parts[0] if self._spelling == "transpose" else Pattern("transpose", (), (self,))

    def lower(self, operands: list[Any], masks: list[Any]) -> str:
        """The attribute's text. Arrays and mask functions it names are appended to the lists, unless there already."""
        return _lowered(self, operands, masks.append, len(masks), None)[0]

    def matrix(self, n: int, m: int | None = None, *, batch: int = 1, heads: int = 1) -> Any:
        """Which pairs of ``n`` queries and ``m`` keys (None: as many) belong: bool [N, M], or [B, H, N, M] where that
        depends on batch or head. ``batch`` and ``heads`` say how many there are where only a mask tells them apart."""
        from .patterns_host import matrix

        return matrix(self, n, n if m is None else m, batch, heads)

    def blocks_summary(self, n: int, m: int, bm: int, bn: int, *, batch: int = 1, heads: int = 1) -> Any:
        """The classes of blocks of ``bm`` queries and ``bn`` keys: 0 empty, 1 partial, 2 full; uint8 [R, C], or
        [B, H, R, C] as ``matrix`` has it."""
        from .patterns_host import blocks_summary

        return blocks_summary(self, n, m, bm, bn, batch, heads)

    def heads(self) -> set[int]:
        """How many patterns each weft.per_head in this one has: as many as there are query heads."""
        own = {len(self._parts)} if self._spelling == "per_head" else set()
        return own.union(*(part.heads() for part in self._parts))

    def __weft_reads__(self, reads: Any) -> Any:
        return reads.values((self._spelling, self._values, self._parts))

    def _key(self) -> tuple[Any, ...]:
        values = tuple(v if isinstance(v, (int, tuple, type(None))) else id(v) for v in self._values)
        return (self._spelling, values, *(part._key() for part in self._parts))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Pattern) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def __repr__(self) -> str:
        sign = {"and": " & ", "or": " | "}.get(self._spelling)
        if sign:
            return "(" + sign.join(map(repr, self._parts)) + ")"
        if self._spelling == "not":
            return f"~{self._parts[0]!r}"
        values = ", ".join(_spelled(v) for v in self._values)
        if self._spelling in ("shift", "transpose"):
            return f"{self._parts[0]!r}.{self._spelling}({values})"
        if self._spelling == "per_head":
            return f"weft.per_head([{', '.join(map(repr, self._parts))}])"
        return f"weft.{self._spelling}({values})"


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
    parts = [part for each in (a, b) for part in (each._parts if each._spelling == spelling else (each,))]
    return Pattern(spelling, (), parts)


# ---- To attributes --------------------------------------------------------------------------------------------------

# How a pattern sees a pair (b, h, n, m), in numbers; None while a program is traced.
Place = tuple[Any, Any, Any, Any]


def _lowered(
    pattern: Pattern, operands: list[Any], add_mask: Callable[[Any], None], masks: int, place: Place | None
) -> tuple[str, int]:
    """The attribute's text, and how many masks there are then. Masks are added as functions, or, where there is a
    place, with the place at which they are asked."""
    name, values = pattern._spelling, pattern._values
    if name == "mask":
        add_mask(values[0] if place is None else (values[0], place))
        return f"#attn.mask<{masks}>", masks + 1
    if place is not None:
        b, h, n, m = place
        if name == "shift":
            place = (b, h, n, m - values[0])
        elif name == "transpose":
            place = (b, h, m, n)
    parts = []
    for part in pattern._parts:
        text, masks = _lowered(part, operands, add_mask, masks, place)
        parts.append(text)
    if parts:
        parts += [str(v) for v in values]
        return f"#attn.{name}<{', '.join(parts)}>", masks
    return _leaf_text(name, values, operands), masks


def _leaf_text(name: str, values: tuple[Any, ...], operands: list[Any]) -> str:
    def number(array: Any) -> int:
        for i, other in enumerate(operands):
            if other is array:
                return i
        operands.append(array)
        return len(operands) - 1

    def listed(sizes: Sequence[int]) -> str:
        return f"[{', '.join(map(str, sizes))}]"

    def named(**parameters: Any) -> str:
        return f"#attn.{name}<{', '.join(f'{key} = {value}' for key, value in parameters.items())}>"

    match name:
        case "window":
            sides = {side: v for side, v in zip(("left", "right"), values, strict=True) if v is not None}
            return named(**sides) if sides else "#attn.full"
        case "block_window":
            window, grid = values
            return f"#attn.block_window<{listed(window)}" + (f", grid = {listed(grid)}>" if grid else ">")
        case "dilated":
            return named(step=values[0], width=values[1])
        case "neighbourhood":
            return named(shape=listed(values[0]), kernel=listed(values[1]), dilation=listed(values[2]))
        case "random_blocks":
            return named(seed=values[0], perRow=values[1], block=values[2])
        case "document":
            return named(queryIds=number(values[0]), keyIds=number(values[1]))
        case "blocks":
            index, count, (rows, columns) = values
            return named(index=number(index), count=number(count), blockM=rows, blockN=columns)
        case "block_bitmap":
            bits, (rows, columns) = values
            return named(bits=number(bits), blockM=rows, blockN=columns)
        case "span":
            return named(**{side: number(v) for side, v in zip(_SPAN, values, strict=True)})
    return f"#attn.{name}<{', '.join(map(str, values))}>" if values else f"#attn.{name}"


# ---- Checks ---------------------------------------------------------------------------------------------------------


def _integer(where: str, name: str, value: Any, least: int = -_LARGEST) -> int:
    try:
        if isinstance(value, bool):
            raise TypeError
        number = operator.index(value)
    except TypeError:
        raise places.error(
            f"expected '{name}' of weft.{where} to be an integer, but got '{type(value).__name__}'"
        ) from None
    if not least <= number <= _LARGEST:
        raise places.error(f"expected '{name}' of weft.{where} to be from {least} to {_LARGEST}, but got {number}")
    return number


def _sizes(where: str, name: str, value: Any, counts: Sequence[int]) -> tuple[int, ...]:
    """An integer, or a sequence of as many as ``counts`` allows; each at least 1."""
    if isinstance(value, (list, tuple)):
        if len(value) not in counts:
            wanted = " or ".join(map(str, counts))
            raise places.error(f"expected {wanted} sizes for '{name}' of weft.{where}, but got {len(value)}")
        return tuple(_integer(where, name, v, 1) for v in value)
    return (_integer(where, name, value, 1),)


def _array(where: str, name: str, value: Any, ranks: Sequence[int]) -> Any:
    shape = getattr(value, "shape", None)
    rank = len(shape) if isinstance(shape, tuple) else None
    if rank is None:
        raise places.error(
            f"expected '{name}' of weft.{where} to be an array, but got '{type(value).__name__}'",
            "numpy.array(..., dtype=numpy.int32), or a tensor",
        )
    if rank not in ranks:
        wanted = " or ".join(map(str, ranks))
        raise places.error(f"expected {wanted} axes for '{name}' of weft.{where}, but got {rank}")
    return value


# ---- The patterns ---------------------------------------------------------------------------------------------------


def full() -> Pattern:
    """Every pair."""
    return Pattern("full")


def causal() -> Pattern:
    """m <= p: each query attends to what comes before it, and to itself."""
    return Pattern("causal")


def window(left: int | None, right: int | None) -> Pattern:
    """p - left <= m <= p + right. None leaves a side open; negative sides leave out the nearest keys."""
    return Pattern(
        "window",
        [None if v is None else _integer("window", name, v) for name, v in (("left", left), ("right", right))],
    )


def block_window(w: int | tuple[int, int], grid: tuple[int, int] | None = None) -> Pattern:
    """p and m lie in one window of ``w`` tokens; with ``w`` = (rows, columns), in one window of a grid of tokens that
    are numbered row by row. Windows at the ends are ragged."""
    sizes = _sizes("block_window", "w", w, (1, 2))
    if grid is None and len(sizes) == 2:
        raise places.error("expected a grid for a window of two sizes", "weft.block_window((7, 7), grid=(56, 56))")
    if grid is None:
        return Pattern("block_window", (sizes, ()))
    sides = _sizes("block_window", "grid", grid, (2,))
    if len(sides) != 2:
        raise places.error("expected 'grid' of weft.block_window to be (rows, columns)")
    return Pattern("block_window", (sizes * 2 if len(sizes) == 1 else sizes, sides))


def prefix(n: int) -> Pattern:
    """m < n. Prefix-LM is weft.prefix(n) | weft.causal()."""
    return Pattern("prefix", (_integer("prefix", "n", n, 0),))


def global_tokens(n: int) -> Pattern:
    """p < n or m < n: the first tokens see all and are seen by all."""
    return Pattern("global_tokens", (_integer("global_tokens", "n", n, 0),))


def strided(step: int) -> Pattern:
    """step divides p - m."""
    return Pattern("strided", (_integer("strided", "step", step, 1),))


def dilated(step: int, width: int) -> Pattern:
    """step divides p - m, and |p - m| <= step * width."""
    steps, reach = _integer("dilated", "step", step, 1), _integer("dilated", "width", width, 0)
    _integer("dilated", "step * width", steps * reach)
    return Pattern("dilated", (steps, reach))


def neighbourhood(
    shape: int | Sequence[int], kernel: int | Sequence[int], dilation: int | Sequence[int] = 1
) -> Pattern:
    """On each axis of a grid of tokens exactly ``kernel`` keys around the query, among those of its residue under the
    dilation; the window is moved inwards at borders, as NATTEN has it. One number stands for all axes."""
    sides = _sizes("neighbourhood", "shape", shape, (1, 2, 3))
    taps, steps = (
        given * len(sides) if len(given) == 1 else given
        for given in (
            _sizes("neighbourhood", "kernel", kernel, (1, len(sides))),
            _sizes("neighbourhood", "dilation", dilation, (1, len(sides))),
        )
    )
    for side, k, d in zip(sides, taps, steps, strict=True):
        if k * d > side:
            raise places.error(f"expected kernel * dilation to be at most the axis' size {side}, but got {k} * {d}")
    return Pattern("neighbourhood", (sides, taps, steps))


def random_blocks(seed: int, per_row: int, block: int) -> Pattern:
    """``per_row`` distinct blocks of ``block`` keys for each block of ``block`` queries, the same for every batch and
    head, drawn by Philox-2x32-10 from the seed and the row."""
    try:
        number = operator.index(seed)
    except TypeError:
        given = places.described(seed)
        raise places.error(f"expected 'seed' of weft.random_blocks to be an integer, but got {given}") from None
    if not -(2**63) <= number < 2**63:
        raise places.error(f"expected 'seed' of weft.random_blocks to have 64 bits, but got {number}")
    count = _integer("random_blocks", "per_row", per_row, 0)
    return Pattern("random_blocks", (number, count, _integer("random_blocks", "block", block, 1)))


def document(q_ids: Any, k_ids: Any) -> Pattern:
    """Equal ids: int32 arrays [N] or [B, N], and [M] or [B, M]."""
    arrays = [_array("document", name, a, (1, 2)) for name, a in (("q_ids", q_ids), ("k_ids", k_ids))]
    return Pattern("document", arrays)


def blocks(index: Any, count: Any, *, block: int | tuple[int, int]) -> Pattern:
    """Block row r of ``block[0]`` queries has the blocks of ``block[1]`` keys index[b, h, r, :count[b, h, r]]; both of
    int32."""
    sizes = _sizes("blocks", "block", block, (2,))
    arrays = [_array("blocks", "index", index, (4,)), _array("blocks", "count", count, (3,))]
    return Pattern("blocks", (*arrays, sizes * 2 if len(sizes) == 1 else sizes))


def block_bitmap(bits: Any, *, block: int | tuple[int, int]) -> Pattern:
    """Blocks of ``block[0]`` queries and ``block[1]`` keys that are set in ``bits`` [B, H, R, C], bool."""
    sizes = _sizes("block_bitmap", "block", block, (2,))
    array = _array("block_bitmap", "bits", bits, (4,))
    return Pattern("block_bitmap", (array, sizes * 2 if len(sizes) == 1 else sizes))


def span(lower: Any, upper: Any, first: Any, past: Any) -> Pattern:
    """lower[b, h, n] <= m < upper[b, h, n]: each query's keys follow one another, and neither bound ever falls from a
    query to the next. The same of each key: first[b, h, m] <= n < past[b, h, m]; where no query has it, first >= past.

    Arrays of int32, [B, Hkv, N] twice and [B, Hkv, M] twice, of as many heads as keys have, or 1. What they say is
    taken as promised: bounds from 0 to M and to N that never fall, the same pairs in both. Results of others are
    wrong, but nothing outside of the tensors is read or written."""
    arrays = [_array("span", name, a, (3,)) for name, a in zip(_SPAN, (lower, upper, first, past), strict=True)]
    return Pattern("span", arrays)


def mask(f: Callable[[Any, Any, Any, Any], Any]) -> Pattern:
    """The pairs of which f(b, h, n, m) is true: of batch, query head and raw indices, by comparisons, & | ~, integer
    arithmetic and elements t[b, h, n] of arrays."""
    if not callable(f):
        raise places.error(f"expected a function of (b, h, n, m), but got '{type(f).__name__}'")
    return Pattern("mask", (f,))


def per_head(patterns: Sequence[Pattern]) -> Pattern:
    """Query head h has patterns[h]."""
    try:
        parts = list(patterns)
    except TypeError:
        given = places.described(patterns)
        raise places.error(f"expected a list of patterns for weft.per_head, but got {given}") from None
    if not parts:
        raise places.error("expected at least one pattern for weft.per_head")
    for part in parts:
        if not isinstance(part, Pattern):
            raise places.error(f"expected patterns for weft.per_head, but got '{type(part).__name__}'")
    return Pattern("per_head", (), parts)
