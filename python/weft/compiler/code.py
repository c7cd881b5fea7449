# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""The names in Python code: which variables it reads, and which attributes it asks for."""

from __future__ import annotations

import dis
import types
import weakref
from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True)
class Names:
    """The names in a function's code and in that of functions inside it.

    ``bare`` are variables that are used otherwise than for an attribute; ``imports`` says that it imports.
    """

    globals: tuple[str, ...]
    attributes: frozenset[str]
    bare: frozenset[str]
    imports: bool


_GLOBALS = ("LOAD_GLOBAL", "LOAD_NAME")
_VARIABLES = (*_GLOBALS, "LOAD_DEREF", "LOAD_CLASSDEREF", "LOAD_FAST", "LOAD_FAST_CHECK", "LOAD_FAST_LOAD_FAST")
_ATTRIBUTES = ("LOAD_ATTR", "LOAD_METHOD", "LOAD_SUPER_ATTR", "IMPORT_FROM")
_known: dict[int, tuple[weakref.ref[types.CodeType], Names]] = {}


def names_of(code: types.CodeType) -> Names:
    """The names in a piece of code, found once."""
    found = _known.get(id(code))
    if found is not None and found[0]() is code:
        return found[1]
    reads: dict[str, None] = {}
    attributes: set[str] = set()
    bare: set[str] = set()
    imports = False
    for part in _parts(code):
        instructions = [i for i in dis.get_instructions(part) if i.opname not in ("CACHE", "EXTENDED_ARG")]
        for at, instruction in enumerate(instructions):
            name = instruction.opname
            if name in _GLOBALS:
                reads[instruction.argval] = None
            if name in _ATTRIBUTES:
                attributes.add(instruction.argval)
            following = instructions[at + 1].opname if at + 1 < len(instructions) else ""
            # LOAD_CLOSURE hands a variable to a function inside: what counts is that function's own uses.
            if name in _VARIABLES and (following not in _ATTRIBUTES or isinstance(instruction.argval, tuple)):
                bare.update([instruction.argval] if isinstance(instruction.argval, str) else instruction.argval)
            imports |= name == "IMPORT_NAME"
    made = Names(tuple(reads), frozenset(attributes), frozenset(bare), imports)
    key = id(code)
    _known[key] = (weakref.ref(code, lambda _: _known.pop(key, None)), made)
    return made


def _parts(code: types.CodeType) -> Iterator[types.CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _parts(constant)
