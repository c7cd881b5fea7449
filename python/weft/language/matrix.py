# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Matrix products."""

from __future__ import annotations

from typing import Any

from . import errors
from .casts import convert
from .emit import builtin, current
from .literals import to_tensor
from .types import dtype, float16, float32, int8, int32, unwrap
from .value import tensor

_PRECISIONS = ("tf32", "tf32x3", "ieee")
MIN_SIZE = 16


@builtin
def dot(
    input: Any,
    other: Any,
    acc: Any = None,
    input_precision: str | None = None,
    allow_tf32: bool | None = None,
    max_num_imprecise_acc: int | None = None,
    out_dtype: dtype | None = None,
) -> tensor:
    """The matrix product of ``input`` [M, K] and ``other`` [K, N], plus ``acc`` [M, N] where given.

    Both operands have one type: float16, bfloat16, float32, an 8-bit float or int8. The result is float32 (int32 for
    int8; float16 where ``out_dtype`` or
    ``acc`` asks for it). ``input_precision`` says how float32 operands are multiplied: "tf32" (default), "tf32x3" or
    "ieee". M, N and K are at least 16.
    """
    lhs, rhs = _operand(input, "the first operand"), _operand(other, "the second operand")
    if lhs.dtype != rhs.dtype:
        raise errors.dot_types_differ(lhs, rhs)
    if lhs.dtype.is_fp8():  # every 8-bit float is a float16
        lhs, rhs = convert(lhs, float16), convert(rhs, float16)
    _check_shapes(lhs, rhs)
    accumulator = None if unwrap(acc) is None else to_tensor(acc, "'acc' of 'dot'")
    result_type = _result_type(lhs.dtype, accumulator, unwrap(out_dtype))
    result = result_type.with_shape((lhs.shape[0], rhs.shape[1]))
    if accumulator is not None and accumulator.type != result:
        raise errors.dot_accumulator(accumulator, result)
    builder = current()
    start = builder.constant(0, result) if accumulator is None else accumulator.handle
    precision = builder.attribute(f"#tile<precision {_precision(input_precision, allow_tf32, builder.options)}>")
    return tensor(builder.op("tile.dot", [lhs.handle, rhs.handle, start], [result], {"precision": precision}), result)


def _operand(value: Any, what: str) -> tensor:
    operand = to_tensor(value, f"{what} of 'dot'")
    if len(operand.shape) != 2:
        raise errors.dot_rank(what, operand)
    if operand.dtype.is_ptr() or not (
        (operand.dtype.is_floating() and operand.dtype.primitive_bitwidth <= 32) or operand.dtype == int8
    ):
        raise errors.dot_type(what, operand)
    return operand


def _check_shapes(lhs: tensor, rhs: tensor) -> None:
    if lhs.shape[1] != rhs.shape[0]:
        raise errors.dot_shapes(lhs, rhs)
    if min(*lhs.shape, *rhs.shape) < MIN_SIZE:
        raise errors.dot_too_small(lhs, rhs, MIN_SIZE)


def _result_type(operand: dtype, accumulator: tensor | None, wanted: dtype | None) -> dtype:
    if operand == int8:
        return int32
    if wanted is None:
        wanted = float32 if accumulator is None else accumulator.dtype
    allowed = (float32, float16) if operand == float16 else (float32,)
    if wanted not in allowed:
        raise errors.dot_result_type(operand, wanted, allowed)
    return wanted


def _precision(input_precision: Any, allow_tf32: Any, options: Any) -> str:
    precision = unwrap(input_precision)
    if precision is None:
        precision = "ieee" if unwrap(allow_tf32) is False else "tf32"
    if precision not in _PRECISIONS:
        raise errors.unsupported_option("input_precision", precision, " ".join(repr(p) for p in _PRECISIONS))
    return str(precision)
