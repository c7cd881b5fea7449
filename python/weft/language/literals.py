# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Python numbers in kernels: their types, and constants made of them."""

from __future__ import annotations

from typing import Any

from . import errors
from .types import dtype, float32, float64, int1, int32, int64, uint32, uint64, unwrap
from .value import tensor


def is_number(value: Any) -> bool:
    """Whether a value is a Python number, one whose type gives way to a tensor's."""
    return isinstance(value, (bool, int, float))


def number_type(value: bool | int | float) -> dtype:
    """The type that a Python number has by itself: the first of int32, uint32, int64, uint64 that holds it, or float32,
    or float64.
    """
    if isinstance(value, bool):
        return int1
    if isinstance(value, int):
        for candidate in (int32, uint32, int64, uint64):
            if candidate.get_int_min_value() <= value <= candidate.get_int_max_value():
                return candidate
        raise errors.number_out_of_range(value, "a 64-bit integer")
    smallest, largest = 2.0**-126, (2 - 2.0**-23) * 2.0**127
    ordinary = value == 0 or value != value or abs(value) == float("inf") or smallest <= abs(value) <= largest
    return float32 if ordinary else float64


def to_tensor(value: Any, what: str = "a value") -> tensor:
    """A tensor as it is; a Python number as a constant scalar."""
    if isinstance(value, tensor):
        return value
    value = unwrap(value)
    if is_number(value):
        return tensor(None, number_type(value), value)
    raise errors.expected_value(what, value)


def bits_constant(value: Any, value_type: dtype) -> tensor:
    """A constant scalar of a given type that a number fills, as memory holds it: 0xffffffff is -1 of int32, and -1 the
    largest number of uint32. A number of more bits does not fit."""
    if value_type.is_int() and not value_type.is_bool() and isinstance(value, int):
        bits = value_type.primitive_bitwidth
        least, whole = value_type.get_int_min_value(), 1 << bits
        if -whole // 2 <= value < whole:
            value = (value - least) % whole + least
    return scalar_constant(value, value_type)


def scalar_constant(value: Any, value_type: dtype) -> tensor:
    """A constant scalar of a given type; the number must fit."""
    bounded = value_type.is_int() and not value_type.is_bool() and isinstance(value, (bool, int))
    if bounded and not value_type.get_int_min_value() <= value <= value_type.get_int_max_value():
        raise errors.number_out_of_range(value, str(value_type))
    return tensor(None, value_type, value)
