# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""What a call's arguments tell the compiler: types, divisibility by 16, integers that are 1. The result keys the cache
of kernels.

Each argument gives a small hashable token: ``("*fp16", 16)`` for an aligned array, ``("i32", 1)`` for an integer,
``(CONSTANT, value, type)`` for a constant.
This runs on every launch, so arrays are told apart by their class, and NumPy and torch are never imported here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..language.types import constexpr, dtype, pointer_type
from ..runtime.elements import array_type, holds
from ..runtime.plain import NEGATED, negated, objection
from .objects import scalar_of
from .parameters import Parameter
from .reads import Reads, Unknown
from .signature import short_name

CONSTANT = "constant"
Token = tuple[Any, ...]


class Held:
    """A constant in its token that does not compare by itself: what is beside it tells it apart, or a copy by value of
    it with all that the kernel reads."""

    __slots__ = ("value",)

    def __init__(self, value: Any):
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Held)

    def __hash__(self) -> int:
        return 0


def constant_token(value: Any) -> Token:
    """The token of a constant: 1, 1.0 and True are different ones, and so are 0.0 and -0.0."""
    if isinstance(value, constexpr):
        value = value.value
    kind = type(value)
    if kind in (int, bool, str, type(None)):
        return (CONSTANT, value, kind)
    return (CONSTANT, Held(value), value.hex() if kind is float else kind)


def compared(tokens: tuple[Token, ...]) -> list[Any]:
    """The constants among tokens that these do not tell apart."""
    return [t[1].value for t in tokens if t[0] is CONSTANT and type(t[1]) is Held and type(t[1].value) is not float]


def refused(parameters: Sequence[Parameter], tokens: tuple[Token, ...]) -> TypeError | None:
    """What is wrong with the first constant that cannot be compared by value."""
    for parameter, token in zip(parameters, tokens, strict=True):
        try:
            Reads().key(*compared((token,)))
        except Unknown as unknown:
            return TypeError(
                f"'{parameter.name}': expected a constant that can be compared by value, such as a number, text or a "
                f"tuple of them, but got '{type(held(token)).__name__}', with {unknown}"
            )
    return None


def held(token: Token) -> Any:
    """The constant of a token."""
    return token[1].value if isinstance(token[1], Held) else token[1]


def _array(parameter: Parameter, element: Any, address: int) -> Token:
    try:
        name = short_name(element) if isinstance(element, dtype) else array_type(element)
    except TypeError as wrong:
        raise TypeError(f"'{parameter.name}': {wrong}") from None
    if parameter.type is not None:
        name = _annotated(parameter, parameter.type, name)
    aligned = parameter.specialise_alignment and address % 16 == 0
    return (f"*{'k' if parameter.is_const else ''}{name}", 16 if aligned else 1)


def _annotated(parameter: Parameter, wanted: dtype, name: str) -> str:
    """The element type that an annotation promises for an array of another one: bits travel as integers."""
    promised = short_name(wanted.element_ty) if isinstance(wanted, pointer_type) else None
    if promised is not None and holds(name, promised):
        return promised
    raise TypeError(f"'{parameter.name}': expected {short_name(wanted)}, but got an array of {name}")


def _integer(parameter: Parameter, value: int) -> Token:
    if parameter.type is None and parameter.specialise and value == 1:
        return (CONSTANT, 1, int)
    if parameter.type is not None:
        name = short_name(parameter.type)
    elif -(2**31) <= value < 2**31:
        name = "i32"
    elif -(2**63) <= value < 2**63:
        name = "i64"
    elif 0 <= value < 2**64:
        name = "u64"
    else:
        raise TypeError(f"'{parameter.name}': expected an integer of at most 64 bits, but got {value}")
    return (name, _multiple(parameter, value))


def _multiple(parameter: Parameter, value: int) -> int:
    """What an integer is known to be a multiple of. Of a negative one nothing is noted: no tensor map has it as a
    stride, so that what is accessed by it must be no box."""
    return 16 if parameter.specialise_alignment and value >= 0 and value % 16 == 0 else 1


def _torch(parameter: Parameter, value: Any) -> Token:
    if wrong := objection(value) or (NEGATED if negated(value) else None):
        raise TypeError(f"{wrong.text(repr(parameter.name))}; {wrong.remedy}")
    return _array(parameter, value.dtype, value.data_ptr())


def _numpy(parameter: Parameter, value: Any) -> Token:
    if wrong := objection(value):
        raise TypeError(f"{wrong.text(repr(parameter.name))}; {wrong.remedy}")
    return _array(parameter, value.dtype, value.ctypes.data)


def _numpy_scalar(parameter: Parameter, value: Any) -> Token:
    name = short_name(parameter.type) if parameter.type is not None else array_type(value.dtype)
    return (name, _multiple(parameter, int(value)) if name[0] in "iu" and name != "i1" else 1)


def _number(name: str) -> Callable[[Parameter, Any], Token]:
    return lambda parameter, value: (short_name(parameter.type) if parameter.type is not None else name, 1)


def _type(parameter: Parameter, value: dtype) -> Token:
    return (short_name(value) if isinstance(value, pointer_type) else f"*{short_name(value)}", 16)


# By the class of the value; classes of arrays are added when they are first met.
_tokens: dict[type, Callable[[Parameter, Any], Token]] = {
    bool: _number("i1"),
    int: _integer,
    float: _number("fp32"),
    type(None): lambda parameter, value: (CONSTANT, None, type(None)),
    constexpr: lambda parameter, value: constant_token(value),
}


def _handler(value: Any) -> Callable[[Parameter, Any], Token] | None:
    """How to tokenise values of this one's class."""
    if getattr(value, "__weft_jit__", False):
        return lambda parameter, function: constant_token(function)
    if hasattr(value, "data_ptr") and hasattr(value, "dtype"):
        return _torch
    if hasattr(value, "ctypes") and hasattr(value, "dtype"):
        return _numpy
    if hasattr(value, "dtype") and hasattr(value, "item"):
        return _numpy_scalar
    if isinstance(value, dtype):
        return _type
    plain = scalar_of(value)  # an object of a class that derives from Python's numbers is one of them, as in Python
    if type(plain) in (int, float):
        known = _tokens[type(plain)]
        return lambda parameter, number: known(parameter, scalar_of(number))
    return None


def token(parameter: Parameter, value: Any) -> Token:
    """The token of one argument. TypeError when kernels take no such argument."""
    if parameter.is_constexpr:
        return constant_token(value)
    handler = _tokens.get(type(value))
    if handler is None:
        handler = _handler(value)
        if handler is None:
            raise TypeError(
                f"'{parameter.name}': expected a NumPy array, a torch tensor, a number or None, but "
                f"got '{type(value).__name__}'; "
                "annotate the parameter with wl.constexpr for other constants"
            )
        _tokens[type(value)] = handler
    return handler(parameter, value)


def describe(parameters: list[Parameter], tokens: tuple[Token, ...]) -> str:
    """The signature that tokens stand for, as :func:`weft.compiler.signature.parse` reads it."""
    parts = []
    for parameter, token in zip(parameters, tokens, strict=True):
        kind, *rest = token
        if kind is CONSTANT:
            parts.append(f"{parameter.name}={held(token)!r}")
        else:
            parts.append(f"{parameter.name}:{kind}" + (f":{rest[0]}" if rest[0] > 1 else ""))
    return ", ".join(parts)


__all__ = ["CONSTANT", "array_type", "compared", "constant_token", "describe", "held", "refused", "token"]
