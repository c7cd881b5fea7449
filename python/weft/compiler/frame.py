# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""What the visitor knows about the function it is in: its variables, its globals, its source; and how names are looked
up.
"""

from __future__ import annotations

import builtins
import types
from dataclasses import dataclass, field
from typing import Any

from ..language import errors
from ..language.types import constexpr, dtype
from .scope import Missing
from .source import Source

# Python's functions that kernels may call, by how they are named.
PYTHON_FUNCTIONS = (
    "abs",
    "bool",
    "float",
    "getattr",
    "hasattr",
    "int",
    "isinstance",
    "len",
    "list",
    "max",
    "min",
    "print",
    "range",
    "tuple",
)


@dataclass
class Frame:
    """One function being visited. ``position`` text of the call that led here is kept for error notes."""

    function: Any
    source: Source
    variables: dict[str, Any] = field(default_factory=dict)
    declared: set[str] = field(default_factory=set)  # annotated constexpr, and assigned by a later line
    loops: int = 0  # around the present statement
    #: what statements in the present block promise: the variable, its value with the promise, and without
    promises: list[tuple[str, Any, Any]] = field(default_factory=list)

    def lookup(self, name: str) -> Any:
        """The value of a name as a kernel may use it."""
        if name in self.variables:
            value = self.variables[name]
            if isinstance(value, Missing):
                raise value.error()
            return value
        function = self.function.fn
        found, value = find_global(function, name)
        if found and name not in function.__code__.co_varnames:  # as in Python, one that is assigned is no global
            return usable_global(name, value)
        if name in PYTHON_FUNCTIONS:
            return getattr(builtins, name)
        raise errors.unknown_name(name, [*self.variables, *self.function.fn.__globals__, *PYTHON_FUNCTIONS])


def find_global(function: types.FunctionType, name: str) -> tuple[bool, Any]:
    """A name of the function's closure or module, and whether there is one."""
    free = function.__code__.co_freevars
    if name in free and function.__closure__ is not None:
        try:
            return True, function.__closure__[free.index(name)].cell_contents
        except ValueError:
            return False, None
    if name in function.__globals__:
        return True, function.__globals__[name]
    return False, None


def is_jit(value: Any) -> bool:
    """Whether a value is a function decorated with @weft.jit."""
    return getattr(value, "__weft_jit__", False) is True


def _is_marked(value: Any) -> bool:
    """Whether a value is a function that kernels may call."""
    return is_jit(value) or getattr(value, "__weft_builtin__", False) or getattr(value, "__weft_constexpr__", False)


def _is_plain(value: Any) -> bool:
    return isinstance(value, types.FunctionType) and not _is_marked(value)


def usable_global(name: str, value: Any) -> Any:
    """A global's value, where kernels may read it: constants marked so, functions of the language, types, modules."""
    if isinstance(value, constexpr):
        return value if _is_plain(value.value) else as_constant(value.value)
    if isinstance(value, (types.ModuleType, dtype)) or value is None or value is constexpr:
        return value
    if _is_marked(value):
        return value
    if isinstance(value, tuple) and value and all(isinstance(v, (constexpr, dtype)) for v in value):
        return tuple(usable_global(name, v) for v in value)
    if callable(value):
        return value  # refused where it is called, if it is no function that kernels may call
    raise errors.plain_global(name, value)


def as_constant(value: Any) -> Any:
    """A constant as kernels read it: a list is the tuple it spells."""
    return tuple(map(as_constant, value)) if isinstance(value, list) else value
