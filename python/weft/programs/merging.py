# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Merging runs of adjacent tokens: weft.shift, weft.merge_decide, weft.merge_units."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from ..compiler import places
from ..language.types import float32, int1, int32
from ..patterns import span
from . import graph, scalars, static
from .dtypes import dtype_of
from .eager import operation
from .functions import sum
from .graph import TensorType, agreeing
from .mixers import segments, starts
from .scalars import Scalar
from .sizes import unify
from .tensors import Tensor, described, element, four_axes, map_tensors

MODES = ("sum", "last", "mean")


class Units(NamedTuple):
    """What weft.merge_units gives. Units are numbered along each (b, h) from 0; all tables are [B, Hkv, N].

    ``merged``  for each source a tensor of its shape, row m for unit m
    ``unit``    each token's unit, ``lower`` the first unit of its sequence
    ``upper``   tokens n see units lower[n] to upper[n] - 1
    ``ends``    by unit: one past its last token
    ``first``   by unit: tokens first[m] to ``past``[m] - 1 see it
    ``kept``    bool: the joins that are not dropped
    """

    merged: tuple[Any, ...]
    unit: Any
    lower: Any
    upper: Any
    ends: Any
    first: Any
    past: Any
    kept: Any

    @property
    def seen(self) -> Any:
        """The pattern: which tokens see which units."""
        return span(self.lower, self.upper, self.first, self.past)


@operation
def shift(x: Any, by: int = 1, cu_seqlens: Any = None) -> Any:
    """Rows of [B, H, N, D] or [B, H, N] moved along the sequence: row n is x's row n - by, 0 where there is none.
    With ``cu_seqlens`` [S+1] int32 rows stay within their sequence."""
    if not isinstance(x, Tensor) or x.ndim not in (3, 4):
        raise places.error(f"expected a tensor [B, H, N, D] or [B, H, N] to shift, but got {described(x)}")
    by = static.distance("by", by)
    if by == 0:
        raise places.error("expected by to be an integer other than 0, but got 0")
    if x.ndim == 4:
        with agreeing("expected a last size that is known"):
            int(x.sizes[3])
    operands = [x.value, *(t.value for t in starts(cu_seqlens, tokens=x.sizes[2]))]
    return Tensor(graph.tracing().one("attn.shift", operands, x.type, {"by": f"{by} : i64"}))


def _neighbours(k: Tensor, gain: Any, cu_seqlens: Any) -> list[Tensor]:
    """For each token its row, times the gain, by the one before, and both rows' squares; in float32."""
    k = k.to(float32) if gain is None else _times(k, gain)
    squares = sum(k * k, axis=3)
    return [sum(k * shift(k, 1, cu_seqlens), axis=3), squares, shift(squares, 1, cu_seqlens)]


def _cosine(product: Scalar, x: Scalar, y: Scalar) -> tuple[Scalar, Scalar]:
    """The cosine, 0 where a row is 0, and whether none is. (The product of two squares may leave float32's range.)"""
    some = (x > 0.0) & (y > 0.0)
    roots = [scalars.function("rsqrt", scalars.where(some, square, 1.0)) for square in (x, y)]
    return scalars.where(some, product * roots[0] * roots[1], 0.0), some


def _times(k: Tensor, gain: Any) -> Tensor:
    """k [B, H, N, D] times gain [H, D], in float32."""
    if not isinstance(gain, Tensor) or gain.ndim != 2:
        raise places.error(f"expected a gain [H, D], but got {described(gain)}")
    with agreeing("expected a gain [H, D] of the keys"):
        unify(k.sizes[1], gain.sizes[0])
        unify(k.sizes[3], gain.sizes[1])
    return map_tensors(lambda x: scalars.real(x) * element(gain, (index(1), index(3))), k, to=float32)


@operation
def merge_decide(
    k: Any,
    gain: Any = None,
    *,
    similarity_heads: int | None = None,
    similarity_threshold: float = 2e-4,
    difference_threshold: float = 0.0175,
    cu_seqlens: Any = None,
) -> Any:
    """Which tokens join the one before: bool [B, Hkv, N], of keys k [B, Hkv, N, D], times ``gain`` [Hkv, D] if given.

    (A norm's factor changes no cosine: keys are the same before it and after.)
    With c the cosine of two neighbours, the first ``similarity_heads`` heads (half of them unless given) join where
    1 - c < similarity_threshold, the others where abs(c) < difference_threshold. Zero rows and first tokens never do.
    """
    four_axes(k, "keys")
    heads = similar_heads(k, similarity_heads)
    similarity_threshold = static.real("similarity_threshold", similarity_threshold)
    difference_threshold = static.real("difference_threshold", difference_threshold)

    def decide(*neighbours: Scalar) -> Scalar:
        c, some = _cosine(*neighbours)
        similar, different = 1.0 - c < similarity_threshold, abs(c) < difference_threshold
        return some & scalars.where(index(1) < heads, similar, different)

    return map_tensors(decide, *_neighbours(k, gain, cu_seqlens))


def similar_heads(k: Tensor, given: int | None) -> int:
    """How many heads join similar tokens, the first ones."""
    count = int(k.sizes[1])
    if given is None:
        return (count + 1) // 2
    if isinstance(given, bool) or not isinstance(given, int) or not 0 <= given <= count:
        raise places.error(f"expected similarity_heads from 0 to {count}, the number of key heads, but got {given!r}")
    return given


def index(axis: int) -> Scalar:
    """In an elementwise expression: the position on an axis of the result."""
    return Scalar(graph.tracing().one("attn.index", [], scalars.I32, {"axis": f"{axis} : i64"}), scalars.POSITIONS)


@operation
def merge_units(
    joins: Any,
    *sources: Any,
    max_joins: int = 20,
    modes: str | Sequence[str] = "sum",
    offsets: int | Sequence[int] = 0,
    to: Any = None,
    cu_seqlens: Any = None,
) -> Any:
    """Merge runs of joined tokens into units; gives weft.programs.merging.Units.

    ``joins``    bool [B, Hkv, N]: token n joins the one before it. Those of sequences' first tokens are ignored
    ``sources``  tensors [B, Hkv, N, D] whose rows are merged: by ``modes`` summed ("sum", in float32), "last" or "mean"
    ``max_joins``  in a chain of joins, every (max_joins + 1)st is dropped: units have at most max_joins + 1 tokens
    ``offsets``  0, or 1: row m is that of unit m + 1 of the sequence, and units are seen one later
    ``to``       the type of the merged tensors; their sources' unless given
    """
    if not isinstance(joins, Tensor) or joins.ndim != 3 or not joins.dtype.is_bool():
        raise places.error(f"expected joins [B, Hkv, N] of bool, but got {described(joins)}", "compare: x != 0")
    max_joins = static.integer("max_joins", max_joins, 0)
    given_modes = _each("modes", modes, len(sources), MODES)
    given_offsets = _each("offsets", offsets, len(sources), (0, 1))
    for source in sources:
        four_axes(source, "a tensor to merge")
        static.floating("a tensor to merge", source)
        with agreeing("expected tensors to merge of the joins' batch, heads and length"):
            for axis in (0, 1, 2):
                unify(joins.sizes[axis], source.sizes[axis])
        with agreeing("expected a last size that is known"):
            int(source.sizes[3])
    lengths = starts(cu_seqlens, tokens=joins.sizes[2])
    if lengths:  # no join crosses from one sequence to the next
        joins = joins & has_predecessor(joins, cu_seqlens)
    attributes: dict[str, Any] = {
        "maxJoins": f"{max_joins} : i64",
        "modes": f"[{', '.join(f'#attn<merge {mode}>' for mode in given_modes)}]",
        "offsets": f"array<i64{': ' if sources else ''}{', '.join(map(str, given_offsets))}>",
        "operandSegmentSizes": segments(1, len(lengths), len(sources)),
    }
    merged = [TensorType(s.sizes, dtype_of(to) if to is not None else s.dtype) for s in sources]
    table, kept = TensorType(joins.sizes, int32), TensorType(joins.sizes, int1)
    operands = [t.value for t in (joins, *lengths, *sources)]
    made = graph.tracing().add("attn.merge_units", operands, [*merged, *[table] * 6, kept], attributes)
    results = [Tensor(value) for value in made.results]
    unit, lower, upper, ends, first, past, kept_joins = results[len(sources) :]
    if not any(given_offsets):  # tables that are the same
        upper, first = unit, ends
    return Units(tuple(results[: len(sources)]), unit, lower, upper, ends, first, past, kept_joins)


def has_predecessor(like: Tensor, cu_seqlens: Any) -> Tensor:
    """bool [B, H, N] as ``like``: whether a token has one before it in its sequence."""
    return shift(map_tensors(lambda x: x | ~x, like), 1, cu_seqlens)


def _each(name: str, given: Any, count: int, allowed: Sequence[Any]) -> list[Any]:
    single = isinstance(given, str) or not isinstance(given, Sequence)
    values = [given] * count if single else list(given)
    kinds = {type(each) for each in allowed}
    if len(values) != count or any(type(value) not in kinds or value not in allowed for value in values):
        wanted = " or ".join(map(repr, allowed))
        raise places.error(
            f"expected {name} to be {wanted}, or one such for each of {count} tensors, but got {given!r}"
        )
    return values


@operation
def merge_loss(
    k: Any, gain: Any, kept: Any, *, similarity_heads: int | None = None, pairs: str = "all", cu_seqlens: Any = None
) -> Any:
    """The compression loss of keys k [B, Hkv, N, D] times a gain [Hkv, D] or None, of which the joins ``kept`` merged:
    a float32 scalar.

    Σ l / merged - merged / pairs, where l is (1 - c)² of a similarity head's neighbours and c² of others', summed over
    all ``pairs`` or the "merged" ones; with nothing merged the sum is divided by the number of pairs.
    """
    four_axes(k, "keys")
    heads = similar_heads(k, similarity_heads)
    neighbours = _neighbours(k, gain, cu_seqlens)
    merged = sum(kept)
    # Pairs are counted where sequences are packed; otherwise every token but the first of a head has one.
    counted = [has_predecessor(kept, cu_seqlens)] if cu_seqlens is not None else []
    chosen = [kept] if pairs == "merged" else counted

    def quality(product: Scalar, x: Scalar, y: Scalar, *chosen: Scalar) -> Scalar:
        c, _ = _cosine(product, x, y)
        some = chosen[0] if chosen else index(2) > 0
        return scalars.where(some, scalars.where(index(1) < heads, (1.0 - c) ** 2, c**2), 0.0)

    def loss(quality: Scalar, merged: Scalar, *counted: Scalar) -> Scalar:
        B, H, N = map(scalars.real, kept.sizes)
        present = scalars.maximum(counted[0] if counted else B * H * (N - 1.0), 1.0)
        return quality / scalars.where(merged > 0.0, merged, present) - merged / present

    terms = map_tensors(quality, *neighbours, *chosen)
    return map_tensors(loss, sum(terms), merged, *map(sum, counted))
