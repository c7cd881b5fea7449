# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""The patterns that there are; ``weft.patterns`` lists them."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

from ..compiler import places
from .checks import array, integer, sizes_of
from .pattern import Pattern
from .text import SPAN


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
        [None if v is None else integer("window", name, v) for name, v in (("left", left), ("right", right))],
    )


def block_window(w: int | tuple[int, int], grid: tuple[int, int] | None = None) -> Pattern:
    """p and m lie in one window of ``w`` tokens; with ``w`` = (rows, columns), in one window of a grid of tokens that
    are numbered row by row. Windows at the ends are ragged."""
    sizes = sizes_of("block_window", "w", w, (1, 2))
    if grid is None and len(sizes) == 2:
        raise places.error(
            f"expected a grid for a window of two sizes, but got None for {sizes}",
            "weft.block_window((7, 7), grid=(56, 56))",
        )
    if grid is None:
        return Pattern("block_window", (sizes, ()))
    sides = sizes_of("block_window", "grid", grid, (2,))
    if len(sides) != 2:
        raise places.error(f"expected 'grid' of weft.block_window to be (rows, columns), but got {grid!r}")
    return Pattern("block_window", (sizes * 2 if len(sizes) == 1 else sizes, sides))


def prefix(n: int) -> Pattern:
    """m < n. Prefix-LM is weft.prefix(n) | weft.causal()."""
    return Pattern("prefix", (integer("prefix", "n", n, 0),))


def global_tokens(n: int) -> Pattern:
    """p < n or m < n: the first tokens see all and are seen by all."""
    return Pattern("global_tokens", (integer("global_tokens", "n", n, 0),))


def strided(step: int) -> Pattern:
    """step divides p - m."""
    return Pattern("strided", (integer("strided", "step", step, 1),))


def dilated(step: int, width: int) -> Pattern:
    """step divides p - m, and |p - m| <= step * width."""
    steps, reach = integer("dilated", "step", step, 1), integer("dilated", "width", width, 0)
    integer("dilated", "step * width", steps * reach)
    return Pattern("dilated", (steps, reach))


def neighbourhood(
    shape: int | Sequence[int], kernel: int | Sequence[int], dilation: int | Sequence[int] = 1
) -> Pattern:
    """On each axis of a grid of tokens exactly ``kernel`` keys around the query, among those of its residue under the
    dilation; the window is moved inwards at borders, as NATTEN has it. One number stands for all axes."""
    sides = sizes_of("neighbourhood", "shape", shape, (1, 2, 3))
    taps, steps = (
        given * len(sides) if len(given) == 1 else given
        for given in (
            sizes_of("neighbourhood", "kernel", kernel, (1, len(sides))),
            sizes_of("neighbourhood", "dilation", dilation, (1, len(sides))),
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
    count = integer("random_blocks", "per_row", per_row, 0)
    return Pattern("random_blocks", (number, count, integer("random_blocks", "block", block, 1)))


def document(q_ids: Any, k_ids: Any) -> Pattern:
    """Equal ids: int32 arrays [N] or [B, N], and [M] or [B, M]; a B of 1 stands for all."""
    arrays = [array("document", name, a, (1, 2)) for name, a in (("q_ids", q_ids), ("k_ids", k_ids))]
    return Pattern("document", arrays)


def blocks(index: Any, count: Any, *, block: int | tuple[int, int]) -> Pattern:
    """Block row r of ``block[0]`` queries has the blocks of ``block[1]`` keys index[b, h, r, :count[b, h, r]]: index
    [B, H, R, K] and count [B, H, R], of int32; a B or an H of 1 stands for all. R is at least N / block[0], rounded up;
    fewer rows are refused."""
    sizes = sizes_of("blocks", "block", block, (2,))
    arrays = [array("blocks", "index", index, (4,)), array("blocks", "count", count, (3,))]
    return Pattern("blocks", (*arrays, sizes * 2 if len(sizes) == 1 else sizes))


def block_bitmap(bits: Any, *, block: int | tuple[int, int]) -> Pattern:
    """Blocks of ``block[0]`` queries and ``block[1]`` keys that are set in ``bits`` [B, H, R, C], bool; a B or an H
    of 1 stands for all. R and C are at least N / block[0] and M / block[1], rounded up; smaller tables are refused."""
    sizes = sizes_of("block_bitmap", "block", block, (2,))
    found = array("block_bitmap", "bits", bits, (4,))
    return Pattern("block_bitmap", (found, sizes * 2 if len(sizes) == 1 else sizes))


def span(lower: Any, upper: Any, first: Any, past: Any) -> Pattern:
    """lower[b, h, n] <= m < upper[b, h, n]: each query's keys follow one another, and neither bound ever falls from a
    query to the next. The same of each key: first[b, h, m] <= n < past[b, h, m]; where no query has it, first >= past.

    Arrays of int32, [B, Hkv, N] twice and [B, Hkv, M] twice, of as many heads as keys have, or 1. What they say is
    taken as promised: bounds from 0 to M and to N that never fall, the same pairs in both. Results of others are
    wrong, but nothing outside of the tensors is read or written."""
    arrays = [array("span", name, a, (3,)) for name, a in zip(SPAN, (lower, upper, first, past), strict=True)]
    return Pattern("span", arrays)


def mask(f: Callable[[Any, Any, Any, Any], Any], scattered: bool = False) -> Pattern:
    """The pairs of which f(b, h, n, m) is true: of batch, query head and raw indices, by comparisons, & | ~, integer
    arithmetic and elements t[b, h, n] of arrays.

    ``scattered`` says that pairs are left out here and there, as chance does: then no kernel goes through the pairs
    beforehand to find blocks that are whole or empty.
    """
    if not callable(f):
        raise places.error(f"expected a function of (b, h, n, m), but got '{type(f).__name__}'")
    return Pattern("mask", (f, True) if scattered else (f,))


def per_head(patterns: Sequence[Pattern]) -> Pattern:
    """Query head h has patterns[h]."""
    try:
        parts = list(patterns)
    except TypeError:
        given = places.described(patterns)
        raise places.error(f"expected a list of patterns for weft.per_head, but got {given}") from None
    if not parts:
        raise places.error("expected at least one pattern for weft.per_head, but got none")
    for part in parts:
        if not isinstance(part, Pattern):
            raise places.error(f"expected patterns for weft.per_head, but got '{type(part).__name__}'")
    return Pattern("per_head", (), parts)


def is_formula(pattern: Pattern) -> bool:
    """Whether a pattern's blocks follow from arithmetic on positions, without asking pairs: of leaves the bands, and
    what is made of such."""
    if pattern.parts:
        return pattern.spelling != "section" and all(map(is_formula, pattern.parts))
    on_a_grid = pattern.spelling == "block_window" and bool(pattern.values[1])
    return pattern.spelling in _BANDS and not on_a_grid


_BY_DISTANCE = ("full", "causal", "window", "strided", "dilated")
_BANDS = ("full", "causal", "window", "block_window", "prefix", "global_tokens")


def from_starts(pattern: Pattern, first: Any) -> Pattern:
    """The pattern of which positions count from where their sequence begins: ``first`` [N], of tokens of packed
    sequences. Of pairs of two sequences it may say anything."""
    name, values = pattern.spelling, pattern.values
    if name in _BY_DISTANCE or (name == "shift" and pattern.parts[0].spelling in _BY_DISTANCE):
        return pattern
    if name in ("and", "or", "not", "per_head", "transpose"):
        return Pattern(name, values, [from_starts(part, first) for part in pattern.parts])
    if name == "prefix":
        return mask(lambda b, h, n, m: m - first[m] < values[0])
    if name == "global_tokens":
        return mask(lambda b, h, n, m: (n - first[n] < values[0]) | (m - first[m] < values[0]))
    if name == "block_window" and not values[1]:
        (w,) = values[0]
        return mask(lambda b, h, n, m: (n - first[n]) // w == (m - first[m]) // w)
    if name == "mask":
        return mask(lambda b, h, n, m: values[0](b, h, n - first[n], m - first[m]))
    raise ValueError(f"expected a pattern of positions in packed sequences, but got {pattern!r}")
