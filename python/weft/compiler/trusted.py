# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Code that is not followed because it is known to compute from its arguments alone, and what Python does by itself."""

from __future__ import annotations

import abc
import builtins
import enum
import functools
import math
import types
from collections.abc import Callable, Iterable
from typing import Any

# Python's own functions that compute from their arguments alone. Not getattr, whose attribute has no name in the code.
PURE_BUILTINS = frozenset(
    vars(builtins)[name]
    for name in (
        *("abs", "all", "any", "bool", "bytes", "callable", "chr", "complex", "dict", "divmod", "enumerate", "filter"),
        *("float", "frozenset", "hash", "int", "isinstance", "issubclass", "iter", "len", "list", "map", "max", "min"),
        *("next", "object", "ord", "pow", "property", "range", "reversed", "round", "set", "slice", "sorted"),
        *("staticmethod", "classmethod", "str", "sum", "super", "tuple", "zip"),
    )
)
# Modules of Python whose functions compute from their arguments alone.
PURE_MODULES = frozenset(
    (
        *("abc", "cmath", "collections", "collections.abc", "dataclasses", "enum", "functools", "itertools", "math"),
        *("numbers", "operator", "types", "typing", "_abc", "_collections", "_functools", "_operator"),
    )
)
# Classes of Python from which a user's class inherits nothing that reads.
BASES = (
    *("builtins.object", "builtins.tuple", "builtins.int", "builtins.float", "builtins.str"),
    *("abc.ABC", "typing.Generic", "typing.Protocol", "enum.Enum"),
)
MUTABLE = (list, dict, types.MappingProxyType, set, functools.partial)
# What Python calls by itself to print an object, and to make one.
PRINTS = frozenset(("__repr__", "__str__", "__format__", "__reduce__", "__reduce_ex__", "__getstate__", "__setstate__"))
MAKES = frozenset(("__init__", "__new__", "__post_init__", "__init_subclass__", "__class_getitem__", "__set_name__"))
METACLASSES = (type, abc.ABCMeta, enum.EnumMeta)
ATOMS = (int, bool, str, bytes, type(None), type(Ellipsis), type(NotImplemented), range)

# Functions of other libraries that compute from their arguments alone, told by those who know them.
_pure: dict[int, Any] = {}


def trust(functions: Iterable[Any]) -> None:
    """Declare that these compute from their arguments alone."""
    _pure.update({id(function): function for function in functions})


def is_trusted(value: Any) -> bool:
    """Whether a value is one of those declared."""
    return id(value) in _pure


trust(value for value in vars(math).values() if isinstance(value, Callable))  # type: ignore[arg-type]
