# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""What an object is made of, asked without running code of its own."""

from __future__ import annotations

import functools
import sys
import types
from collections.abc import Callable, Hashable
from typing import Any

from .code import names_of
from .keys import Same


def namespaces(owner: Any) -> list[dict[str, Any]]:
    """Where an object has its attributes: a module of torch in several places."""
    own = getattr(owner, "__dict__", {})
    inner = ("_parameters", "_buffers", "_modules") if is_torch_module(owner) else ()
    return [own, *(own.get(name, {}) for name in inner)]


def has_code(value: Any) -> bool:
    """Whether an attribute of a class is Python code: a function, or a descriptor around one."""
    return isinstance(value, (types.FunctionType, staticmethod, classmethod, property, functools.cached_property))


def is_torch_base(base: type) -> bool:
    """Whether a class is torch.nn.Module itself."""
    return base.__module__ == "torch.nn.modules.module" and base.__name__ == "Module"


def is_torch_module(value: Any) -> bool:
    """Whether a value is an object of a subclass of torch.nn.Module."""
    return not isinstance(value, type) and any(map(is_torch_base, type(value).__mro__))


def is_bare(function: Any) -> bool:
    """Whether a method uses its object otherwise than for an attribute."""
    code = getattr(function, "__code__", None)
    return code is None or not code.co_varnames or code.co_varnames[0] in names_of(code).bare


#: classes of numbers and text, and what gives the number of an object of a derived class, whatever that class says
_SCALARS: tuple[tuple[type, Callable[[Any], Any]], ...] = (
    (int, int.__index__),
    (float, float.__float__),
    (str, str.__str__),
)


def scalar_of(value: Any) -> Any:
    """The number or text that an object of a class derived from Python's is, or None."""
    return next((plain(value) for kind, plain in _SCALARS if isinstance(value, kind)), None)


def is_plain(base: type) -> bool:
    """Whether instances of a class keep nothing that Python does not see, beside a number or text."""
    known = base in (object, tuple) or any(base is kind for kind, _ in _SCALARS)
    return known or bool(base.__flags__ & (1 << 9))  # Py_TPFLAGS_HEAPTYPE


def is_number(value: type) -> bool:
    """Whether a class is one of NumPy's numbers; False where NumPy is not loaded."""
    numpy = sys.modules.get("numpy")
    return numpy is not None and issubclass(value, numpy.generic)


#: classes of torch whose objects describe tensors; that of ``x.dtype`` stands in code beside the function of that name
_DESCRIPTIONS = ("dtype", "device", "layout", "memory_format", "finfo", "iinfo")


def is_description(kind: type) -> bool:
    """Whether a class is one of torch's whose objects are compared by what they say."""
    return kind.__module__ == "torch" and kind.__name__ in _DESCRIPTIONS


def raising(kind: type) -> frozenset[str]:
    """The functions of a class that do nothing but raise: those by which a frozen dataclass refuses to change."""
    frozen = getattr(vars(kind).get("__dataclass_params__"), "frozen", False)
    return frozenset(("__setattr__", "__delattr__")) if frozen else frozenset()


# Values of Python's library that do not change, which their text tells apart.
_TEXTUAL = ("uuid.UUID", "fractions.Fraction", "decimal.Decimal")


def by_value(kind: type, value: Any) -> Hashable | None:
    """Numbers and types of array libraries, and values of Python's library, by value."""
    if f"{kind.__module__}.{kind.__qualname__}" in _TEXTUAL:
        return (kind, str(value))
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        if isinstance(value, numpy.generic) and kind is not numpy.object_:
            return (kind, str(value.dtype), value.tobytes())
        if isinstance(value, numpy.dtype):
            return ("dtype", str(value))
        if isinstance(value, numpy.ufunc):
            return Same(value)
    if is_description(kind):
        return (kind, str(value))
    if kind is getattr(sys.modules.get("torch"), "Size", None):
        return (kind, tuple(value))
    return None
