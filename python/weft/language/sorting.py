# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Sorting networks along an axis: ``sort``, ``topk``, ``bitonic_merge``; and ``flip``.

An axis of 2^n elements is seen as n axes of 2; one of another size is filled up with keys that come last. Element i
meets element i ^ 2^j by a reduction with xor along axis j, which leaves the other one's bits. Integers are compared:
equal ones are the same, so that of two which meet both may take the other's place or neither, and one comparison
serves both directions. Floats become integers in the same order.
"""

from __future__ import annotations

from typing import Any

from . import errors
from .casts import convert, reread
from .emit import builtin
from .literals import scalar_constant, to_tensor
from .maths import minimum, where
from .operators import and_, compare, shr, sub, xor
from .promotion import broadcast_to_shape
from .reduction import max, min, xor_sum
from .shapes import arange, constant_int, expand_dims, gather, is_power_of_two, normalised_axis, reshape
from .types import get_int_dtype, int1, int8, unwrap
from .value import member, tensor


def _axis(value: tensor, dim: Any, name: str) -> int:
    if not value.shape:
        raise errors.rank_too_small(name, value, 1)
    return normalised_axis(-1 if unwrap(dim) is None else dim, len(value.shape), name)


def _places(value: tensor, axis: int, size: int) -> tensor:
    """0 to ``size`` along an axis, of the block's shape but for that."""
    others = tuple(i for i in range(len(value.shape)) if i != axis)
    places = arange(0, size)
    placed = expand_dims(places, others) if others else places
    return broadcast_to_shape(placed, (*value.shape[:axis], size, *value.shape[axis + 1 :]))


def _filled(keys: tensor, axis: int, descending: bool) -> tensor:
    """Keys along an axis of a power of two, those that there are before others that come last in the order. (Of two
    equal ones both are the same, whichever was there.)
    """
    size = keys.shape[axis]
    if is_power_of_two(size):
        return keys
    places = _places(keys, axis, 1 << size.bit_length())
    last = keys.dtype.get_int_min_value() if descending else keys.dtype.get_int_max_value()
    known = gather(keys, minimum(places, size - 1), axis)
    return where(compare("<", places, size), known, scalar_constant(last, keys.dtype))


def _first(keys: tensor, axis: int, count: int) -> tensor:
    """The first elements along an axis."""
    return keys if keys.shape[axis] == count else gather(keys, _places(keys, axis, count), axis)


def _whole_sort(keys: tensor, axis: int, descending: bool) -> tensor:
    filled = _filled(keys, axis, descending)
    ordered = _sorted_runs(filled, axis, filled.shape[axis].bit_length() - 1, descending)
    return _first(ordered, axis, keys.shape[axis])


def _in_order(bits: tensor) -> tensor:
    """A float's bits as a signed integer in the floats' order, or back: negative ones are turned but for the sign."""
    width = bits.dtype.primitive_bitwidth
    return xor(bits, and_(shr(bits, width - 1), (1 << (width - 1)) - 1))


def _bits(value: tensor) -> tensor:
    """The elements as integers."""
    if value.dtype.is_bool():
        return convert(value, int8)
    if value.dtype.is_floating():
        return reread(value, get_int_dtype(value.dtype.primitive_bitwidth, True))
    return value


def _from_bits(bits: tensor, like: tensor) -> tensor:
    if like.dtype.is_bool():
        return convert(bits, int1)
    return reread(bits, like.dtype) if like.dtype.is_floating() else bits


def _keys(value: tensor) -> tensor:
    """Integers in the elements' order."""
    return _in_order(_bits(value)) if value.dtype.is_floating() else _bits(value)


def _from_keys(keys: tensor, like: tensor) -> tensor:
    return _from_bits(_in_order(keys) if like.dtype.is_floating() else keys, like)


def _partner(keys: tensor, axis: int, distance: int) -> tensor:
    """The elements whose place along an axis differs by one bit."""
    shape = keys.shape
    pairs = (*shape[:axis], shape[axis] // (2 * distance), 2, distance, *shape[axis + 1 :])
    bits = reshape(keys, pairs)
    return reshape(xor(bits, xor_sum(bits, axis + 1, keep_dims=True)), shape)


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
    keeps_most = xor(upper, descending) if isinstance(descending, tensor) else (~upper if descending else upper)
    return where(xor(compare("<", other, value), keeps_most), other, value)


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

    Not-a-numbers are greater than all numbers, or less where their sign is set, and -0.0 is less than 0.0. (Triton
    sorts along the last axis alone, and is at a loss with not-a-numbers.)

        wl.store(y + at, wl.sort(wl.load(x + at), descending=True))
    """
    value = to_tensor(x, "the argument of 'sort'")
    axis = _axis(value, dim, "sort")
    falls = _truth(descending, "'descending' of 'sort'")
    return _from_keys(_whole_sort(_keys(value), axis, falls), value)


@member
@builtin
def topk(x: tensor, k: int, dim: int | None = None, descending: bool = True) -> tensor:
    """The ``k`` greatest elements along an axis (the last by default), the greatest first; with ``descending=False``
    the k least, the least first. ``k`` is a constant, at most the axis's size.
    """
    value = to_tensor(x, "the argument of 'topk'")
    axis = _axis(value, dim, "topk")
    wanted = constant_int(k, "'k' of 'topk'")
    if not 1 <= wanted <= value.shape[axis]:
        raise errors.top_count(wanted, value.shape[axis])
    count = 1 << (wanted - 1).bit_length()
    falls = _truth(descending, "'descending' of 'topk'")
    best, bits = (max if falls else min), count.bit_length() - 1
    keys = _sorted_runs(_filled(_keys(value), axis, falls), axis, bits, falls)
    while keys.shape[axis] > count:
        # Of two runs in opposite orders the best of each pair are the best of both, and form one bitonic run.
        shape = keys.shape
        pairs = reshape(keys, (*shape[:axis], shape[axis] // (2 * count), 2, count, *shape[axis + 1 :]))
        half = (*shape[:axis], shape[axis] // 2, *shape[axis + 1 :])
        keys = reshape(convert(best(pairs, axis + 1), keys.dtype), half)
        last = half[axis] == count
        keys = _merge(keys, axis, bits, falls if last else _bit(keys, axis, bits))
    return _from_keys(_first(keys, axis, wanted), value)


@member
@builtin
def bitonic_merge(x: tensor, dim: int | None = None, descending: bool = False) -> tensor:
    """The elements along an axis (the last by default) in order, where they rise and then fall, or fall and then
    rise.
    """
    value = to_tensor(x, "the argument of 'bitonic_merge'")
    axis = _axis(value, dim, "bitonic_merge")
    falls = _truth(descending, "'descending' of 'bitonic_merge'")
    if not is_power_of_two(value.shape[axis]):
        return _from_keys(_whole_sort(_keys(value), axis, falls), value)
    return _from_keys(_merge(_keys(value), axis, value.shape[axis].bit_length() - 1, falls), value)


@member
@builtin
def flip(x: tensor, dim: int | None = None) -> tensor:
    """The elements along an axis (the last by default) the other way round."""
    value = to_tensor(x, "the argument of 'flip'")
    axis = _axis(value, dim, "flip")
    if not is_power_of_two(value.shape[axis]):
        size = value.shape[axis]
        return gather(value, sub(size - 1, _places(value, axis, size)), axis)
    bits = _bits(value)
    for number in range(value.shape[axis].bit_length() - 1):
        bits = _partner(bits, axis, 1 << number)
    return _from_bits(bits, value)


__all__ = ["bitonic_merge", "flip", "sort", "topk"]
