# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Functions of numbers, element by element.

Those of the MLIR ``math`` dialect take floats; 16-bit floats are computed in float32 and rounded.
"""

from __future__ import annotations

import enum
from collections.abc import Callable
from typing import Any

from . import e4b15, errors
from .casts import convert
from .emit import builtin, current
from .inline_asm import inline_asm_elementwise
from .literals import is_number, number_type, to_tensor
from .operators import emit_binary
from .promotion import broadcast_all, broadcast_pair, computation_type, in_type, operands
from .types import float32, float64, int1, unwrap
from .value import attach, member, tensor


class PropagateNan(enum.Enum):
    """What ``maximum``, ``minimum`` and ``clamp`` give when an operand is not a number: the other operand (NONE), or
    not a number (ALL).
    """

    NONE = 0
    ALL = 0xFFFF


#: By name, functions of float64 that the machine has no instructions for; :mod:`weft.language.doubles` fills it.
FLOAT64: dict[str, Callable[[tensor], tensor]] = {}


def _unary(name: str, x: Any) -> tensor:
    """A ``math`` operation, in float32 or float64."""
    x = to_tensor(x, f"the argument of '{name}'")
    if not x.dtype.is_floating():
        raise errors.needs_floats(name, x.dtype)
    if x.dtype.primitive_bitwidth == 64 and name in FLOAT64:
        return FLOAT64[name](x)
    wide = x if x.dtype.primitive_bitwidth >= 32 else convert(x, float32)
    result = tensor(current().op(f"math.{name}", [wide.handle], [wide.type]), wide.type)
    return convert(result, x.dtype)


def _to_nearest(operation: str, values: list[tensor]) -> tensor:
    """An instruction of float32 that rounds to nearest even, as ``/`` and ``sqrt`` do not. Narrower floats are computed
    by it and rounded once more, which gives their nearest."""
    operands = ["r"] * len(values)
    named = ", ".join(f"${i}" for i in range(len(values) + 1))
    wide = [convert(value, float32) for value in values]
    constraints = ",".join(["=r", *operands])
    result = inline_asm_elementwise(f"{operation}.rn.f32 {named};", constraints, wide, float32, True, 1)
    return convert(result, values[0].dtype)


@member
@builtin
def exp(x: Any) -> tensor:
    """e to the power x."""
    return _unary("exp", x)


@member
@builtin
def exp2(x: Any) -> tensor:
    """2 to the power x."""
    return _unary("exp2", x)


@member
@builtin
def log(x: Any) -> tensor:
    """The natural logarithm."""
    return _unary("log", x)


@member
@builtin
def log2(x: Any) -> tensor:
    """The logarithm to base 2."""
    return _unary("log2", x)


@member
@builtin
def sqrt(x: Any) -> tensor:
    """The square root."""
    return _unary("sqrt", x)


@member
@builtin
def sqrt_rn(x: Any) -> tensor:
    """The square root, rounded to nearest even, as :func:`sqrt` of float32 is not."""
    x = to_tensor(x, "the argument of 'sqrt_rn'")
    return _to_nearest("sqrt", [x]) if x.dtype.is_floating() and x.dtype != float64 else _unary("sqrt", x)


@member
@builtin
def rsqrt(x: Any) -> tensor:
    """One over the square root."""
    return _unary("rsqrt", x)


@member
@builtin
def sin(x: Any) -> tensor:
    """The sine of an angle in radians."""
    return _unary("sin", x)


@member
@builtin
def cos(x: Any) -> tensor:
    """The cosine of an angle in radians."""
    return _unary("cos", x)


@member
@builtin
def tanh(x: Any) -> tensor:
    """The hyperbolic tangent."""
    return _unary("tanh", x)


@member
@builtin
def erf(x: Any) -> tensor:
    """The error function."""
    return _unary("erf", x)


@member
@builtin
def floor(x: Any) -> tensor:
    """The greatest integer that is not greater, as a float."""
    return _unary("floor", x)


@member
@builtin
def ceil(x: Any) -> tensor:
    """The least integer that is not less, as a float."""
    return _unary("ceil", x)


@member
@builtin
def abs(x: Any) -> tensor:
    """The absolute value of floats or integers."""
    x = to_tensor(x, "the argument of 'abs'")
    if x.dtype.is_fp8e4b15():
        return e4b15.magnitude(x)
    if x.dtype.is_floating():
        return tensor(current().op("math.absf", [x.handle], [x.type]), x.type)
    if x.dtype.is_int_signed():
        return tensor(current().op("math.absi", [x.handle], [x.type]), x.type)
    if x.dtype.is_int_unsigned():
        return x
    raise errors.unary_operand("abs", x.dtype)


@builtin
def fma(x: Any, y: Any, z: Any) -> tensor:
    """x·y + z with one rounding, of floats; the operands broadcast together."""
    x, y, z = _ternary("fma", x, y, z)
    _refuse_e4b15("fma", x)
    if not x.dtype.is_floating():
        raise errors.needs_floats("fma", x.dtype)
    return tensor(current().op("math.fma", [x.handle, y.handle, z.handle], [x.type]), x.type)


def _ternary(operation: str, *values: Any) -> list[tensor]:
    """Three operands of one type and shape; Python numbers give way to tensors."""
    common: Any = None
    number: Any = None
    for value in values:
        if is_number(unwrap(value)):
            own = number_type(unwrap(value))
            number = own if number is None else computation_type(number, True, own, True)
        else:
            own = to_tensor(value, f"an operand of '{operation}'").dtype
            if own.is_ptr():
                raise errors.pointer_operand(operation, own, own)
            common = own if common is None else computation_type(common, False, own, False)
    if common is None or number is None:
        result = number if common is None else common
    else:
        result = computation_type(common, False, number, True)
    return broadcast_all([in_type(unwrap(value), result) for value in values])


def _refuse_e4b15(operation: str, x: tensor) -> None:
    """Its bits are integers below: an operation would be one on those."""
    if x.dtype.is_fp8e4b15():
        raise errors.no_fp8_arithmetic(operation, x.dtype)


def _extremum(symbol: str, x: Any, y: Any, names: tuple[str, str, str, str], propagate_nan: Any) -> tensor:
    x, y = operands(symbol, x, y)
    _refuse_e4b15(symbol, x)
    if x.dtype.is_floating():
        name = names[1] if unwrap(propagate_nan) is PropagateNan.ALL else names[0]
    else:
        name = names[2] if x.dtype.is_int_signed() else names[3]
    return emit_binary(name, x, y)


@builtin
def maximum(x: Any, y: Any, propagate_nan: PropagateNan = PropagateNan.NONE) -> tensor:
    """The greater of x and y, element by element; they broadcast together."""
    return _extremum("maximum", x, y, ("arith.maxnumf", "arith.maximumf", "arith.maxsi", "arith.maxui"), propagate_nan)


@builtin
def minimum(x: Any, y: Any, propagate_nan: PropagateNan = PropagateNan.NONE) -> tensor:
    """The lesser of x and y, element by element; they broadcast together."""
    return _extremum("minimum", x, y, ("arith.minnumf", "arith.minimumf", "arith.minsi", "arith.minui"), propagate_nan)


@builtin
def clamp(x: Any, min: Any, max: Any, propagate_nan: PropagateNan = PropagateNan.NONE) -> tensor:
    """x held between min and max; the three broadcast together."""
    x, low, high = _ternary("clamp", x, min, max)
    return minimum(maximum(x, low, propagate_nan), high, propagate_nan)


@member
@builtin
def sigmoid(x: Any) -> tensor:
    """1 / (1 + exp(-x))."""
    return 1 / (1 + exp(-to_tensor(x)))


@builtin
def fdiv(x: Any, y: Any, ieee_rounding: bool = False) -> tensor:
    """x / y of floats: within 2 units of the last place in float32, or rounded to nearest even."""
    x, y = operands("fdiv", x, y, division=True)
    if not x.dtype.is_floating():
        raise errors.needs_floats("fdiv", x.dtype)
    to_nearest = unwrap(ieee_rounding) and x.dtype != float64  # that of float64 is
    return _to_nearest("div", [x, y]) if to_nearest else emit_binary("arith.divf", x, y)


@builtin
def div_rn(x: Any, y: Any) -> tensor:
    """x / y, rounded to nearest even, as ``/`` of float32 is not."""
    return fdiv(x, y, ieee_rounding=True)


@builtin
def umulhi(x: Any, y: Any) -> tensor:
    """The upper half of the product of 32-bit or 64-bit integers, read as unsigned."""
    x, y = operands("umulhi", x, y)
    if not x.dtype.is_int() or x.dtype.primitive_bitwidth < 32:
        raise errors.needs_integers("umulhi", x.dtype, "cast both operands to a 32-bit or 64-bit integer type")
    _, high = current().op("arith.mului_extended", [x.handle, y.handle], [x.type, x.type])
    return tensor(high, x.type)


@builtin
def cdiv(x: Any, div: Any) -> Any:
    """x / div rounded up, of non-negative integers."""
    x, div = unwrap(x), unwrap(div)
    if is_number(x) and is_number(div):
        return -(-x // div)
    return (to_tensor(x) + (div - 1)) // div


attach("cdiv", cdiv)


@builtin
def where(condition: Any, x: Any, y: Any) -> tensor:
    """x where the condition is true, y elsewhere; the three broadcast together. Both x and y are computed.

    wl.store(y + at, wl.where(at < M, wl.load(x + at), 0.0))
    """
    condition = convert(to_tensor(condition, "the condition of 'where'"), int1)
    x, y = operands("where", x, y, pointers=(True, True))
    condition, x = broadcast_pair(condition, x)
    x, y = broadcast_pair(x, y)
    return tensor(current().op("arith.select", [condition.handle, x.handle, y.handle], [x.type]), x.type)


__all__ = [
    "PropagateNan",
    "abs",
    "cdiv",
    "ceil",
    "clamp",
    "cos",
    "div_rn",
    "erf",
    "exp",
    "exp2",
    "fdiv",
    "floor",
    "fma",
    "log",
    "log2",
    "maximum",
    "minimum",
    "rsqrt",
    "sigmoid",
    "sin",
    "sqrt",
    "sqrt_rn",
    "tanh",
    "umulhi",
    "where",
]
