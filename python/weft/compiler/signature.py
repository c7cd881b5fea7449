# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""The text form of argument types: ``"x:*fp16:16, n:i32, BLOCK=128"``.

A run-time argument is ``name:type`` with ``:16`` for a value (an address, for a pointer) divisible by 16; a constant is
``name=value``. A part of a tuple is ``name[0]:type``, parts of a descriptor are ``name.base``, ``name.shape[0]``,
``name.strides[0]`` and ``name.block_shape``. Types are Triton's: i1 i8 i16 i32 i64 u8 ... u64 fp16 bf16 fp32 fp64
fp8e4nv fp8e4b15 fp8e5, with ``*`` in front for pointers.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..language.types import ALL_SCALARS, constexpr, dtype, pointer_type
from .diagnostics import CompilationError

_TYPES: dict[str, dtype] = {}
for _scalar in ALL_SCALARS:
    _TYPES[_scalar.name] = _scalar
    if _scalar.is_int():
        _TYPES[_scalar.name.replace("uint", "u").replace("int", "i")] = _scalar
_TYPES.update(
    {
        "u1": _TYPES["int1"],
        "float16": _TYPES["fp16"],
        "bfloat16": _TYPES["bf16"],
        "float32": _TYPES["fp32"],
        "float64": _TYPES["fp64"],
    }
)
_TYPES.update({"float8e4nv": _TYPES["fp8e4nv"], "float8e4b15": _TYPES["fp8e4b15"], "float8e5": _TYPES["fp8e5"]})


@dataclass(frozen=True)
class Argument:
    """The type of a run-time argument, and what its value is a multiple of (1: nothing is known)."""

    type: dtype
    divisibility: int = 1


@dataclass(frozen=True)
class Signature:
    """The run-time arguments and the constants, by name. ``apart``: the arrays are promised to share no memory; the
    kernel says of which it makes use."""

    arguments: Mapping[str, Argument]
    constants: Mapping[str, Any]
    apart: bool = False


def type_named(text: str) -> dtype:
    """The type that a text such as ``*fp16`` or ``i32`` names; ValueError when it names none."""
    name = text.strip()
    if name.startswith("*"):
        name = name[1:]
        const = name.startswith("k") and name[1:] in _TYPES
        return pointer_type(type_named(name[1:] if const else name), const)
    if name not in _TYPES:
        raise ValueError(f"expected a type such as 'i32', 'fp32' or '*fp16', but got '{text.strip()}'")
    return _TYPES[name]


def short_name(value_type: dtype) -> str:
    """The text form of a type, which :func:`type_named` reads."""
    if isinstance(value_type, pointer_type):
        return f"*{short_name(value_type.element_ty)}"
    return value_type.name.replace("uint", "u").replace("int", "i") if value_type.is_int() else value_type.name


_NAME = re.compile(r"[A-Za-z_]\w*(\[\d+\]|\.[A-Za-z_]\w*)*")


def is_name(text: str) -> bool:
    """Whether a text is the name of a parameter or of a part of one, ``x[0].base``."""
    return _NAME.fullmatch(text) is not None


def root(name: str) -> str:
    """The parameter that a part belongs to."""
    return re.split(r"[.\[]", name, maxsplit=1)[0]


def split_parts(text: str) -> list[str]:
    """The parts between commas that stand outside of brackets and quotes."""
    parts, depth, quote, start = [], 0, "", 0
    for index, character in enumerate(text):
        if quote:
            quote = "" if character == quote else quote
        elif character in "'\"":
            quote = character
        elif character in "([{":
            depth += 1
        elif character in ")]}":
            depth -= 1
        elif character == "," and depth == 0:
            parts.append(text[start:index])
            start = index + 1
    return [part.strip() for part in [*parts, text[start:]] if part.strip()]


def parse(text: str) -> Signature:
    """The signature that a text spells; CompilationError when it spells none."""
    arguments: dict[str, Argument] = {}
    constants: dict[str, Any] = {}
    for part in split_parts(text):
        name = part.split(":")[0].split("=")[0].strip()
        if not is_name(name):
            raise _malformed(part, "expected 'name:type' or 'name=value'")
        if name in arguments or name in constants:
            raise _malformed(part, f"expected each name once, but got '{name}' again")
        rest = part[len(part.split(":")[0].split("=")[0]) :]
        if rest.startswith("="):
            constants[name] = _constant(part, rest[1:])
        elif rest.startswith(":"):
            arguments[name] = _argument(part, rest[1:])
        else:
            raise _malformed(part, f"expected ':' and a type, or '=' and a value, after '{name}'")
    return Signature(arguments, constants)


def _argument(part: str, text: str) -> Argument:
    kind, _, divisibility = text.partition(":")
    try:
        found = type_named(kind)
    except ValueError as error:
        raise _malformed(part, str(error)) from None
    if not divisibility:
        return Argument(found)
    if not divisibility.strip().isdigit() or int(divisibility) < 1:
        raise _malformed(part, f"expected a positive number after the second ':', but got '{divisibility.strip()}'")
    return Argument(found, int(divisibility))


def _constant(part: str, text: str) -> Any:
    text = text.strip()
    if text in _TYPES or (text.startswith("*") and text[1:] in _TYPES):
        return type_named(text)
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        raise _malformed(part, f"expected a Python literal or a type after '=', but got '{text}'") from None


def _malformed(part: str, why: str) -> CompilationError:
    return CompilationError(f"in the signature at '{part}': {why}", remedy='write it as "x:*fp16:16, n:i32, BLOCK=128"')


def for_function(function: Any, given: Signature | None, constants: Mapping[str, Any]) -> Signature:
    """The signature of a @weft.jit function: what was given, then annotations, then defaults; every parameter must get
    one.
    """
    arguments: dict[str, Argument] = {}
    values: dict[str, Any] = {}
    known = {**(given.constants if given else {}), **constants}
    names = [p.name for p in function.params]
    for name in [*known, *(given.arguments if given else ())]:
        if root(name) not in names:
            raise CompilationError(
                f"expected one of the parameters of '{function.__name__}' ({', '.join(names)}), but got '{name}'"
            )
    for parameter in function.params:
        name = parameter.name
        if name in known:
            values[name] = known[name].value if isinstance(known[name], constexpr) else known[name]
        elif given is not None and name in given.arguments:
            if parameter.is_constexpr:
                raise CompilationError(
                    f"expected a constant for '{name}', which is annotated wl.constexpr", remedy=f"write '{name}=value'"
                )
            arguments[name] = given.arguments[name]
        elif parts := [each for each in [*known, *(given.arguments if given else ())] if root(each) == name]:
            values.update({each: known[each] for each in parts if each in known})
            arguments.update({each: given.arguments[each] for each in parts if given and each in given.arguments})
        elif parameter.type is not None:
            arguments[name] = Argument(parameter.type, parameter.divisibility)
        elif parameter.has_default:
            values[name] = parameter.default
        else:
            wanted = (
                f"'{name}=value'"
                if parameter.is_constexpr
                else f"'{name}:type', for example '{name}:*fp16:16' or '{name}:i32'"
            )
            raise CompilationError(
                f"expected a {'value' if parameter.is_constexpr else 'type'} for '{name}' of '{function.__name__}'",
                remedy=f"add {wanted} to the signature",
            )
    return Signature(arguments, values)
