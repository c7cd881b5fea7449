# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Conversions between types: ``cast`` and ``x.to(dtype, bitcast=)``."""

from __future__ import annotations

from typing import Any

from . import e4b15, errors
from .emit import builtin, current
from .literals import to_tensor
from .types import dtype, float16, float32, int1, int16, int64, unwrap
from .value import member, tensor

NOT_EQUAL_INT, NOT_EQUAL_FLOAT = 1, 13  # arith.cmpi ne; arith.cmpf une
_GREATER = 2  # arith.cmpf ogt


@member
@builtin
def cast(input: Any, dtype: dtype, fp_downcast_rounding: str | None = None, bitcast: bool = False) -> tensor:
    """``input`` converted to ``dtype``; same shape. With ``bitcast`` its bits are kept and reread as ``dtype``, which
    must be as wide.

    Floats become integers by truncation toward zero, and round to nearest even where they lose precision, or toward
    zero with ``fp_downcast_rounding="rtz"``, of float32 to a 16-bit float.
    """
    value, target, rounding = to_tensor(input, "the argument of 'cast'"), unwrap(dtype), unwrap(fp_downcast_rounding)
    if not _is_type(target):
        raise errors.expected_dtype("cast", target)
    if rounding not in (None, "rtne", "rtz"):
        takes = "'rtne' (to nearest even) or 'rtz' (toward zero)"
        raise errors.unsupported_option("fp_downcast_rounding", rounding, takes)
    if rounding == "rtz" and not unwrap(bitcast):
        return _toward_zero(value, target.scalar)
    return reread(value, target.scalar) if unwrap(bitcast) else convert(value, target.scalar)


def _toward_zero(value: tensor, target: dtype) -> tensor:
    """float32 as a 16-bit float, rounded toward zero: what was rounded up in size is one unit less."""
    if value.dtype != float32 or target.primitive_bitwidth != 16 or not target.is_floating():
        raise errors.rounding_toward_zero(value.dtype, target)
    nearest = convert(value, target)
    size, kept = _absolute(convert(nearest, float32)), _absolute(value)
    result = int16.with_shape(value.shape)
    builder = current()
    larger = builder.op(
        "arith.cmpf", [size, kept], [int1.with_shape(value.shape)], {"predicate": builder.i64(_GREATER)}
    )
    bits = tensor(builder.op("arith.bitcast", [nearest.handle], [result]), result)
    one = builder.op("arith.extui", [larger], [result])
    return reread(tensor(builder.op("arith.subi", [bits.handle, one], [result]), result), target)


def _absolute(value: tensor) -> Any:
    return current().op("math.absf", [value.handle], [value.type])


@member
@builtin
def to(self: tensor, dtype: dtype, fp_downcast_rounding: str | None = None, bitcast: bool = False) -> tensor:
    """As :func:`cast`."""
    return cast(self, dtype, fp_downcast_rounding, bitcast)


def _is_type(value: Any) -> bool:
    return isinstance(value, dtype) or getattr(value, "is_block", lambda: False)()


def reread(value: tensor, target: dtype) -> tensor:
    """The same bits as another type of the same width."""
    source = value.dtype
    if source == target:
        return value
    if source.is_ptr() or target.is_ptr():
        return convert(value, target)
    if source.primitive_bitwidth != target.primitive_bitwidth:
        raise errors.bitcast_width(source, target)
    result = target.with_shape(value.shape)
    if source.mlir == target.mlir:  # int32 and uint32 are one type below
        return tensor(value.handle, result)
    return tensor(current().op("arith.bitcast", [value.handle], [result]), result)


def convert(value: tensor, target: dtype) -> tensor:
    """The value as another type."""
    source = value.dtype
    if source == target:
        return value
    if value.is_constant and source.is_int() and not target.is_ptr():
        return _constant(value, target)
    if source.is_ptr() or target.is_ptr():
        return _convert_pointer(value, target)
    if source.is_floating() and target.is_floating():
        return _convert_floats(value, target)
    if target.is_bool():
        return _not_zero(value)
    result = target.with_shape(value.shape)
    if source.is_int() and target.is_int():
        if source.primitive_bitwidth == target.primitive_bitwidth:
            return tensor(value.handle, result)
        if source.primitive_bitwidth > target.primitive_bitwidth:
            name = "arith.trunci"
        else:
            name = "arith.extsi" if source.is_int_signed() else "arith.extui"
    elif source.is_floating():
        if source.is_fp8():
            return convert(convert(value, float32), target)
        name = "arith.fptosi" if target.is_int_signed() else "arith.fptoui"
    else:
        if target.is_fp8():
            return convert(convert(value, float32), target)
        name = "arith.sitofp" if source.is_int_signed() else "arith.uitofp"
    return tensor(current().op(name, [value.handle], [result]), result)


def _constant(value: tensor, target: dtype) -> tensor:
    """A constant integer, converted now."""
    number = int(value.constant)
    if target.is_bool():
        return tensor(None, target, bool(number))
    if target.is_floating():
        return tensor(None, target, float(number))
    number &= (1 << target.primitive_bitwidth) - 1
    if target.is_int_signed() and number >> (target.primitive_bitwidth - 1):
        number -= 1 << target.primitive_bitwidth
    return tensor(None, target, number)


def _convert_floats(value: tensor, target: dtype) -> tensor:
    source = value.dtype
    if source.is_fp8e4b15():
        return convert(e4b15.to_float16(value), target)
    if target.is_fp8e4b15():
        if source != float16:  # rounded toward zero first, as Triton has it
            value = _toward_zero(convert(value, float32), float16)
        return e4b15.from_float16(value, target)
    # Neither holds the other: through float32, which holds both 16-bit types and both 8-bit ones.
    if source.primitive_bitwidth == target.primitive_bitwidth:
        return _convert_floats(_convert_floats(value, float32), target)
    result = target.with_shape(value.shape)
    name = "arith.extf" if source.primitive_bitwidth < target.primitive_bitwidth else "arith.truncf"
    return tensor(current().op(name, [value.handle], [result]), result)


def _not_zero(value: tensor) -> tensor:
    if value.dtype.is_fp8e4b15():
        value = e4b15.to_float16(value)
    builder, result = current(), int1.with_shape(value.shape)
    zero = builder.constant(0, value.type)
    if value.dtype.is_floating():
        name, predicate = "arith.cmpf", NOT_EQUAL_FLOAT
    else:
        name, predicate = "arith.cmpi", NOT_EQUAL_INT
    return tensor(builder.op(name, [value.handle, zero], [result], {"predicate": builder.i64(predicate)}), result)


def _convert_pointer(value: tensor, target: dtype) -> tensor:
    builder, source, result = current(), value.dtype, target.with_shape(value.shape)
    if source.is_ptr() and target.is_ptr():
        if source.mlir == target.mlir:
            return tensor(value.handle, result)
        return tensor(builder.op("tile.ptr_cast", [value.handle], [result]), result)
    if source.is_ptr():
        if target.is_bool():
            return _not_zero(convert(value, int64))
        if target.primitive_bitwidth != 64 or not target.is_int():
            raise errors.pointer_cast(source, target)
        return tensor(builder.op("tile.ptr_to_int", [value.handle], [result]), result)
    if not source.is_int():
        raise errors.pointer_cast(source, target)
    return tensor(builder.op("tile.int_to_ptr", [convert(value, int64).handle], [result]), result)
