# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""What is asked of numbers, integers and truths that are fixed in a compiled form. Python would take ``True`` for a 1,
``"no"`` for a truth and 8.9 for an 8, each without a word.

Each function says what is wrong, None where nothing is; who asks raises it in his own way.
"""

from __future__ import annotations

import math
import operator
from typing import Any, NamedTuple

from .places import described


class Wrong(NamedTuple):
    """What was expected and what came; ``kind`` is TypeError where another kind of value came, else ValueError."""

    text: str
    kind: type[Exception]


def index_of(value: Any) -> int | None:
    """The integer that a value is, one of NumPy too; None for truths and all others."""
    try:
        return None if isinstance(value, bool) else operator.index(value)
    except TypeError:
        return None


def wrong_integer(name: str, value: Any, least: int | None = None) -> Wrong | None:
    """Of an integer of 32 bits, at least ``least``."""
    number = index_of(value)
    if number is None:
        return Wrong(f"expected '{name}' to be an integer, but got {described(value)}", TypeError)
    if not -(2**31) <= number < 2**31:
        return Wrong(f"expected '{name}' to be an integer of 32 bits, but got {number}", ValueError)
    if least is not None and number < least:
        return Wrong(f"expected '{name}' to be at least {least}, but got {number}", ValueError)
    return None


def wrong_real(name: str, value: Any) -> Wrong | None:
    """Of a finite number."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return Wrong(f"expected '{name}' to be a number, but got {described(value)}", TypeError)
    if not math.isfinite(value):
        return Wrong(f"expected '{name}' to be finite, but got {value}", ValueError)
    return None


def wrong_truth(name: str, value: Any) -> Wrong | None:
    """Of True or False."""
    if isinstance(value, bool):
        return None
    return Wrong(f"expected '{name}' to be True or False, but got {described(value)}", TypeError)
