# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Functions over views of the arrays of NumPy around them. ``table[h]`` in a score_mod or a mask must be an element
that the kernel reads, but NumPy asks no index what it is; so the function is called with views that do in their place.

torch's tensors need none of this: torch hands over what is done with them (weft.programs.foreign).
"""

from __future__ import annotations

import functools
import sys
import types
from collections.abc import Callable
from typing import Any

from .origins import LIBRARIES, is_foreign, is_own, root


class Around:
    """Makes functions over, with what is around them. ``changed`` of anything without arrays is that thing itself."""

    def __init__(self, view: Callable[[Any], Any]) -> None:
        self._view = view
        self._made: dict[int, Any] = {}
        self._kept: list[Any] = []

    def changed(self, value: Any) -> Any:
        """The value with views in the place of arrays, wherever a function finds them."""
        kind = type(value)
        if kind is sys.modules["numpy"].ndarray:
            return self._view(value)
        if id(value) in self._made:
            return self._made[id(value)]
        make = self._maker(kind)
        if make is None:
            return value
        self._made[id(value)] = value  # what refers to itself is found unchanged
        self._kept.append(value)
        made = self._made[id(value)] = make(value)
        return made

    def _maker(self, kind: type) -> Callable[[Any], Any] | None:
        if kind is types.FunctionType:
            return self._function
        if kind is types.MethodType:
            return self._method
        if kind is functools.partial:
            return self._partial
        if kind in (tuple, list, dict):
            return self._container
        if kind is types.SimpleNamespace:
            return lambda value: types.SimpleNamespace(**self._container(vars(value)))
        plain = kind.__flags__ & (1 << 9) and isinstance(getattr(kind, "__dict__", None), types.MappingProxyType)
        return self._object if plain and root(kind.__module__) not in (*LIBRARIES, "weft") else None

    def _function(self, function: types.FunctionType) -> Any:
        if is_own(function.__code__.co_filename) or is_foreign(function.__module__):
            return function
        cells = [self._cell(cell) for cell in function.__closure__ or ()]
        found = {}
        for name in function.__code__.co_names:
            value = function.__globals__.get(name)
            made = self.changed(value)
            if made is not value:
                found[name] = made
        defaults = self.changed(function.__defaults__)
        keywords = self.changed(function.__kwdefaults__)
        same = all(new is old for new, old in zip(cells, function.__closure__ or (), strict=True))
        if same and not found and defaults is function.__defaults__ and keywords is function.__kwdefaults__:
            return function
        names = {**function.__globals__, **found} if found else function.__globals__
        made = types.FunctionType(function.__code__, names, function.__name__, defaults, tuple(cells))
        made.__kwdefaults__ = keywords
        made.__dict__.update(function.__dict__)
        return made

    def _cell(self, cell: Any) -> Any:
        try:
            value = cell.cell_contents
        except ValueError:
            return cell
        made = self.changed(value)
        return cell if made is value else types.CellType(made)

    def _method(self, method: types.MethodType) -> Any:
        function, owner = self.changed(method.__func__), self.changed(method.__self__)
        same = function is method.__func__ and owner is method.__self__
        return method if same else types.MethodType(function, owner)

    def _partial(self, partial: Any) -> Any:
        parts = (partial.func, partial.args, partial.keywords)
        made = tuple(map(self.changed, parts))
        same = all(new is old for new, old in zip(made, parts, strict=True))
        return partial if same else functools.partial(made[0], *made[1], **made[2])

    def _container(self, value: Any) -> Any:
        old = list(value.values()) if isinstance(value, dict) else value
        new = [self.changed(each) for each in old]
        if all(a is b for a, b in zip(new, old, strict=True)):
            return value
        return dict(zip(value, new, strict=True)) if isinstance(value, dict) else type(value)(new)

    def _object(self, value: Any) -> Any:
        """An object as one with the same attributes, but for arrays among them."""
        old = getattr(value, "__dict__", None)
        new = self._container(old) if isinstance(old, dict) else old
        if new is old:
            return value
        made = object.__new__(type(value))
        made.__dict__.update(new)
        return made


def with_views(function: Callable[..., Any], view: Callable[[Any], Any]) -> Callable[..., Any]:
    """The function, called over a ``view`` of each array of NumPy that it finds around itself."""
    return Around(view).changed(function) if "numpy" in sys.modules else function
