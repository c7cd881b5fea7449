# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Sequence mixers of a program: linear maps over the sequence, one matrix for each batch and head, never stored.

weft.softmax(q, k, pattern)   softmax(q, weft.domain(k1, p1), weft.domain(k2, p2))   weft.mean()
weft.toeplitz(taps)   weft.diag(g)   A + B   A - B   0.5 * A   A @ B   A @ v   A @ (v1, v2)
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ..compiler import places
from ..language.types import bfloat16, dtype, float16, float32
from . import graph, scalars, static
from .eager import operation
from .facts import must_be_deterministic
from .graph import TensorType, Value, agreeing
from .pages import lengths_behind
from .patterns import Domain, Lowered, lower_patterns, without_tables_of_tokens
from .regions import score_region
from .sizes import Size, group, larger, unify
from .tensors import Tensor, Unapplied, described, four_axes, lift

MIXER = "!attn.mixer"
_DIRECT_TAPS = 16
Shape = tuple[Size, ...]


class Mixer(Unapplied):
    """A mixer being traced. ``result`` of the values' shapes gives the result's, and checks them."""

    def __init__(self, value: Value, domains: int, result: Callable[[Sequence[Shape]], Shape]):
        self.value, self.domains, self.result = value, domains, result

    def __add__(self, other: Any) -> Mixer:
        other = self._other(other, "+")
        if self.domains != other.domains:
            raise places.error(
                f"expected mixers of as many domains, but got {self.domains} and {other.domains}",
                "apply them one by one and add what they give",
            )

        def result(values: Sequence[Shape]) -> Shape:
            return _joined(self.result(values), other.result(values))

        return Mixer(graph.tracing().one("attn.add", [self.value, other.value], MIXER), self.domains, result)

    def __matmul__(self, other: Any) -> Any:
        if not isinstance(other, Mixer):
            return apply(self, other)
        if self.domains != 1:
            raise places.error(f"expected a mixer of one domain on the left of '@', but got one of {self.domains}")

        def result(values: Sequence[Shape]) -> Shape:
            return self.result([other.result(values)])

        return Mixer(graph.tracing().one("attn.compose", [self.value, other.value], MIXER), other.domains, result)

    def __radd__(self, other: Any) -> Mixer:
        raise places.error(f"expected a mixer on the left of '+', but got {places.described(other)}")

    def __sub__(self, other: Any) -> Mixer:
        return self + self._other(other, "-") * -1

    def __rsub__(self, other: Any) -> Mixer:
        raise places.error(f"expected a mixer on the left of '-', but got {places.described(other)}")

    def __neg__(self) -> Mixer:
        return self * -1

    def __mul__(self, factor: Any) -> Mixer:
        """As many times the mixer: a gate of one number."""
        gate = graph.tracing().one("attn.diag", [_number(static.factor(factor))], MIXER)
        return Mixer(graph.tracing().one("attn.compose", [gate, self.value], MIXER), self.domains, self.result)

    __rmul__ = __mul__

    def __truediv__(self, divisor: Any) -> Mixer:
        return self * static.factor(divisor, divides=True)

    def __rmatmul__(self, other: Any) -> Mixer:
        given = places.described(other)
        raise places.error(f"expected a mixer on the left of '@', but got {given}", "A @ v applies a mixer to values")

    def _other(self, other: Any, sign: str) -> Mixer:
        if not isinstance(other, Mixer):
            raise places.error(
                f"expected a mixer on the right of '{sign}', but got {described(other)}",
                static.ADDING,
            )
        return other

    def matrix(self, *_: Any, **__: Any) -> Any:
        """Refused: while a program is traced, no mixer has numbers."""
        raise places.error(
            "expected a mixer of arrays to materialise, but got one of a program being traced",
            "weft.softmax(q, k).matrix() of arrays, outside of a program",
        )

    def final_state(self, values: Any) -> Any:
        """Refused: recurrences alone have a state."""
        raise places.error(
            "expected a recurrence, but got a mixer without a state",
            "weft.linear_attention and weft.delta_rule have one",
        )

    __array_ufunc__ = None

    def __repr__(self) -> str:
        return "<mixer>"


def _number(value: float) -> Value:
    """f32 [1, 1, 1, 1]: a number where a tensor is expected."""
    tracing = graph.tracing()
    with tracing.region([]) as region:
        tracing.add("attn.yield", [scalars.constant(value).value])
    return tracing.add("attn.map", [], [TensorType((Size(1),) * 4, float32)], {}, [region]).results[0]


def apply(mixer: Mixer, values: Any) -> Tensor:
    """A @ v, or A @ (v1, v2), one tensor for each domain."""
    given = [lift(v) for v in (values if isinstance(values, (tuple, list)) else [values])]
    for value in given:
        if not isinstance(value, Tensor):
            raise places.error(f"expected values [B, H, M, D], but got '{type(value).__name__}'")
        four_axes(value, "values")
        if not value.dtype.is_fp8():
            static.floating("values", value)
    if len(given) != mixer.domains:
        raise places.error(f"expected {mixer.domains} tensors of values, one for each domain, but got {len(given)}")
    if len({v.dtype.name for v in given}) > 1:
        raise places.error(f"expected values of one type, but got {' and '.join(str(v.dtype) for v in given)}")
    with agreeing("expected values that fit the mixer"):
        int(given[0].sizes[3])
        shape = mixer.result([v.sizes for v in given])
    result = TensorType(shape, result_type(given[0].dtype))
    given = [widened(v) for v in given]
    return Tensor(graph.tracing().one("attn.apply", [mixer.value, *(v.value for v in given)], result))


def _joined(a: Shape, b: Shape) -> Shape:
    """The shape of a sum of two mixers' results: fewer heads repeat over their group."""
    for axis in (0, 2, 3):
        unify(a[axis], b[axis])
    many, few = (a[1], b[1]) if larger(a[1], b[1]) else (b[1], a[1])
    group(many, few)
    return (a[0], many, a[2], a[3])


@dataclass(frozen=True)
class Attention:
    """What softmax and attend share: operands in the order of the op, its attributes and regions."""

    operands: list[Value]
    attributes: dict[str, Any]
    regions: list[graph.Region]
    keys: list[Tensor]
    counts: int  # of the operands, how many are counts of keys


def widened(tensor: Tensor) -> Tensor:
    """Elements of 8 bits as float16, which holds each of them, and in which products find them again."""
    return tensor.to(float16) if tensor.dtype.is_fp8() else tensor


def result_type(element: dtype) -> dtype:
    """The type of attention over values of such elements: 8-bit floats have too few bits and too small a range."""
    return bfloat16 if element.is_fp8() else element


def attention(
    q: Tensor,
    domains: Sequence[Domain],
    scale: float | None,
    sink: Tensor | None,
    score_mod: Callable[..., Any] | None,
    bias: Tensor | None = None,
) -> tuple[Attention, Lowered]:
    """Check queries, domains and sink against each other, and lower the patterns."""
    four_axes(q, "queries")
    if not q.dtype.is_fp8():
        static.floating("queries", q)
    for rank, name, size in zip((0, 0, 0), ("B", "H", "N"), q.sizes, strict=False):
        size.called(rank, name)
    with agreeing("expected queries whose last size is known"):
        head = int(q.sizes[3])
    for number, domain in enumerate(domains):
        _check_domain(q, domain, number)
    narrow = q.dtype.is_fp8()
    q, domains = widened(q), [_counted(replace(each, keys=widened(each.keys))) for each in domains]
    if sink is not None:
        if not isinstance(sink, Tensor) or sink.ndim != 1:
            raise places.error(f"expected 'sink' [H], but got {described(sink)}")
        static.floating("'sink'", sink)
        with agreeing("expected 'sink' [H], one number for each query head"):
            unify(q.sizes[1], sink.sizes[0])
    lowered = lower_patterns(q, domains)
    # one score_mod serves every domain: m runs over the keys of each
    extents = (*q.sizes[:3], domains[0].keys.sizes[2])
    score = score_region(score_mod, extents if len(domains) == 1 else (*extents[:3], None), bias)
    counts = [d.count for d in domains if d.count is not None]
    if counts and len(counts) != len(domains):
        raise places.error(
            f"expected a count for each of {len(domains)} domains, or for none, but got {len(counts)}",
            "weft.domain(k, pattern, count=c), of as many keys as it has where nothing else counts them; "
            "the lengths of keys in pages are their count",
        )
    factor = 1 / math.sqrt(head) if scale is None else static.real("scale", scale)
    attributes = {"patterns": f"[{', '.join(lowered.texts)}]", "scale": real_text(factor, "f32")}
    if narrow:
        attributes["attn.float8"] = "unit"
    keys = [d.keys for d in domains]
    operands = [q, *keys, *counts, *([sink] if sink is not None else [])]
    found = Attention([t.value for t in operands], attributes, [score, *lowered.masks], keys, len(counts))
    return found, lowered


def _check_domain(q: Tensor, domain: Domain, number: int) -> None:
    k, suffix = domain.keys, str(number + 1) if number else ""
    four_axes(k, "keys")
    k.sizes[1].called(1, "Hkv")
    k.sizes[2].called(1, f"M{suffix}")
    if k.dtype != q.dtype:
        raise places.error(f"expected keys of the queries' type {q.dtype}, but got {k.dtype}", "use .to(dtype)")
    for axis, what in ((0, "batch"), (3, "head size")):
        with agreeing(f"expected queries and keys of one {what}"):
            unify(q.sizes[axis], k.sizes[axis])
    with agreeing("expected the key heads to divide the query heads"):
        group(q.sizes[1], k.sizes[1])
    if domain.count is not None:
        count = domain.count
        if not isinstance(count, Tensor) or count.ndim not in (1, 2) or count.dtype.name != "int32":
            raise places.error(f"expected a count [B, Hkv] or [B] of int32, but got {described(count)}")
        with agreeing("expected a count [B, Hkv] or [B]"):
            for axis in range(count.ndim):
                unify(k.sizes[axis], count.sizes[axis])


def _counted(domain: Domain) -> Domain:
    """A domain with the count of its keys, where these lie in pages."""
    lengths = lengths_behind(domain.keys.value)
    if lengths is None:
        return domain
    if domain.count is not None and domain.count.value is not lengths.value:
        raise places.error(
            f"expected no count of keys in pages, whose lengths count them, but got {described(domain.count)}"
        )
    return Domain(domain.keys, domain.pattern, lengths)


def fast_attribute(deterministic: bool) -> dict[str, str]:
    """What allows gradients to be added up in any order, unless torch has been told otherwise."""
    return {} if static.truth("deterministic", deterministic) or must_be_deterministic() else {"attn.fast": "unit"}


def splits_attribute(splits: int | None) -> dict[str, str]:
    """What divides keys among programs; None does not."""
    return {} if splits is None else {"splits": f"{static.integer('splits', splits, 0)} : i64"}


def starts(cu_seqlens: Any, grid: Any = None, tokens: Size | None = None) -> list[Tensor]:
    """The operand that says where packed sequences start, or none; with a grid of tokens there is none. Of how many
    ``tokens``, for who checks the numbers when they are there; None is said later."""
    if cu_seqlens is None:
        return []
    if grid:
        raise places.error("expected no grid with cu_seqlens", "a grid's tokens are one sequence")
    if not isinstance(cu_seqlens, Tensor) or cu_seqlens.ndim != 1 or cu_seqlens.dtype.name != "int32":
        raise places.error(f"expected cu_seqlens [S+1] of int32, but got {described(cu_seqlens)}")
    if tokens is not None:
        packs(cu_seqlens, tokens)
    return [cu_seqlens]


def packs(cu_seqlens: Tensor, tokens: Size) -> None:
    """Note that these starts are of so many tokens: numbers that the host has are checked against it at every call."""
    graph.tracing().starts.append((cu_seqlens.value, tokens))


def one_batch(batch: Size) -> None:
    """Packed sequences lie in a batch of 1."""
    with agreeing("expected packed sequences in a batch of 1"):
        unify(batch, Size(1))


def segments(*counts: int) -> str:
    """An attribute with the numbers of operands of each kind that an op of several kinds has."""
    return f"array<i32: {', '.join(map(str, counts))}>"


def real_text(value: float, type: str) -> str:
    """A finite real as MLIR spells it."""
    return f"{value:.17e} : {type}"


@operation
def softmax(
    q: Any,
    k: Any,
    pattern: Any = None,
    *more: Any,
    score_mod: Callable[..., Any] | None = None,
    scale: float | None = None,
    sink: Any = None,
    deterministic: bool = True,
    cu_seqlens: Any = None,
    splits: int | None = None,
) -> Any:
    """The mixer of softmax attention: softmax(q, k, pattern), or softmax(q, domain, domain, ...) under one softmax.

    q [B, H, N, D], k [B, Hkv, M, D], Hkv a divisor of H. ``score_mod(score, b, h, n, m)`` changes a score;
    ``scale`` is 1/sqrt(D) unless given; ``sink`` [H] is a logit in the normaliser without a value.
    Without ``deterministic`` the last bits of gradients may differ from run to run, where that takes less.
    ``cu_seqlens`` [S+1] int32 is where each of S sequences packed into N starts, B being 1: none sees another.
    ``splits`` divides each sequence's keys among programs, for few queries: into so many runs, or for 0 into as many as
    its own length asks for.
    """
    lengths = 2 * starts(cu_seqlens)
    if lengths:
        four_axes(q, "queries")
        one_batch(q.sizes[0])
        packs(cu_seqlens, q.sizes[2])
    domains = [Domain(lift(d.keys), d.pattern, lift(d.count)) for d in _domains(lift(k), pattern, more)]
    given, lowered = attention(q, domains, scale, sink, score_mod)
    if lengths:
        without_tables_of_tokens(lowered.texts)
    given.attributes["operandSegmentSizes"] = segments(
        *(1, len(domains), given.counts, int(sink is not None)),
        *(len(lengths), len(lowered.operands)),
    )
    given.attributes.update(fast_attribute(deterministic))
    given.attributes.update(splits_attribute(splits))
    operands = [*given.operands, *(t.value for t in (*lengths, *lowered.operands))]

    # Counts and spans are of as many heads as keys have.
    repeats = not given.counts and not any("#attn.span<" in text for text in lowered.texts)

    def result(values: Sequence[Shape]) -> Shape:
        for keys, value in zip(given.keys, values, strict=True):
            for axis in (0, 2):
                unify(keys.sizes[axis], value[axis])
            if repeats and larger(value[1], keys.sizes[1]):
                group(value[1], keys.sizes[1])  # of what another mixer gave: a key serves its group of values
                group(q.sizes[1], value[1])
            else:
                unify(keys.sizes[1], value[1])
            unify(values[0][3], value[3])
        return (*q.sizes[:3], values[0][3])

    made = graph.tracing().add("attn.softmax", operands, [MIXER], given.attributes, given.regions)
    return Mixer(made.results[0], len(domains), result)


def _domains(k: Any, pattern: Any, more: Sequence[Any]) -> list[Domain]:
    if not isinstance(k, (Domain, Tensor)):
        raise places.error(
            f"expected keys to be a tensor, but got {described(k)}",
            "weft.softmax(q, k) is attention's softmax(q kᵀ); torch.softmax, outside of programs, goes along an axis",
        )
    if not isinstance(k, Domain):
        if more:
            raise places.error(
                f"expected weft.domain(k, pattern) for each domain where there are several, but got {described(k)}"
            )
        return [Domain(k, pattern)]
    given = [k, *([pattern] if pattern is not None else []), *more]
    for each in given:
        if not isinstance(each, Domain):
            raise places.error(
                f"expected a domain, but got '{type(each).__name__}'", "weft.softmax(q, weft.domain(k, pattern), ...)"
            )
    return given


@operation
def domain(k: Any, pattern: Any = None, *, count: Any = None) -> Domain:
    """Keys [B, Hkv, M, D] with a pattern of their own, for weft.softmax of several; ``count`` [B, Hkv] int32 is how
    many of them there are, [B] where it is the same for every head."""
    return Domain(k, pattern, count)


@operation
def mean(causal: bool = False, *, cu_seqlens: Any = None) -> Any:
    """The mixer (1/N)·1·1ᵀ; causal: row n is the mean of rows 0 to n. With ``cu_seqlens`` [S+1] int32, row n is the
    mean of the rows of its own sequence, of S packed into a batch of 1."""
    causal = static.truth("causal", causal)
    lengths = starts(cu_seqlens)
    if causal and lengths:
        raise places.error("expected a mean of packed sequences that is not causal, but got causal=True")
    operands = [t.value for t in lengths]
    made = graph.tracing().add("attn.mean", operands, [MIXER], {"causal": "unit"} if causal else {})

    def result(values: Sequence[Shape]) -> Shape:
        if lengths:
            one_batch(values[0][0])
            packs(cu_seqlens, values[0][2])
        return values[0]

    return Mixer(made.results[0], 1, result)


@operation
def toeplitz(
    taps: Any,
    *,
    centred: bool = False,
    dilation: int = 1,
    grid: tuple[int, int] | None = None,
    cu_seqlens: Any = None,
) -> Any:
    """The mixer A[n, m] = taps[j] where n - m = dilation·(j - c), for each channel: a depthwise convolution.

    taps [K, H·D], channel h·D + d; c is 0, or (K-1)/2 where ``centred`` (K odd). With ``grid`` = (h, w) the
    sequence is a grid of tokens, taps are [K·K, H·D], centred. Causal taps may be as many as there are tokens.
    With ``cu_seqlens`` [S+1] int32 no row takes of another sequence, of S packed into a batch of 1.
    """
    lengths = starts(cu_seqlens, grid)
    centred, dilation = static.truth("centred", centred), static.distance("dilation", dilation, 1)
    if not isinstance(taps, Tensor) or taps.ndim != 2:
        raise places.error(f"expected taps [K, H·D], but got {described(taps)}")
    static.floating("taps", taps)
    taps.sizes[0].called(2, "K")
    if centred or grid or lengths or dilation != 1 or _few(taps.sizes[0]):
        with agreeing("expected taps of a known number"):
            count = int(taps.sizes[0])
    else:
        if taps.sizes[0].value is not None:  # few taps are faster as their own form
            taps.sizes[0].at_least(_DIRECT_TAPS + 1)
        count = 1  # stands for any number
    static.distance("dilation", dilation, 1, times=max(count - 1, 1))
    side = math.isqrt(count) if grid else count
    if grid and side * side != count:
        raise places.error(f"expected K·K taps over a grid, but got {count}")
    if (centred or grid) and side % 2 == 0:
        raise places.error(f"expected an odd number of centred taps, but got {side}")
    attributes: dict[str, Any] = {"dilation": f"{dilation} : i64"}
    if centred or grid:
        attributes["centred"] = "unit"
    if grid:
        attributes["grid"] = grid_text(grid)

    def result(values: Sequence[Shape]) -> Shape:
        shape = values[0]
        if lengths:
            one_batch(shape[0])
            packs(cu_seqlens, shape[2])
        unify(shape[1].times(int(shape[3])), taps.sizes[1])
        if grid:
            unify(shape[2], Size(int(grid[0]) * int(grid[1])))
        return shape

    operands = [taps.value, *(t.value for t in lengths)]
    return Mixer(graph.tracing().one("attn.toeplitz", operands, MIXER, attributes), 1, result)


def _few(taps: Size) -> bool:
    """Whether so many taps are added one by one, in a form of their own, and not as products of matrices."""
    return taps.static is not None or (taps.value is not None and taps.value <= _DIRECT_TAPS)


def grid_text(grid: Sequence[int]) -> str:
    """An attribute with the sides of a grid of tokens, each at least 1."""
    return f"array<i64: {', '.join(str(static.integer('grid', side, 1)) for side in grid)}>"


@operation
def diag(g: Any) -> Any:
    """The mixer diag(g), a gate: g [B, H, N] or [B, H, N, 1] is one number a head, [B, H, N, D] one a channel."""
    channels = 1
    if not isinstance(g, Tensor) or g.ndim != 3:
        four_axes(g, "a gate")
        with agreeing("expected a gate whose last size is known"):
            channels = int(g.sizes[3])
    static.floating("a gate", g)

    def result(values: Sequence[Shape]) -> Shape:
        shape = values[0]
        unify(g.sizes[0], shape[0])
        unify(g.sizes[2], shape[2])
        if channels != 1:
            unify(shape[3], g.sizes[3])
        # fewer heads of values repeat over the gate's, as in products of tensors
        group(g.sizes[1], shape[1])
        return (shape[0], g.sizes[1], shape[2], shape[3])

    return Mixer(graph.tracing().one("attn.diag", [g.value], MIXER), 1, result)
