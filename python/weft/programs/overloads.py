# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""What torch and NumPy ask of an operand that is not theirs. foreign.py, which is above tensors and scalars, hands the
answers down (``answer_by``).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from .graph import Value


class Answers(NamedTuple):
    """``call(function, args, keywords, of, method)`` does what a function of torch or NumPy does; ``attribute(owner,
    name, what)`` gives a method of torch's tensors."""

    call: Callable[..., Any]
    attribute: Callable[[Any, str, str], Any]


_answers: list[Answers] = []


def answer_by(call: Callable[..., Any], attribute: Callable[[Any, str, str], Any]) -> None:
    """Say who answers; whoever traces has said it before there is a tensor or a scalar."""
    _answers[:] = [Answers(call, attribute)]


class Overloads:
    """A base of tensors and scalars of a program: ``value`` is what the trace knows of them."""

    __slots__ = ()
    _what = "value"
    value: Value

    @classmethod
    def __torch_function__(cls, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return _answers[0].call(function, args, kwargs or {})

    def __array_ufunc__(self, function: Any, method: str, *args: Any, **keywords: Any) -> Any:
        return _answers[0].call(function, args, keywords, "numpy.", method)

    def __array_function__(self, function: Any, types: Any, args: Any, keywords: Any) -> Any:
        return _answers[0].call(function, args, keywords, "numpy.")

    def __getattr__(self, name: str) -> Any:
        return _answers[0].attribute(self, name, self._what)
