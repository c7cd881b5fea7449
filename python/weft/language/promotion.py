# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""How operands of different types and shapes meet: Triton's promotion rules, and broadcasting."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

from . import casts, errors
from .emit import current
from .literals import is_number, number_type, scalar_constant, to_tensor
from .types import bfloat16, dtype, float16, float32, float64, unwrap
from .value import tensor


def promote_integers(a: dtype, b: dtype) -> dtype:
    """C's usual conversions: the wider type; of two equally wide ones the unsigned."""
    if a.is_int_signed() == b.is_int_signed():
        return a if a.primitive_bitwidth > b.primitive_bitwidth else b
    unsigned, signed = (b, a) if a.is_int_signed() else (a, b)
    return unsigned if unsigned.primitive_bitwidth >= signed.primitive_bitwidth else signed


@functools.lru_cache(maxsize=1024)
def computation_type(a: dtype, a_is_number: bool, b: dtype, b_is_number: bool, division: bool = False) -> dtype:
    """The type in which a binary operation computes.

    A Python number of the same or a lower kind than the tensor's takes the tensor's type.
    """
    if a_is_number != b_is_number:
        number, other = (a, b) if a_is_number else (b, a)
        if number.kind() <= other.kind():
            a = b = other
    if float64 in (a, b):
        return float64
    if division and (a.is_floating() or b.is_floating()):
        return float32
    if float32 in (a, b):
        return float32
    if float16 in (a, b):
        return float16
    if bfloat16 in (a, b):
        return bfloat16 if a == b else float32
    if a.is_fp8() and b.is_fp8():
        return a if a == b else float16
    if a.is_floating() or b.is_floating():
        raise errors.no_common_type(a, b)
    if division and a.is_int_signed() != b.is_int_signed():
        raise errors.signedness_differs(a, b)
    return promote_integers(a, b)


def in_type(value: Any, value_type: dtype) -> tensor:
    """A tensor cast, or a number made a constant, of a type."""
    if not is_number(value):
        return casts.convert(value, value_type)
    if value_type.is_int_unsigned() and not value_type.is_bool() and value < 0:
        raise errors.negative_with_unsigned(value, value_type)
    return scalar_constant(value, value_type)


def operands(
    operation: str,
    lhs: Any,
    rhs: Any,
    *,
    pointers: tuple[bool, bool] = (False, False),
    division: bool = False,
    convert: bool = True,
) -> tuple[tensor, tensor]:
    """Both operands of a binary operation, of one type (pointers excepted) and one shape.

    ``pointers`` says on which sides pointers are allowed; ``division`` asks for the rules of ``/``, ``//`` and ``%``.
    """
    lhs, rhs = _operand(operation, lhs), _operand(operation, rhs)
    lhs_is_number, rhs_is_number = is_number(lhs), is_number(rhs)
    lhs_type = number_type(lhs) if lhs_is_number else lhs.dtype
    rhs_type = number_type(rhs) if rhs_is_number else rhs.dtype
    if lhs_type.is_ptr() or rhs_type.is_ptr():
        for one, other, allowed in ((lhs_type, rhs_type, pointers[0]), (rhs_type, lhs_type, pointers[1])):
            if one.is_ptr() and (not allowed or other.is_floating() or (other.is_ptr() and other != one)):
                raise errors.pointer_operand(operation, lhs_type, rhs_type)
        return broadcast_pair(to_tensor(lhs), to_tensor(rhs))
    if not convert:
        return broadcast_pair(to_tensor(lhs), to_tensor(rhs))
    common = computation_type(lhs_type, lhs_is_number, rhs_type, rhs_is_number, division)
    return broadcast_pair(in_type(lhs, common), in_type(rhs, common))


def _operand(operation: str, value: Any) -> Any:
    value = unwrap(value)
    if isinstance(value, tensor) or is_number(value):
        return value
    raise errors.expected_value(f"an operand of '{operation}'", value)


@functools.lru_cache(maxsize=4096)
def broadcast_shape(a: tuple[int, ...], b: tuple[int, ...]) -> tuple[int, ...]:
    """The shape two shapes broadcast to; axes are matched from the last, and a missing axis counts as 1."""
    rank = max(len(a), len(b))
    left, right = (1,) * (rank - len(a)) + a, (1,) * (rank - len(b)) + b
    for axis, (x, y) in enumerate(zip(left, right, strict=True)):
        if x != y and 1 not in (x, y):
            raise errors.not_broadcastable(a, b, axis, x, y)
    return tuple(max(x, y) for x, y in zip(left, right, strict=True))


def broadcast_pair(a: tensor, b: tensor) -> tuple[tensor, tensor]:
    """Two tensors in their common shape."""
    if a.shape == b.shape:
        return a, b
    shape = broadcast_shape(a.shape, b.shape)
    return broadcast_to_shape(a, shape), broadcast_to_shape(b, shape)


def broadcast_all(values: Sequence[tensor]) -> list[tensor]:
    """Any number of tensors in the one shape they broadcast to."""
    shape: tuple[int, ...] = functools.reduce(broadcast_shape, (value.shape for value in values), ())
    return [broadcast_to_shape(value, shape) for value in values]


def broadcast_to_shape(value: tensor, shape: tuple[int, ...]) -> tensor:
    """A tensor repeated to a shape that its own broadcasts to."""
    own = value.shape
    if own == shape:
        return value
    if len(own) > len(shape) or broadcast_shape(own, shape) != shape:
        raise errors.cannot_broadcast_to(own, shape)
    builder = current()
    target = value.dtype.with_shape(shape)
    if not own:
        if value.is_constant:
            return tensor(builder.constant(value.constant, target), target)
        return tensor(builder.op("tile.splat", [value.handle], [target]), target)
    while len(value.shape) < len(shape):
        expanded = value.dtype.with_shape((1, *value.shape))
        value = tensor(builder.op("tile.expand_dims", [value.handle], [expanded], {"axis": builder.i32(0)}), expanded)
    if value.shape == shape:
        return value
    return tensor(builder.op("tile.broadcast", [value.handle], [target]), target)
