# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Combining the elements along an axis: reductions, and scans that keep every prefix."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from . import errors
from .casts import convert
from .combine import Combine, combiner, reduced
from .emit import builtin, current
from .literals import to_tensor
from .maths import exp, fdiv, maximum, minimum, where
from .operators import add, and_, compare, mul, or_, xor
from .promotion import broadcast_to_shape
from .shapes import arange, expand_dims, is_power_of_two, normalised_axis, ravel
from .types import dtype, float32, int32, uint32, unwrap
from .value import member, tensor


def _inputs(values: Any, name: str) -> tuple[tensor, ...]:
    inputs = tuple(
        to_tensor(v, f"the argument of '{name}'") for v in (values if isinstance(values, (tuple, list)) else (values,))
    )
    for value in inputs:
        if value.shape != inputs[0].shape:
            raise errors.input_shapes(name, inputs[0], value)
    if not inputs[0].shape:
        raise errors.rank_too_small(name, inputs[0], 1)
    return inputs


def _reduce(values: Any, axis: Any, combine: Combine, keep_dims: Any, name: str) -> Any:
    inputs = _inputs(values, name)
    rank = len(inputs[0].shape)
    if unwrap(axis) is None and all(map(is_power_of_two, inputs[0].shape)):
        inputs, index = tuple(ravel(v) for v in inputs), 0
    else:
        index = rank - 1 if unwrap(axis) is None else normalised_axis(axis, rank, name)
    results = reduced(inputs, index, combine, name)
    while unwrap(axis) is None and results[0].shape:  # axis by axis: sizes like 80 do not lie in a row
        results = reduced(results, len(results[0].shape) - 1, combine, name)
    if unwrap(keep_dims):
        if unwrap(axis) is None:
            results = tuple(broadcast_to_shape(r, (1,) * rank) for r in results)
        else:
            results = tuple(expand_dims(r, index) for r in results)
    return results if isinstance(values, (tuple, list)) else results[0]


@member
@builtin
def reduce(input: Any, axis: int | None, combine_fn: Combine, keep_dims: bool = False) -> Any:
    """The elements along ``axis`` (all of them for None) combined by an associative, commutative ``combine_fn``.

    With a tuple of n blocks, ``combine_fn`` takes 2n scalars and returns n. The axis is dropped, or kept with size 1.

        total = wl.reduce(wl.load(x + at), 0, plus)    # plus: a @weft.jit function of two scalars
    """
    return _reduce(input, axis, combine_fn, keep_dims, "reduce")


def _widened(value: tensor) -> tensor:
    """As Triton does before max and min: at least 32 bits."""
    if value.dtype.primitive_bitwidth >= 32 or value.dtype.is_ptr():
        return value
    return convert(value, float32 if value.dtype.is_floating() else int32)


def _with_indices(
    input: tensor, axis: Any, symbol: str, tie_break_left: Any, keep_dims: Any, name: str
) -> tuple[tensor, tensor]:
    value = to_tensor(input, f"the argument of '{name}'")
    if not value.shape:
        raise errors.rank_too_small(name, value, 1)
    whole = unwrap(axis) is None
    if whole and all(map(is_power_of_two, value.shape)):
        value, axis, whole = ravel(value), 0, False
    rank = len(value.shape)
    counted = range(rank) if whole else (normalised_axis(axis, rank, name),)
    positions = _positions(value.shape, counted)

    @builtin
    def combine(a: tensor, i: tensor, b: tensor, j: tensor) -> tuple[tensor, tensor]:
        first = compare(symbol, a, b)
        if unwrap(tie_break_left):
            first = or_(first, and_(compare("==", a, b), compare("<", i, j)))
        return where(first, a, b), where(first, i, j)

    along = None if whole else counted[0]
    result: tuple[tensor, tensor] = _reduce((value, positions), along, combine, keep_dims, name)
    return result


def _positions(shape: tuple[int, ...], counted: Sequence[int]) -> tensor:
    """Each element's number in row-major order of the axes that are counted."""
    total: tensor | None = None
    for axis in counted:
        along = arange(0, shape[axis])
        for other in range(len(shape)):
            if other != axis:
                along = expand_dims(along, other)
        total = along if total is None else add(mul(total, shape[axis]), along)
    assert total is not None
    return broadcast_to_shape(total, shape)


@member
@builtin
def max(
    input: tensor,
    axis: int | None = None,
    return_indices: bool = False,
    return_indices_tie_break_left: bool = True,
    keep_dims: bool = False,
) -> Any:
    """The greatest element along an axis, or of the whole block; with ``return_indices`` its index too.

    Not-a-numbers are passed over.
    """
    if unwrap(return_indices):
        return _with_indices(input, axis, ">", return_indices_tie_break_left, keep_dims, "max")
    return _reduce(_widened(to_tensor(input)), axis, maximum, keep_dims, "max")


@member
@builtin
def min(
    input: tensor,
    axis: int | None = None,
    return_indices: bool = False,
    return_indices_tie_break_left: bool = True,
    keep_dims: bool = False,
) -> Any:
    """The least element along an axis, or of the whole block; with ``return_indices`` its index too.

    Not-a-numbers are passed over.
    """
    if unwrap(return_indices):
        return _with_indices(input, axis, "<", return_indices_tie_break_left, keep_dims, "min")
    return _reduce(_widened(to_tensor(input)), axis, minimum, keep_dims, "min")


@member
@builtin
def argmax(input: tensor, axis: int | None, tie_break_left: bool = True, keep_dims: bool = False) -> tensor:
    """The index of the greatest element along an axis, the first of equal ones with ``tie_break_left``; int32."""
    return _with_indices(input, axis, ">", tie_break_left, keep_dims, "argmax")[1]


@member
@builtin
def argmin(input: tensor, axis: int | None, tie_break_left: bool = True, keep_dims: bool = False) -> tensor:
    """The index of the least element along an axis, the first of equal ones with ``tie_break_left``; int32."""
    return _with_indices(input, axis, "<", tie_break_left, keep_dims, "argmin")[1]


def _sum_type(value: tensor, wanted: Any) -> dtype:
    """Integers narrower than 32 bits are summed in 32."""
    wanted = unwrap(wanted)
    if wanted is not None:
        if not isinstance(wanted, dtype):
            raise errors.expected_dtype("sum", wanted)
        return wanted
    if value.dtype.is_int() and value.dtype.primitive_bitwidth < 32:
        return int32 if value.dtype.is_int_signed() else uint32
    return value.dtype


@member
@builtin
def sum(input: tensor, axis: int | None = None, keep_dims: bool = False, dtype: dtype | None = None) -> tensor:
    """The sum along an axis, or of the whole block, computed in ``dtype`` (that of the input, but at least 32 bits for
    integers).
    """
    value = to_tensor(input)
    return _reduce(convert(value, _sum_type(value, dtype)), axis, add, keep_dims, "sum")


def _integers(input: Any, name: str) -> tensor:
    value = to_tensor(input)
    if not value.dtype.is_int():
        raise errors.needs_integers(name, value.dtype, "cast to an integer type first")
    return value


@member
@builtin
def xor_sum(input: tensor, axis: int | None = None, keep_dims: bool = False) -> tensor:
    """The integers along an axis combined by ``^``."""
    return _reduce(_integers(input, "xor_sum"), axis, xor, keep_dims, "xor_sum")


@member
@builtin
def reduce_or(input: tensor, axis: int | None, keep_dims: bool = False) -> tensor:
    """The integers along an axis combined by ``|``."""
    return _reduce(_integers(input, "reduce_or"), axis, or_, keep_dims, "reduce_or")


def _scan(values: Any, axis: Any, combine: Combine, reverse: Any, name: str) -> Any:
    inputs = _inputs(values, name)
    index = normalised_axis(axis, len(inputs[0].shape), name)
    region = combiner(combine, [v.dtype for v in inputs], name)
    builder = current()
    attributes = {"axis": builder.i32(index)}
    if unwrap(reverse):
        attributes["reverse"] = builder.native.unit
    made = builder.op("tile.scan", [v.handle for v in inputs], [v.type for v in inputs], attributes, [region])
    results = tuple(
        tensor(handle, v.type) for handle, v in zip(made if len(inputs) > 1 else (made,), inputs, strict=True)
    )
    return results if isinstance(values, (tuple, list)) else results[0]


@member
@builtin
def associative_scan(input: Any, axis: int, combine_fn: Combine, reverse: bool = False) -> Any:
    """Each element combined with all before it along ``axis`` (all after it with ``reverse``) by an associative
    ``combine_fn``; as :func:`reduce` for tuples.

        prefixes = wl.associative_scan(wl.load(x + at), 0, plus)
    """
    return _scan(input, axis, combine_fn, reverse, "associative_scan")


def _running(input: Any, axis: Any, combine: Combine, reverse: Any, wanted: Any, name: str) -> tensor:
    """A scan of numbers. Those of 16 bits are combined as float32, and each prefix is rounded once."""
    value = to_tensor(input)
    kind = _sum_type(value, wanted)
    narrow = kind.is_floating() and kind.primitive_bitwidth == 16
    result: tensor = _scan(convert(convert(value, kind), float32 if narrow else kind), axis, combine, reverse, name)
    return convert(result, kind)


@member
@builtin
def cumsum(input: tensor, axis: int = 0, reverse: bool = False, dtype: dtype | None = None) -> tensor:
    """The running sum along an axis; types as for :func:`sum`. Floats of 16 bits are added as float32, and each sum is
    rounded once."""
    return _running(input, axis, add, reverse, dtype, "cumsum")


@member
@builtin
def cumprod(input: tensor, axis: int = 0, reverse: bool = False, dtype: dtype | None = None) -> tensor:
    """The running product along an axis; types as for :func:`cumsum`."""
    return _running(input, axis, mul, reverse, dtype, "cumprod")


@member
@builtin
def softmax(x: tensor, dim: int | None = None, *, keep_dims: Any = None, ieee_rounding: bool = False) -> tensor:
    """exp(x - max) / sum of it along an axis, the first by default as in Triton."""
    axis = 0 if unwrap(dim) is None else dim
    numerator = exp(x - max(x, axis, keep_dims=True))
    return fdiv(numerator, sum(numerator, axis, keep_dims=True))


__all__ = [
    "argmax",
    "argmin",
    "associative_scan",
    "cumprod",
    "cumsum",
    "max",
    "min",
    "reduce",
    "reduce_or",
    "softmax",
    "sum",
    "xor_sum",
]
