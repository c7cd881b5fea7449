# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Parts of keys that stand for objects and for places in source, and keys as text."""

from __future__ import annotations

import types
from dataclasses import dataclass
from typing import Any

from .trusted import ATOMS, is_trusted


class Same:
    """An object that is equal to itself only, and kept alive so that nothing else takes its place."""

    __slots__ = ("value",)

    def __init__(self, value: Any):
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Same) and self.value is other.value

    def __hash__(self) -> int:
        return id(self.value)

    def __repr__(self) -> str:
        return f"Same({self.value!r})"


@dataclass(frozen=True)
class Place:
    """Where source stands: it tells compiled forms apart, which name lines, but not what they compute."""

    file: str
    line: int
    indent: int


def spelled(key: Any, places: bool = True) -> Any:
    """A key as lists of text, the same in every process: objects that stand for themselves by their names, code by what
    it is; ``places`` only where asked for."""
    if isinstance(key, Same):
        return spelled(key.value, places)
    if isinstance(key, tuple):
        return [spelled(part, places) for part in key]
    if isinstance(key, frozenset):
        return sorted((spelled(part, places) for part in key), key=str)
    if isinstance(key, Place):
        return [key.file, key.line, key.indent] if places else []
    if isinstance(key, types.CodeType):
        parts = (key.co_consts, key.co_names, key.co_varnames, key.co_freevars, key.co_cellvars)
        return [key.co_code.hex(), *(spelled(part, places) for part in parts)]
    if isinstance(key, (*ATOMS, float, complex)):
        return f"{type(key).__name__} {key!r}"
    kind = type(key)
    if not isinstance(key, (type, types.ModuleType, types.FunctionType)) and kind.__module__ != "builtins":
        return [kind.__module__, kind.__qualname__, getattr(key, "__name__", "") if is_trusted(key) else ""]
    return [kind.__qualname__, *(getattr(key, name, "") for name in ("__module__", "__qualname__", "__name__"))]
