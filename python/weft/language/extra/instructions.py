# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""libdevice's names that are one instruction of PTX: arithmetic and conversions by a mode of rounding, ``_rn`` to the
nearest, ``_rz`` toward zero, ``_rd`` down, ``_ru`` up, which is never fused with other arithmetic; bits of integers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from weft.language import errors
from weft.language.casts import convert, reread
from weft.language.emit import builtin
from weft.language.inline_asm import inline_asm_elementwise
from weft.language.literals import to_tensor
from weft.language.operators import add, and_, or_, shl, shr, sub, xor
from weft.language.promotion import operands
from weft.language.types import dtype, float32, float64, int32, int64, uint32, uint64
from weft.language.value import tensor

_MODES = {"rn": ("rn", "to the nearest"), "rz": ("rz", "toward zero"), "rd": ("rm", "down"), "ru": ("rp", "up")}
_REGISTERS = {32: "r", 64: "l"}
_NUMBERS = {
    "int": (int32, "s32"),
    "uint": (uint32, "u32"),
    "ll": (int64, "s64"),
    "ull": (uint64, "u64"),
    "float": (float32, "f32"),
    "double": (float64, "f64"),
}


def _instruction(code: str, values: Sequence[tensor], result: dtype) -> tensor:
    """One instruction of the values, in which ``$0`` is the result."""
    kinds = [_REGISTERS[kind.primitive_bitwidth] for kind in (result, *(v.dtype for v in values))]
    named = ", ".join(f"${i}" for i in range(len(kinds)))
    return inline_asm_elementwise(f"{code} {named};", f"={','.join(kinds)}", values, result, True, 1)


def _floats(name: str, arguments: Sequence[Any]) -> list[tensor]:
    """Arguments of one type, float32 or float64."""
    values = [to_tensor(each, f"an argument of '{name}'") for each in arguments]
    for value in values:
        if not value.dtype.is_floating():
            raise errors.needs_floats(name, value.dtype)
    wide = float64 if any(v.dtype == float64 for v in values) else float32
    return [convert(v, wide) for v in values]


def _arithmetic(operation: str, count: int, mode: str) -> Callable[..., Any]:
    spelled, meaning = _MODES[mode]
    name = f"{operation}_{mode}"

    def function(*arguments: Any) -> tensor:
        if len(arguments) != count:
            raise errors.wrong_arguments(name, f"{len(arguments)} of them", f"({', '.join('xyz'[:count])})")
        values = _floats(name, arguments)
        kind = "f32" if values[0].dtype == float32 else "f64"
        return _instruction(f"{operation}.{spelled}.{kind}", values, values[0].dtype)

    function.__name__ = name
    function.__doc__ = f"PTX's ``{operation}`` of float32 or float64, rounded {meaning}; fused with nothing."
    return builtin(function)


def _conversion(source: str, target: str, mode: str) -> Callable[..., Any]:
    (kind, ptx_kind), (result, ptx_result) = _NUMBERS[source], _NUMBERS[target]
    spelled, meaning = _MODES[mode]
    name = f"{source}2{target}_{mode}"
    to_integer = result.is_int()

    def function(x: Any) -> tensor:
        value = to_tensor(x, f"the argument of '{name}'")
        if kind.is_floating() and not value.dtype.is_floating():
            raise errors.needs_floats(name, value.dtype)
        return _instruction(
            f"cvt.{spelled}{'i' if to_integer else ''}.{ptx_result}.{ptx_kind}", [convert(value, kind)], result
        )

    function.__name__, function.__doc__ = name, f"{kind} as {result}, rounded {meaning}."
    return builtin(function)


def _integers(name: str, arguments: Sequence[Any]) -> list[tensor]:
    values = [to_tensor(each, f"an argument of '{name}'") for each in arguments]
    for value in values:
        if not value.dtype.is_int() or value.dtype.is_bool():
            raise errors.needs_integers(name, value.dtype, "cast it with .to(wl.int32)")
    return values


@builtin
def brev(x: Any) -> tensor:
    """The bits of an integer of 32 or 64 bits in reverse order."""
    (value,) = _integers("brev", [x])
    if value.dtype.primitive_bitwidth < 32:
        value = convert(value, int32)
    return _instruction(f"brev.b{value.dtype.primitive_bitwidth}", [value], value.dtype)


@builtin
def byte_perm(x: Any, y: Any, s: Any) -> tensor:
    """Four of the eight bytes of x (0 to 3) and y (4 to 7), chosen by the nibbles of s, the lowest first; int32."""
    return _instruction("prmt.b32", [convert(v, int32) for v in _integers("byte_perm", [x, y, s])], int32)


@builtin
def mul24(x: Any, y: Any) -> tensor:
    """The lower 32 bits of the product of the lower 24 bits of each."""
    a, b = operands("mul24", *_integers("mul24", [x, y]))
    return _instruction(f"mul24.lo.{'s32' if a.dtype.is_int_signed() else 'u32'}", [a, b], a.dtype)


@builtin
def sad(x: Any, y: Any, z: Any) -> tensor:
    """abs(x - y) + z of integers of 32 bits."""
    a, b = operands("sad", *_integers("sad", [x, y]))
    return _instruction(
        f"sad.{'s32' if a.dtype.is_int_signed() else 'u32'}", [a, b, convert(to_tensor(z), a.dtype)], a.dtype
    )


@builtin
def hadd(x: Any, y: Any) -> tensor:
    """(x + y) / 2 of integers, rounded down, without overflow."""
    a, b = operands("hadd", *_integers("hadd", [x, y]))
    return add(and_(a, b), shr(xor(a, b), 1))


@builtin
def rhadd(x: Any, y: Any) -> tensor:
    """(x + y + 1) / 2 of integers, rounded down, without overflow."""
    a, b = operands("rhadd", *_integers("rhadd", [x, y]))
    return sub(or_(a, b), shr(xor(a, b), 1))


@builtin
def hiloint2double(high: Any, low: Any) -> tensor:
    """The float64 of these upper and lower 32 bits."""
    a, b = (convert(v, int64) for v in _integers("hiloint2double", [high, low]))
    return reread(or_(shl(a, 32), and_(b, 0xFFFFFFFF)), float64)


@builtin
def double2hiint(x: Any) -> tensor:
    """The upper 32 bits of a float64; int32."""
    return convert(shr(reread(convert(to_tensor(x), float64), int64), 32), int32)


@builtin
def double2loint(x: Any) -> tensor:
    """The lower 32 bits of a float64; int32."""
    return convert(reread(convert(to_tensor(x), float64), int64), int32)


def _all() -> dict[str, Callable[..., Any]]:
    made = []
    for mode in _MODES:
        for operation, count in {"add": 2, "sub": 2, "mul": 2, "div": 2, "fma": 3, "rcp": 1, "sqrt": 1}.items():
            made.append(_arithmetic(operation, count, mode))
        made.append(_conversion("double", "float", mode))
        for integer in ("int", "uint", "ll", "ull"):
            made += [_conversion(source, integer, mode) for source in ("float", "double")]
            made.append(_conversion(integer, "float", mode))
            if integer.endswith("ll") or mode == "rn":  # float64 holds all integers of 32 bits
                made.append(_conversion(integer, "double", mode))
    return {function.__name__: function for function in made}


INSTRUCTIONS = _all()
