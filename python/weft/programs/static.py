# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Values that are fixed in a compiled form: numbers, integers and truths, each asked for by name. Python would take
``True`` for a 1, ``"no"`` for a truth, 8.9 for an 8 and a learnt scale for a constant, each without a word.
"""

from __future__ import annotations

import math
import operator
from typing import TYPE_CHECKING, Any

from ..compiler import places
from . import graph

if TYPE_CHECKING:
    from .tensors import Tensor


def known(value: Any, what: str = "a number") -> Any:
    """The Python number of a 0-d array or of NumPy's scalars, and every other value as it is."""
    value = graph.looked_into(value)
    if not hasattr(type(value), "item") or getattr(value, "ndim", 1) != 0:
        return value
    if getattr(value, "requires_grad", False):
        raise places.error(
            f"expected {what} that is known now, but got a tensor that requires gradients: as a number it has none",
            "make it a number by x.item(); in products and in a score_mod tensors have gradients",
        )
    return value.item()


def real(name: str, value: Any) -> float:
    """A finite number."""
    number = known(value, f"'{name}' to be a number")
    if isinstance(number, bool) or not isinstance(number, (int, float)):
        raise places.error(f"expected '{name}' to be a number, but got {_spelled(number)}")
    if not math.isfinite(number):
        raise places.error(f"expected '{name}' to be finite, but got {number}")
    return float(number)


def integer(name: str, value: Any, least: int | None = None) -> int:
    """A whole number of at least ``least``."""
    number = known(value, f"'{name}' to be an integer")
    try:
        if isinstance(number, bool):
            raise TypeError
        found = operator.index(number)
    except TypeError:
        raise places.error(f"expected '{name}' to be an integer, but got {_spelled(number)}") from None
    if not -(2**31) <= found < 2**31:
        raise places.error(f"expected '{name}' to be an integer of 32 bits, but got {found}")
    if least is not None and found < least:
        raise places.error(f"expected '{name}' to be at least {least}, but got {found}")
    return found


def truth(name: str, value: Any) -> bool:
    """True or False."""
    found = known(value, f"'{name}' to be True or False")
    if not isinstance(found, bool):
        raise places.error(f"expected '{name}' to be True or False, but got {_spelled(found)}")
    return found


def floating(what: str, tensor: Tensor) -> None:
    """Refuse elements that are no floating-point numbers: results have their type, and would be rounded to it."""
    if not tensor.dtype.is_floating():
        raise places.error(f"expected {what} of fp16, bf16 or fp32, but got {tensor.dtype}", "use .to(dtype)")


def _spelled(value: Any) -> str:
    if isinstance(value, (str, bool, int, float, complex, type(None))):
        return repr(value)
    return f"'{type(value).__name__}'"
