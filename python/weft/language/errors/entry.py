# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""An entry of the catalogue: the error, its number, and the words that values have in messages."""

from __future__ import annotations

import difflib
import functools
from collections.abc import Callable, Iterable
from typing import Any, ParamSpec

from ..types import describe

Arguments = ParamSpec("Arguments")


class KernelError(Exception):
    """A mistake in a kernel, before the compiler has said where.

    ``argument`` names the parameter at fault, where one is; ``number`` is that of docs/reference/Errors.md.
    """

    number = ""

    def __init__(self, message: str, remedy: str, argument: str | None = None):
        super().__init__(message)
        self.message, self.remedy, self.argument = message, remedy, argument


def is_tensor(value: Any) -> bool:
    """Whether a value is a tensor of the language."""
    return hasattr(value, "constant") and hasattr(value, "type")  # value.py imports this file


def type_of(value: Any) -> str:
    """What a value is, in the words of a message."""
    if is_tensor(value):
        return describe(value.type)
    if value is None:
        return "None"
    if callable(value) and hasattr(value, "__name__"):
        return f"the function '{value.__name__}'"
    return f"{value!r} of type '{type(value).__name__}'"


def shape_of(shape: Iterable[int]) -> str:
    """Sizes as messages have them: [64, 32]."""
    return f"[{', '.join(map(str, shape))}]"


def closest(name: str, candidates: Iterable[str]) -> str | None:
    """A question after the candidate that is spelled most like a name, None where none is near."""
    matches = difflib.get_close_matches(name, list(candidates), n=1, cutoff=0.6)
    return f"did you mean '{matches[0]}'?" if matches else None


def numbered(number: int) -> Callable[[Callable[Arguments, KernelError]], Callable[Arguments, KernelError]]:
    """Give the errors that a function makes their number, WL and three digits. A number stays with its message: new
    ones come after the last of their family, and those of messages that are gone are not given again.
    """

    def mark(make: Callable[Arguments, KernelError]) -> Callable[Arguments, KernelError]:
        @functools.wraps(make)
        def made(*args: Arguments.args, **keywords: Arguments.kwargs) -> KernelError:
            error = make(*args, **keywords)
            error.number = f"WL{number}"
            return error

        return made

    return mark
