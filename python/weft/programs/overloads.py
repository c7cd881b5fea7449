# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""What torch and NumPy ask of an operand that is not theirs; the answers are in foreign.py."""

from __future__ import annotations

from typing import Any


class Overloads:
    """A base of tensors and scalars of a program."""

    __slots__ = ()
    _what = "value"

    @classmethod
    def __torch_function__(cls, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        from . import foreign

        return foreign.call(function, args, kwargs or {})

    def __array_ufunc__(self, function: Any, method: str, *args: Any, **keywords: Any) -> Any:
        from . import foreign

        return foreign.call(function, args, keywords, "numpy.", method)

    def __array_function__(self, function: Any, types: Any, args: Any, keywords: Any) -> Any:
        from . import foreign

        return foreign.call(function, args, keywords, "numpy.")

    def __getattr__(self, name: str) -> Any:
        from . import foreign

        return foreign.attribute(self, name, self._what)
