# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""float8e4b15, Triton's format of 8 bits that no machine has: four bits of exponent with bias 15, as float16 has, and
three of mantissa. Conversions are integer arithmetic on the bits of float16, and give Triton's bits: magnitudes are
rounded to nearest, halves away from zero, and what is more than 1.75, infinite or not a number becomes 1.75."""

from __future__ import annotations

from typing import Any

from .emit import current
from .types import dtype, float16, int16, uint8
from .value import tensor

_LARGEST = 0x3F00  # 1.75, as float16


def to_float16(value: tensor) -> tensor:
    """The numbers as float16, which holds each of them: the magnitude's bits, seven places up."""
    wide = _op("arith.extui", [value.handle], int16, value)
    shape = value.shape
    sign = _shifted("arith.shli", _and(wide, 0x80), 8)
    size = _shifted("arith.shli", _and(wide, 0x7F), 7)
    result = _op("arith.ori", [sign.handle, size.handle], int16, wide)
    return tensor(
        current().op("arith.bitcast", [result.handle], [float16.with_shape(shape)]), float16.with_shape(shape)
    )


def from_float16(value: tensor, target: dtype) -> tensor:
    """float16 as numbers of this format."""
    bits = _op("arith.bitcast", [value.handle], int16, value)
    size = _and(bits, 0x7FFF)
    size = _op("arith.minsi", [size.handle, _constant(_LARGEST, size)], int16, size)
    rounded = _shifted("arith.shrui", _op("arith.addi", [size.handle, _constant(0x40, size)], int16, size), 7)
    sign = _shifted("arith.shrui", _and(bits, -0x8000), 8)
    whole = _op("arith.ori", [sign.handle, rounded.handle], int16, bits)
    return tensor(_op("arith.trunci", [whole.handle], uint8, whole).handle, target.with_shape(value.shape))


def magnitude(value: tensor) -> tensor:
    """The numbers without their signs."""
    bits = tensor(value.handle, uint8.with_shape(value.shape))
    size = _op("arith.andi", [bits.handle, _constant(0x7F, bits)], uint8, bits)
    return tensor(size.handle, value.type)


def _op(name: str, operands: list[Any], element: dtype, like: tensor) -> tensor:
    result = element.with_shape(like.shape)
    return tensor(current().op(name, operands, [result]), result)


def _constant(number: int, like: tensor) -> Any:
    return current().constant(number, like.type)


def _and(value: tensor, mask: int) -> tensor:
    return _op("arith.andi", [value.handle, _constant(mask, value)], int16, value)


def _shifted(name: str, value: tensor, places: int) -> tensor:
    return _op(name, [value.handle, _constant(places, value)], int16, value)
