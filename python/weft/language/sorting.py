# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Sorting networks along an axis: ``sort``, ``topk``, ``bitonic_merge``; and ``flip``.

An axis of 2^n elements is seen as n axes of 2. Element i meets element i ^ 2^j by a reduction with xor along axis j,
which leaves the other one's bits.
"""

from __future__ import annotations

from typing import Any

from . import errors
from .casts import convert, reread
from .emit import builtin
from .literals import to_tensor
from .maths import where
from .operators import and_, compare, shr, xor
from .reduction import max, min, xor_sum
from .shapes import arange, constant_int, expand_dims, normalised_axis, reshape
from .types import get_int_dtype, int1, int8, unwrap
from .value import member, tensor


def _axis(value: tensor, dim: Any, name: str) -> int:
    if not value.shape:
        raise errors.rank_too_small(name, value, 1)
    return normalised_axis(-1 if unwrap(dim) is None else dim, len(value.shape), name)


def _bits(value: tensor) -> tensor:
    """The elements as integers of as many bits."""
    if value.dtype.is_bool():
        return convert(value, int8)
    return reread(value, get_int_dtype(value.dtype.primitive_bitwidth, True))


def _from_bits(bits: tensor, like: tensor) -> tensor:
    return convert(bits, int1) if like.dtype.is_bool() else reread(bits, like.dtype)


def _partner(value: tensor, axis: int, distance: int) -> tensor:
    """The elements whose place along an axis differs by one bit."""
    shape = value.shape
    pairs = (*shape[:axis], shape[axis] // (2 * distance), 2, distance, *shape[axis + 1 :])
    bits = reshape(_bits(value), pairs)
    return _from_bits(reshape(xor(bits, xor_sum(bits, axis + 1, keep_dims=True)), shape), value)


def _bit(value: tensor, axis: int, number: int) -> tensor:
    """Whether a bit of each element's place along an axis is set, in a shape that broadcasts to the block's."""
    places = arange(0, value.shape[axis])
    found = convert(and_(shr(places, number), 1), int1)
    others = tuple(i for i in range(len(value.shape)) if i != axis)
    return expand_dims(found, others) if others else found


def _exchange(value: tensor, axis: int, number: int, descending: Any) -> tensor:
    """Every pair of elements that lie 2^number apart, put in order."""
    other = _partner(value, axis, 1 << number)
    upper = _bit(value, axis, number)
    keeps_least = (
        compare("==", upper, descending) if isinstance(descending, tensor) else (upper if descending else ~upper)
    )
    swaps = where(keeps_least, compare("<", other, value), compare(">", other, value))
    return where(swaps, other, value)


def _merge(value: tensor, axis: int, bits: int, descending: Any) -> tensor:
    for number in reversed(range(bits)):
        value = _exchange(value, axis, number, descending)
    return value


def _truth(value: Any, what: str) -> bool:
    known = unwrap(value)
    if isinstance(known, tensor):
        known = known.constant
    if known is None:
        raise errors.not_constant(what, unwrap(value))
    return bool(known)


def _sorted_runs(value: tensor, axis: int, bits: int, descending: bool) -> tensor:
    """Runs of 2^bits in order, every other one in the other order; the whole axis in order, where it is one run."""
    length = value.shape[axis].bit_length() - 1
    for stage in range(1, bits + 1):
        value = _merge(value, axis, stage, _bit(value, axis, stage) if stage < length else descending)
    return value


@member
@builtin
def sort(x: tensor, dim: int | None = None, descending: bool = False) -> tensor:
    """The elements along an axis (the last by default) in order; same shape and type.

    Not-a-numbers compare as neither less nor greater, so that their places, and the order around them, are any. The
    order of equal elements is any. (Triton sorts along the last axis alone.)

        wl.store(y + at, wl.sort(wl.load(x + at), descending=True))
    """
    value = to_tensor(x, "the argument of 'sort'")
    axis = _axis(value, dim, "sort")
    return _sorted_runs(value, axis, value.shape[axis].bit_length() - 1, _truth(descending, "'descending' of 'sort'"))


@member
@builtin
def topk(x: tensor, k: int, dim: int | None = None, descending: bool = True) -> tensor:
    """The ``k`` greatest elements along an axis (the last by default), the greatest first; with ``descending=False``
    the k least, the least first. ``k`` is a constant power of two, at most the axis's size.
    """
    value = to_tensor(x, "the argument of 'topk'")
    axis = _axis(value, dim, "topk")
    count = constant_int(k, "'k' of 'topk'")
    if not 1 <= count <= value.shape[axis] or count & (count - 1):
        raise errors.top_count(count, value.shape[axis])
    falls = _truth(descending, "'descending' of 'topk'")
    best, bits = (max if falls else min), count.bit_length() - 1
    value = _sorted_runs(value, axis, bits, falls)
    while value.shape[axis] > count:
        # Of two runs in opposite orders the best of each pair are the best of both, and form one bitonic run.
        shape = value.shape
        pairs = reshape(value, (*shape[:axis], shape[axis] // (2 * count), 2, count, *shape[axis + 1 :]))
        half = (*shape[:axis], shape[axis] // 2, *shape[axis + 1 :])
        value = reshape(convert(best(pairs, axis + 1), value.dtype), half)
        last = half[axis] == count
        value = _merge(value, axis, bits, falls if last else _bit(value, axis, bits))
    return value


@member
@builtin
def bitonic_merge(x: tensor, dim: int | None = None, descending: bool = False) -> tensor:
    """The elements along an axis (the last by default) in order, where they rise and then fall, or fall and then
    rise.
    """
    value = to_tensor(x, "the argument of 'bitonic_merge'")
    axis = _axis(value, dim, "bitonic_merge")
    falls = _truth(descending, "'descending' of 'bitonic_merge'")
    return _merge(value, axis, value.shape[axis].bit_length() - 1, falls)


@member
@builtin
def flip(x: tensor, dim: int | None = None) -> tensor:
    """The elements along an axis (the last by default) the other way round."""
    value = to_tensor(x, "the argument of 'flip'")
    axis = _axis(value, dim, "flip")
    for number in range(value.shape[axis].bit_length() - 1):
        value = _partner(value, axis, 1 << number)
    return value


__all__ = ["bitonic_merge", "flip", "sort", "topk"]
