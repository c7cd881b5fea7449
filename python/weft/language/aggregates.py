# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Classes of values: ``aggregate``, whose instances kernels make, pass to helpers and carry through loops, and
``aggregate_replace``.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, ClassVar

from . import errors
from .emit import builtin, current
from .literals import is_number, to_tensor
from .types import constexpr, unwrap
from .value import tensor


class aggregate_value:
    """What an instance of a class under ``aggregate`` is: values by name, which stay as they are."""

    __weft_builtin__ = True  # a kernel may call the class
    weft_fields: ClassVar[dict[str, Any]] = {}  # the annotation of each field, in order

    def __setattr__(self, name: str, value: Any) -> None:
        kind = type(self)
        if name not in kind.weft_fields or "weft_complete" in vars(self):
            raise errors.aggregate_field(kind.__name__, name, tuple(kind.weft_fields))
        vars(self)[name] = _field(kind.weft_fields[name], value)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{k}={v!r}' for k, v in self.fields().items())})"

    def fields(self) -> dict[str, Any]:
        """The values by name."""
        return {name: vars(self)[name] for name in type(self).weft_fields}

    def replaced(self, **changes: Any) -> aggregate_value:
        """The same with other values in the place of some; the constructor is not called."""
        made = object.__new__(type(self))
        for name, value in (self.fields() | changes).items():
            setattr(made, name, value)
        vars(made)["weft_complete"] = True
        return made


def _field(annotation: Any, value: Any) -> Any:
    """A field's value: constants as themselves, numbers of other fields as scalars."""
    value = unwrap(value)
    if annotation is constexpr or str(annotation).rpartition(".")[2] == "constexpr":
        known = value.constant if isinstance(value, tensor) else value
        return value if known is None else known
    return to_tensor(value) if is_number(value) else value


class _Method:
    """A @weft.jit function of a class: of an instance, a function with the instance as its first argument."""

    def __init__(self, function: Any):
        self.function = function

    def __get__(self, instance: Any, owner: type) -> Any:
        if instance is None:
            return self.function

        def method(*args: Any, **kwargs: Any) -> Any:
            return current().call(self.function, [instance, *args], kwargs)

        method.__name__ = self.function.__name__
        return builtin(method)


def _annotations(cls: type) -> dict[str, Any]:
    """The fields of a class, those of its bases first."""
    found: dict[str, Any] = {}
    for base in reversed(cls.__mro__):
        found |= vars(base).get("__annotations__", {}) if base not in (object, aggregate_value) else {}
    return {name: kind for name, kind in found.items() if not name.startswith("weft_")}


def _initialiser(cls: type, fields: dict[str, Any]) -> Callable[..., None]:
    """The class's own ``__init__``, or one that takes the fields in their order, with their defaults."""
    own: Callable[..., None] | None = vars(cls).get("__init__")
    if own is not None:
        return own

    def initialise(self: Any, *args: Any, **kwargs: Any) -> None:
        given = dict(zip(fields, args, strict=False)) | kwargs
        for name in fields:
            if name not in given and not hasattr(cls, name):
                raise errors.aggregate_missing(cls.__name__, name, tuple(fields))
            setattr(self, name, given.pop(name) if name in given else getattr(cls, name))
        if given or len(args) > len(fields):
            raise errors.aggregate_field(cls.__name__, next(iter(given), "another"), tuple(fields))

    return initialise


def aggregate(cls: type) -> type:
    """A class of values: its annotations name the fields, its @weft.jit functions are methods that kernels call.

    Kernels make instances, read their fields, pass them to helpers, return them and carry them through loops and
    branches. Fields are given in ``__init__``, which runs when the kernel is compiled, or as arguments in their order;
    then they stay: ``aggregate_replace`` makes another instance. A field annotated ``constexpr`` holds a constant.
    """
    fields = _annotations(cls)
    initialise = _initialiser(cls, fields)

    @functools.wraps(initialise)
    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        initialise(self, *args, **kwargs)
        for name in fields:
            if name not in vars(self):
                raise errors.aggregate_missing(cls.__name__, name, tuple(fields))
        vars(self)["weft_complete"] = True

    members = {name: _Method(m) for name, m in vars(cls).items() if getattr(m, "__weft_jit__", False)}
    bases = (cls,) if issubclass(cls, aggregate_value) else (cls, aggregate_value)
    named = {"__module__": cls.__module__, "__qualname__": cls.__qualname__, "__doc__": cls.__doc__}
    special = {"__setattr__": aggregate_value.__setattr__, "__repr__": aggregate_value.__repr__}
    return type(cls.__name__, bases, {**named, **special, **members, "__init__": __init__, "weft_fields": fields})


@builtin
def aggregate_replace(instance: Any, **changes: Any) -> Any:
    """A copy of an instance of a class under :func:`aggregate`, with other values in the fields that are named."""
    if not isinstance(instance, aggregate_value):
        raise errors.expected_value("the instance of 'aggregate_replace'", instance)
    for name in changes:
        if name not in type(instance).weft_fields:
            raise errors.aggregate_field(type(instance).__name__, name, tuple(type(instance).weft_fields))
    return instance.replaced(**changes)


__all__ = ["aggregate", "aggregate_replace"]
