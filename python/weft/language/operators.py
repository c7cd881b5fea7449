# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""The operators of tensors: arithmetic, bits, comparisons. Integer ``//`` and ``%`` round toward zero, as in C."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from . import errors
from .casts import convert
from .emit import builtin, current
from .literals import is_number, number_type, to_tensor
from .promotion import computation_type, operands
from .types import dtype, float32, int1, int64, unwrap
from .value import attach, tensor

# arith.cmpi: signed, unsigned; arith.cmpf: ordered, but for != which is true when an operand is no number.
_PREDICATES = {"==": (0, 0, 1), "!=": (1, 1, 13), "<": (2, 6, 4), "<=": (3, 7, 5), ">": (4, 8, 2), ">=": (5, 9, 3)}


def emit_binary(name: str, lhs: tensor, rhs: tensor) -> tensor:
    """An operation of two operands and a result, all of lhs's type."""
    return tensor(current().op(name, [lhs.handle, rhs.handle], [lhs.type]), lhs.type)


def _folded(lhs: Any, rhs: Any, division: bool, function: Callable[[int, int], Any]) -> tensor | None:
    """The result of integer constants, where it is one and fits its type."""
    a = lhs.constant if isinstance(lhs, tensor) else lhs
    b = rhs.constant if isinstance(rhs, tensor) else rhs
    if not isinstance(a, int) or not isinstance(b, int):
        return None
    a_type = lhs.dtype if isinstance(lhs, tensor) else number_type(a)
    b_type = rhs.dtype if isinstance(rhs, tensor) else number_type(b)
    common = computation_type(a_type, is_number(lhs), b_type, is_number(rhs), division)
    if common.is_bool() or not all(common.get_int_min_value() <= x <= common.get_int_max_value() for x in (a, b)):
        return None
    result = function(a, b)
    if isinstance(result, bool):
        return tensor(None, int1, result)
    if not common.get_int_min_value() <= result <= common.get_int_max_value():
        return None
    return tensor(None, common, result)


def _truncated_quotient(a: int, b: int) -> int:
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def _check_divisor(divisor: Any) -> None:
    """Refuses an integer divisor that is known to be 0."""
    known = divisor.constant if isinstance(divisor, tensor) else divisor
    if isinstance(known, int) and known == 0:
        raise errors.division_by_zero()


@builtin
def add(lhs: Any, rhs: Any, sanitize_overflow: bool = True) -> tensor:
    """``lhs + rhs``; a pointer and an integer give a pointer that many elements on.

    ``sanitize_overflow`` is accepted, without effect: integers wrap.
    """
    folded = _folded(lhs, rhs, False, operator.add)
    if folded is not None:
        return folded
    lhs, rhs = operands("+", lhs, rhs, pointers=(True, True))
    if lhs.dtype.is_ptr() and rhs.dtype.is_ptr():
        raise errors.pointer_operand("+", lhs.dtype, rhs.dtype)
    if rhs.dtype.is_ptr():
        lhs, rhs = rhs, lhs
    if lhs.dtype.is_ptr():
        return advance(lhs, rhs)
    _check_arithmetic("+", lhs.dtype)
    return emit_binary("arith.addf" if lhs.dtype.is_floating() else "arith.addi", lhs, rhs)


def advance(pointer: tensor, offset: tensor) -> tensor:
    """A pointer moved by a number of elements."""
    if offset.dtype.is_int_unsigned():  # tile.addptr reads the offset as signed
        offset = convert(offset, int64)
    return tensor(current().op("tile.addptr", [pointer.handle, offset.handle], [pointer.type]), pointer.type)


@builtin
def sub(lhs: Any, rhs: Any, sanitize_overflow: bool = True) -> tensor:
    """``lhs - rhs``; an integer may be taken from a pointer.

    ``sanitize_overflow`` is accepted, without effect: integers wrap.
    """
    folded = _folded(lhs, rhs, False, operator.sub)
    if folded is not None:
        return folded
    lhs, rhs = operands("-", lhs, rhs, pointers=(True, False))
    if lhs.dtype.is_ptr():
        return advance(lhs, neg(convert(rhs, int64) if rhs.dtype.is_int_unsigned() else rhs))
    _check_arithmetic("-", lhs.dtype)
    return emit_binary("arith.subf" if lhs.dtype.is_floating() else "arith.subi", lhs, rhs)


@builtin
def mul(lhs: Any, rhs: Any, sanitize_overflow: bool = True) -> tensor:
    """``lhs * rhs``.

    ``sanitize_overflow`` is accepted, without effect: integers wrap.
    """
    folded = _folded(lhs, rhs, False, operator.mul)
    if folded is not None:
        return folded
    lhs, rhs = operands("*", lhs, rhs)
    _check_arithmetic("*", lhs.dtype)
    return emit_binary("arith.mulf" if lhs.dtype.is_floating() else "arith.muli", lhs, rhs)


def _check_arithmetic(operation: str, value_type: dtype) -> None:
    if value_type.is_fp8():
        raise errors.no_fp8_arithmetic(operation, value_type)


@builtin
def truediv(lhs: Any, rhs: Any) -> tensor:
    """``lhs / rhs``, in float32 or float64."""
    lhs, rhs = operands("/", lhs, rhs, division=True)
    if lhs.dtype.is_int():
        lhs, rhs = convert(lhs, float32), convert(rhs, float32)
    _check_arithmetic("/", lhs.dtype)
    return emit_binary("arith.divf", lhs, rhs)


@builtin
def floordiv(lhs: Any, rhs: Any) -> tensor:
    """``lhs // rhs`` of integers, rounded toward zero."""
    _check_divisor(rhs)
    folded = _folded(lhs, rhs, True, _truncated_quotient)
    if folded is not None:
        return folded
    lhs, rhs = operands("//", lhs, rhs, division=True)
    if not lhs.dtype.is_int():
        raise errors.needs_integers(
            "//", lhs.dtype, "divide with '/' and round with wl.floor, or cast both operands to an integer type"
        )
    return emit_binary("arith.divsi" if lhs.dtype.is_int_signed() else "arith.divui", lhs, rhs)


@builtin
def mod(lhs: Any, rhs: Any) -> tensor:
    """``lhs % rhs``: what division toward zero leaves, so it has the sign of ``lhs``."""
    _check_divisor(rhs)
    folded = _folded(lhs, rhs, True, lambda a, b: a - b * _truncated_quotient(a, b))
    if folded is not None:
        return folded
    lhs, rhs = operands("%", lhs, rhs, division=True)
    if lhs.dtype.is_floating():
        return emit_binary("arith.remf", lhs, rhs)
    return emit_binary("arith.remsi" if lhs.dtype.is_int_signed() else "arith.remui", lhs, rhs)


def _bitwise(symbol: str, lhs: Any, rhs: Any) -> tuple[tensor, tensor]:
    lhs, rhs = operands(symbol, lhs, rhs)
    if not lhs.dtype.is_int():
        raise errors.needs_integers(
            symbol, lhs.dtype, "cast to an integer type first, or reread the bits with .to(wl.int32, bitcast=True)"
        )
    return lhs, rhs


@builtin
def and_(lhs: Any, rhs: Any) -> tensor:
    """``lhs & rhs``."""
    return emit_binary("arith.andi", *_bitwise("&", lhs, rhs))


@builtin
def or_(lhs: Any, rhs: Any) -> tensor:
    """``lhs | rhs``."""
    return emit_binary("arith.ori", *_bitwise("|", lhs, rhs))


@builtin
def xor(lhs: Any, rhs: Any) -> tensor:
    """``lhs ^ rhs``."""
    return emit_binary("arith.xori", *_bitwise("^", lhs, rhs))


@builtin
def shl(lhs: Any, rhs: Any) -> tensor:
    """``lhs << rhs``."""
    folded = _folded(lhs, rhs, False, lambda a, b: a << b if 0 <= b < 64 else 1 << 64)
    return folded if folded is not None else emit_binary("arith.shli", *_bitwise("<<", lhs, rhs))


@builtin
def shr(lhs: Any, rhs: Any) -> tensor:
    """``lhs >> rhs``; the sign of a signed ``lhs`` is kept, also where ``rhs`` makes the result unsigned."""
    folded = _folded(lhs, rhs, False, lambda a, b: a >> b if 0 <= b < 64 else 1 << 64)
    if folded is not None:
        return folded
    shifted = unwrap(lhs)
    lhs, rhs = _bitwise(">>", lhs, rhs)
    signed = (shifted if isinstance(shifted, tensor) else lhs).dtype.is_int_signed()
    return emit_binary("arith.shrsi" if signed else "arith.shrui", lhs, rhs)


def neg(value: Any) -> tensor:
    """``-value``."""
    value = to_tensor(value)
    if value.dtype.is_ptr() or value.dtype.is_fp8():
        raise errors.unary_operand("-", value.dtype)
    if isinstance(value.constant, int) and not value.dtype.is_bool() and value.dtype.is_int_signed():
        return tensor(None, value.dtype, -value.constant)
    if value.dtype.is_floating():
        return tensor(current().op("arith.negf", [value.handle], [value.type]), value.type)
    return emit_binary("arith.subi", tensor(current().constant(0, value.type), value.type), value)


def invert(value: Any) -> tensor:
    """``~value``: every bit flipped, the negation of a bool."""
    value = to_tensor(value)
    if not value.dtype.is_int():
        raise errors.unary_operand("~", value.dtype)
    return emit_binary(
        "arith.xori", value, tensor(current().constant(1 if value.dtype.is_bool() else -1, value.type), value.type)
    )


def compare(symbol: str, lhs: Any, rhs: Any) -> tensor:
    """A comparison, element by element; a bool of the broadcast shape."""
    folded = _folded(lhs, rhs, False, _COMPARE[symbol])
    if folded is not None:
        return folded
    lhs, rhs = operands(symbol, lhs, rhs)
    signed, unsigned, floating = _PREDICATES[symbol]
    builder, result = current(), int1.with_shape(lhs.shape)
    if lhs.dtype.is_floating():
        _check_arithmetic(symbol, lhs.dtype)
        name, predicate = "arith.cmpf", floating
    else:
        name, predicate = "arith.cmpi", signed if lhs.dtype.is_int_signed() else unsigned
    return tensor(builder.op(name, [lhs.handle, rhs.handle], [result], {"predicate": builder.i64(predicate)}), result)


_COMPARE = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def as_bool(value: Any, what: str) -> tensor:
    """A value as a truth value, element by element: itself, or whether it is not 0."""
    value = to_tensor(value, what)
    if value.constant is not None:
        return tensor(None, int1, bool(value.constant))
    return convert(value, int1)


@builtin
def logical_and(lhs: Any, rhs: Any) -> tensor:
    """``lhs and rhs`` of tensors: both are computed."""
    return and_(as_bool(lhs, "an operand of 'and'"), as_bool(rhs, "an operand of 'and'"))


@builtin
def logical_or(lhs: Any, rhs: Any) -> tensor:
    """``lhs or rhs`` of tensors: both are computed."""
    return or_(as_bool(lhs, "an operand of 'or'"), as_bool(rhs, "an operand of 'or'"))


def logical_not(value: Any) -> tensor:
    """``not value`` of a tensor, element by element."""
    value = as_bool(value, "the operand of 'not'")
    return tensor(None, int1, not value.constant) if value.constant is not None else invert(value)


BINARY: dict[str, Callable[[Any, Any], tensor]] = {
    "+": add,
    "-": sub,
    "*": mul,
    "/": truediv,
    "//": floordiv,
    "%": mod,
    "&": and_,
    "|": or_,
    "^": xor,
    "<<": shl,
    ">>": shr,
}


#: operators as methods of tensors: kernels may call them by these names
METHODS: set[str] = set()


def _method(name: str, function: Callable[..., Any]) -> None:
    if function.__name__ == "<lambda>":
        function.__name__ = name
    attach(name, builtin(function))
    METHODS.add(name)


def _install() -> None:
    """Give tensors the operators, so that the language's own functions can use them."""
    names = {
        "+": "add",
        "-": "sub",
        "*": "mul",
        "/": "truediv",
        "//": "floordiv",
        "%": "mod",
        "&": "and",
        "|": "or",
        "^": "xor",
        "<<": "lshift",
        ">>": "rshift",
    }
    for symbol, name in names.items():
        function = BINARY[symbol]
        _method(f"__{name}__", lambda self, other, f=function: f(self, unwrap(other)))
        _method(f"__r{name}__", lambda self, other, f=function: f(unwrap(other), self))
    for symbol, name in {"==": "eq", "!=": "ne", "<": "lt", "<=": "le", ">": "gt", ">=": "ge"}.items():
        _method(f"__{name}__", lambda self, other, s=symbol: compare(s, self, unwrap(other)))
    _method("__neg__", neg)
    _method("__pos__", lambda self: self)
    _method("__invert__", invert)
    _method("__not__", logical_not)
    attach("logical_and", logical_and)
    attach("logical_or", logical_or)


_install()
