# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""What a compiled form was made from, by value: the key under which it may be used again.

``Reads().value(x)`` is a hashable copy of a number, a container, a function with everything that it reads (closure,
globals, defaults, helpers, nested functions, attributes of objects and modules), at this moment. Two that are equal
stand for values that the same code cannot tell apart. What has no such copy (an array, an iterator, a module of system
calls) raises Unknown: then only the IR made from it can be compared.

Objects, classes and modules are not copied whole. Of each, the attributes count whose names stand in any code that was
met on the way: code that looks attributes up by a computed name is Unknown.
"""

from __future__ import annotations

import builtins
import enum
import functools
import sys
import types
from collections.abc import Hashable, Iterable
from typing import Any

from .code import Names, names_of
from .keys import Same
from .objects import (
    by_value,
    has_code,
    is_bare,
    is_description,
    is_number,
    is_plain,
    is_torch_base,
    is_torch_module,
    namespaces,
    raising,
    scalar_of,
)
from .origins import is_foreign, is_own, root
from .trusted import ATOMS, BASES, MAKES, METACLASSES, MUTABLE, PRINTS, PURE_BUILTINS, PURE_MODULES, is_trusted

#: the value of a variable that is not there
MISSING = object()


class Unknown(Exception):
    """A value of which no copy can be compared; ``str()`` says which."""


class Reads:
    """One walk over values. ``key(x, y, ...)`` is the copy of all of them, with what their code reads of objects.

    ``unchanged()`` then says, in less time, that another walk would find the same.
    """

    def __init__(self, names: Iterable[str] = ()) -> None:
        """``names`` are attributes that code beside the values asks objects for."""
        self._globals: list[tuple[dict[str, Any], str, Any]] = []
        self._attributes: list[tuple[Any, str, Any]] = []
        self._mutable = False  # something was met that may change and still be itself
        self._seen: dict[int, int] = {}
        self._kept: list[Any] = []  # so that no other object takes the place of one that was seen
        self._names: set[str] = set(names)
        self._open: list[Any] = []
        self._kinds: set[type] = set()

    def key(self, *values: Any, bare: bool = True) -> Hashable:
        """A hashable copy of the values, used otherwise than for attributes where they are ``bare``. Raises Unknown."""
        found: list[Hashable] = [self._variable(value, bare) for value in values]
        looked: set[tuple[int, str]] = set()
        again = bool(self._open)
        while again:  # what is found may have code with names of its own
            again = False
            for number, owner in enumerate(list(self._open)):
                for name in sorted(self._names):
                    if (number, name) not in looked:
                        looked.add((number, name))
                        part = self._attribute(owner, name)
                        if part is not None:
                            found.append((number, name, part))
                            again = True
        return tuple(found)

    @property
    def names(self) -> frozenset[str]:
        """The attributes that the code that was met asks objects for, and those that were given."""
        return frozenset(self._names)

    @property
    def variables(self) -> tuple[list[Any], list[Any]] | None:
        """The variables that were met, as (namespace, name, value), and attributes, as (object, name, value); None
        where that does not say enough."""
        return None if self._mutable else (self._globals, self._attributes)

    def unchanged(self) -> bool:
        """Whether every variable that was met still has its value; False where that does not say enough."""
        if self._mutable:
            return False
        for namespace, name, value in self._globals:
            if namespace.get(name, MISSING) is not value:
                return False
        return all(getattr(owner, name, MISSING) is value for owner, name, value in self._attributes)

    def attribute(self, owner: Any, name: str) -> Hashable:
        """An attribute of an object that has no other, by value."""
        value = getattr(owner, name)
        self._attributes.append((owner, name, value))
        return self.value(value)

    def value(self, value: Any) -> Hashable:
        """A hashable copy of one value; of objects, only which they are."""
        kind = type(value)
        if kind in ATOMS:
            return (kind, value)
        if kind is float:
            return (kind, value.hex())  # by bits: 0.0 and -0.0 are two numbers, and NaN is one
        if kind is complex:
            return (kind, value.real.hex(), value.imag.hex())
        number = self._seen.get(id(value))
        if number is not None:
            return ("again", number)
        self._seen[id(value)] = len(self._seen)
        self._kept.append(value)
        made = self._containers(kind, value)
        return self._object(kind, value) if made is None else made

    def values(self, values: Iterable[Any]) -> tuple[Hashable, ...]:
        """``value`` of each."""
        return tuple(map(self.value, values))

    def _containers(self, kind: type, value: Any) -> Hashable | None:
        self._mutable |= kind in MUTABLE
        if kind is tuple or kind is list:
            return (kind, self.values(value))
        if kind is dict or kind is types.MappingProxyType:
            return (kind, tuple((self.value(k), self.value(v)) for k, v in value.items()))
        if kind is set or kind is frozenset:
            return (kind, frozenset(self.values(value)))
        if kind is types.FunctionType:
            return self._function(value)
        if kind is types.MethodType:
            return (kind, self.value(value.__func__), self._variable(value.__self__, is_bare(value.__func__)))
        if kind is functools.partial:
            return (kind, *self.values((value.func, value.args, value.keywords)), self.values(vars(value).items()))
        if kind is slice:
            return (kind, *self.values((value.start, value.stop, value.step)))
        if kind in (staticmethod, classmethod):
            return (kind, self.value(value.__func__))
        if kind is property:
            return (kind, self.value(value.fget))
        if kind is functools.cached_property:
            return (kind, self.value(value.func))
        return None

    def _object(self, kind: type, value: Any) -> Hashable:
        if is_trusted(value):
            return Same(value)
        own = getattr(kind, "__weft_reads__", None)
        if own is not None:
            return (kind, own(value, self))
        if hasattr(kind, "__weft_parts__"):
            return (kind, self.value(value.__weft_parts__()))
        if isinstance(value, types.ModuleType):
            return self._module(value)
        if isinstance(value, type):
            return self._class(value)
        if isinstance(value, enum.Enum):
            return (self._kind(kind), value.name, self.value(value._value_), self._opened(value))
        if isinstance(value, (types.BuiltinFunctionType, types.MethodDescriptorType, types.WrapperDescriptorType)):
            return self._builtin(value)
        copied = by_value(kind, value)
        if copied is not None:
            return copied
        return self._instance(kind, value)

    def _builtin(self, value: Any) -> Hashable:
        owner = getattr(value, "__self__", None)
        if isinstance(owner, types.ModuleType) or owner is None:
            if value in PURE_BUILTINS or getattr(value, "__module__", None) in PURE_MODULES:
                return Same(value)
        elif not isinstance(owner, type):  # a method of a container or of a number
            return (value.__name__, self.value(owner))
        raise Unknown(f"the function '{getattr(value, '__name__', value)}'")

    # ---- Functions

    def _function(self, function: types.FunctionType) -> Hashable:
        if is_trusted(function) or is_own(function.__code__.co_filename):
            return Same(function)
        if is_foreign(function.__module__):
            if function.__module__ in PURE_MODULES:
                return Same(function)
            raise Unknown(f"the function '{function.__module__}.{function.__qualname__}'")
        return (Same(function.__code__), *self.function(function, names_of(function.__code__)))

    def function(self, function: types.FunctionType, names: Names, python: bool = True) -> tuple[Hashable, ...]:
        """What a function's code reads, given its names; Python's own functions too, where it is ``python``."""
        if names.imports:
            raise Unknown(f"the import in '{function.__name__}'")
        self._names |= names.attributes
        found: list[Hashable] = [self.attribute(function, "__defaults__"), self._keyword_defaults(function)]
        self._attributes.append((function, "__code__", function.__code__))
        self._mutable |= bool(function.__dict__) and python
        for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
            try:
                value = cell.cell_contents
            except ValueError:
                found.append("empty")
                self._mutable = True
                continue
            self._attributes.append((cell, "cell_contents", value))
            found.append(self._variable(value, name in names.bare))
        for name in names.globals:
            self._globals.append((function.__globals__, name, function.__globals__.get(name, MISSING)))
            if name in function.__globals__:
                found.append(self._variable(function.__globals__[name], name in names.bare))
            elif python and name in vars(builtins):
                found.append(self.value(vars(builtins)[name]))
            else:
                found.append("missing")
        if python and function.__dict__:
            found.append(self.value(function.__dict__))
        return tuple(found)

    def _keyword_defaults(self, function: types.FunctionType) -> Hashable:
        """The defaults of keyword arguments. Their dict may change, so ``unchanged`` looks at each."""
        defaults = function.__kwdefaults__
        self._attributes.append((function, "__kwdefaults__", defaults))
        if defaults is None:
            return None
        self._globals += [(defaults, name, value) for name, value in defaults.items()]
        return tuple((name, self.value(value)) for name, value in defaults.items())

    def _variable(self, value: Any, bare: bool) -> Hashable:
        """A variable's value. A class, or a module of torch, of which attributes alone are used, is not called: what
        its call would read does not count."""
        of_class = isinstance(value, type) and not is_foreign(value.__module__) and root(value.__module__) != "weft"
        if bare or not (of_class or is_torch_module(value)):
            return self.value(value)
        if not any(value is each for each in self._open):
            self._opened(value)
        return self._kind(value) if of_class else (Same(value), Same(type(value)))

    # ---- Objects, of which named attributes count

    def _opened(self, value: Any) -> Hashable:
        self._open.append(value)
        self._mutable |= not isinstance(value, types.ModuleType)  # whose attributes are variables
        return Same(value)

    def _module(self, value: types.ModuleType) -> Hashable:
        if root(value.__name__) == "weft" or value.__name__ in PURE_MODULES:
            return Same(value)
        if not is_foreign(value.__name__) and hasattr(value, "__getattr__"):
            raise Unknown(f"the module '{value.__name__}', which makes up its attributes")
        return self._opened(value)

    def _class(self, value: type) -> Hashable:
        if value in PURE_BUILTINS or (value.__module__ == "builtins" and issubclass(value, BaseException)):
            return Same(value)
        package = root(value.__module__)
        if package == "weft" or (package == "numpy" and is_number(value)) or is_description(value):
            return Same(value)
        if package in sys.stdlib_module_names and value.__module__ in PURE_MODULES:
            return Same(value)
        if is_foreign(value.__module__) or type(value) not in METACLASSES:
            raise Unknown(f"the class '{value.__module__}.{value.__qualname__}'")
        found = [self.value(base) for base in value.__mro__[1:] if not self._is_base(base)]
        return (self._opened(value), tuple(found), self._special(value, PRINTS))

    def _kind(self, kind: type) -> Hashable:
        """The class of an object that is there already: how one is made does not count."""
        if type(kind) not in METACLASSES:
            raise Unknown(f"a value of type '{kind.__name__}'")
        if kind in self._kinds:
            return Same(kind)
        self._kinds.add(kind)
        users = [base for base in kind.__mro__ if not self._is_base(base)]
        return (Same(kind), tuple((Same(base), self._special(base, PRINTS | MAKES)) for base in users))

    def _special(self, kind: type, without: frozenset[str]) -> Hashable:
        """The functions of a class that Python calls by itself."""
        without |= raising(kind)
        special = [(n, v) for n, v in vars(kind).items() if n.startswith("__") and n not in without and has_code(v)]
        return tuple((n, self.value(v)) for n, v in special)

    def _is_base(self, base: type) -> bool:
        """Whether a class that others inherit from is Python's, without code that counts. Raises Unknown."""
        known = f"{base.__module__}.{base.__qualname__}" in BASES
        if (
            not known
            and is_foreign(base.__module__)
            and not (issubclass(base, enum.Enum) and base.__module__ == "enum")
        ):
            raise Unknown(f"what is inherited from '{base.__module__}.{base.__qualname__}'")
        return is_foreign(base.__module__)

    def _instance(self, kind: type, value: Any) -> Hashable:
        if hasattr(kind, "shape") and hasattr(kind, "dtype"):
            raise Unknown(f"an array of type '{kind.__name__}', whose contents may change")
        if kind is types.SimpleNamespace:
            return self._opened(value)
        solid = is_torch_module(value) or not all(is_plain(base) for base in kind.__mro__)
        if solid or is_foreign(kind.__module__) or root(kind.__module__) == "weft":
            raise Unknown(f"a value of type '{kind.__name__}'")
        items = self.values(value) if isinstance(value, tuple) else self.value(scalar_of(value))
        return (self._kind(kind), items, self._opened(value))

    def _attribute(self, owner: Any, name: str) -> Hashable | None:
        """What code may get by ``owner.name``, and nothing where it gets none. No code runs."""
        if isinstance(owner, types.ModuleType):
            found_there = vars(owner).get(name, MISSING)
            self._globals.append((vars(owner), name, found_there))
            return None if found_there is MISSING else self.value(found_there)
        found: list[Hashable] = []
        kind = owner if isinstance(owner, type) else type(owner)
        if name == "__class__":
            return self.value(kind)
        for base in kind.__mro__:
            if name not in vars(base):
                continue
            if name in raising(base):
                break
            value = vars(base)[name]
            if isinstance(value, types.MemberDescriptorType):
                if not isinstance(owner, type) and hasattr(owner, name):
                    found.append(self.value(getattr(owner, name)))
            elif not is_foreign(base.__module__) or base.__module__ in PURE_MODULES:
                found.append(self.value(value) if not is_foreign(base.__module__) else Same(value))
            elif not is_torch_base(base) or has_code(value):
                raise Unknown(f"'{name}' of '{base.__qualname__}'")
            break
        if not isinstance(owner, type):
            for namespace in namespaces(owner):
                if name in namespace:
                    found.append(self.value(namespace[name]))
        return tuple(found) or None


def key_of(*values: Any) -> Hashable | None:
    """A hashable copy of values and of all that their code reads, or None where there is none."""
    try:
        return Reads().key(*values)
    except (Unknown, RecursionError):
        return None
