# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Types of a program's inputs without arrays: ``q:fp16[B,4*Hkv,N,64]:16, k:fp16[B,Hkv,N,64]:16, w=64``.

An input is ``name:type[sizes]``; a size is an integer, a symbol, or an integer times a symbol; the same symbol is the
same size. ``:16`` promises that the address and all strides are multiples of 16 bytes. ``name=value`` fixes a keyword.
An annotation of a parameter may hold what follows its colon: ``q: "fp16[B, H, N, 64]:16"``; that of a dict of tensors
is a dict of such texts.
"""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..compiler.diagnostics import CompilationError
from ..compiler.signature import split_parts, type_named
from ..language.types import dtype
from .dtypes import NAMES
from .sizes import Size, Symbol

_INPUT = re.compile(r"^\s*(\w+)\s*\[(.*)\]\s*(?::\s*(\d+)\s*)?$", re.S)


@dataclass(frozen=True)
class Declared:
    """A declared input: what an array of it is like, as far as that is known."""

    element: dtype
    sizes: tuple[Size, ...]
    aligned: bool
    constant: bool = False

    # what inputs.Facts has, so that tracing takes either
    @property
    def shape(self) -> tuple[int | None, ...]:
        """The sizes: integers where they are fixed, None elsewhere."""
        return tuple(size.value for size in self.sizes)


def declared(text: str, symbols: dict[str, Symbol]) -> Declared:
    """The input that a text such as ``fp16[B, H, N, 64]:16`` declares; symbols are shared through ``symbols``."""
    found = _INPUT.match(text)
    if not found:
        raise CompilationError(f"expected an input such as 'fp16[B, H, N, 64]:16', but got '{text.strip()}'")
    name, inside, multiple = found.groups()
    try:
        element = type_named(name)
    except ValueError as error:
        raise CompilationError(str(error)) from None
    if element.name not in NAMES:
        raise CompilationError(f"expected elements of {', '.join(NAMES)}, but got {name}")
    if multiple not in (None, "1", "16"):
        raise CompilationError(f"expected ':16' or nothing after the sizes, but got ':{multiple}'")
    return Declared(element, tuple(_size(each, symbols) for each in split_parts(inside)), multiple == "16")


def _size(text: str, symbols: dict[str, Symbol]) -> Size:
    factor, _, name = text.partition("*") if "*" in text else ("1", "*", text)
    if text.isdigit():
        return Size(int(text))
    factor, name = factor.strip(), name.strip()
    if not factor.isdigit() or int(factor) < 1 or not name.isidentifier():
        raise CompilationError(f"expected a size such as 64, N or 4*Hkv, but got '{text}'")
    symbol = symbols.setdefault(name, Symbol(None, [(-1, name)]))
    return Size(int(factor), symbol)


def arguments_of(
    function: inspect.Signature, text: str | None, constants: Mapping[str, Any]
) -> tuple[dict[str, Declared], dict[str, Any], dict[str, dict[str, str]]]:
    """The declared inputs and the static arguments of a program, from annotations, ``text`` and ``constants``; and of
    parameters that are dicts the input of each key."""
    symbols: dict[str, Symbol] = {}
    inputs: dict[str, Declared] = {}
    values: dict[str, Any] = {}
    dicts: dict[str, dict[str, str]] = {}
    for name, parameter in function.parameters.items():
        note = parameter.annotation
        if isinstance(note, str):
            note = note.strip("\"'") if note[:1] in "\"'" else note
            if _declares(note):
                inputs[name] = declared(note, symbols)
        elif isinstance(note, Mapping):
            dicts[name] = {key: f"{name}_{key}" for key in note}
            inputs |= {dicts[name][key]: declared(each, symbols) for key, each in note.items()}
    for part in split_parts(text or ""):
        name, sign, rest = _parted(part)
        if name not in function.parameters:
            raise CompilationError(f"expected a parameter of the program, but got '{name}'; it takes {function}")
        if sign == ":":
            inputs[name] = declared(rest, symbols)
        else:
            values[name] = _constant(part, rest)
    values.update(constants)
    for name in values:
        inputs.pop(name, None)
        for key in dicts.pop(name, {}).values():
            inputs.pop(key)
    for name, parameter in function.parameters.items():
        if name not in {*inputs, *values, *dicts} and parameter.default is inspect.Parameter.empty:
            raise CompilationError(
                f"expected the type of '{name}', or its value",
                remedy=f'signature="{name}:fp16[B,H,N,64], ...", or constants={{"{name}": ...}}',
            )
    return inputs, values, dicts


def elements_of(function: inspect.Signature) -> dict[str, dtype]:
    """The element types that annotations of parameters declare."""
    notes = {name: parameter.annotation for name, parameter in function.parameters.items()}
    texts = {name: note.strip("\"'") for name, note in notes.items() if isinstance(note, str)}
    return {name: type_named(text.split("[")[0].strip()) for name, text in texts.items() if _declares(text)}


def _declares(note: str) -> bool:
    """Whether an annotation declares an input: list[int] does not."""
    try:
        type_named(note.split("[")[0].strip())
    except ValueError:
        return False
    return _INPUT.match(note) is not None


def _parted(part: str) -> tuple[str, str, str]:
    found = re.match(r"^\s*(\w+)\s*([:=])(.*)$", part, re.S)
    if not found:
        raise CompilationError(f"expected 'name:type[sizes]' or 'name=value', but got '{part}'")
    return found.group(1), found.group(2), found.group(3)


def _constant(part: str, text: str) -> Any:
    try:
        return ast.literal_eval(text.strip())
    except (ValueError, SyntaxError):
        raise CompilationError(f"expected a Python literal after '=', but got '{part}'") from None
