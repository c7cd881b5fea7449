# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Values that are fixed in a compiled form: numbers, integers and truths, each asked for by name. A learnt scale is no
constant, though Python would make it one without a word.
"""

from __future__ import annotations

import operator
from numbers import Real
from typing import TYPE_CHECKING, Any

from ..compiler import places
from ..compiler.arguments import Wrong, wrong_integer, wrong_real, wrong_truth
from . import graph

if TYPE_CHECKING:
    from .tensors import Tensor

#: what to write where something else is added to a mixer
ADDING = "score_mod adds to scores; A + weft.diag(g) adds a gate, and A @ v + x adds to what a mixer A gives"


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
    _refuse(wrong_real(name, number))
    return float(number)


def factor(value: Any, divides: bool = False) -> float:
    """What a mixer is multiplied by, or one over what divides it: a number."""
    number = known(value)
    if not isinstance(number, Real):
        raise places.error(
            f"expected a number to multiply a mixer by, but got {places.described(number)}",
            "weft.diag(g) @ A gates what A gives, A @ B is a product, and (A @ v) * x multiplies by any tensor",
        )
    if divides and number == 0:
        raise places.error("expected a number other than 0 to divide a mixer by, but got 0")
    return real("factor", 1 / number if divides else number)


def integer(name: str, value: Any, least: int | None = None) -> int:
    """A whole number of at least ``least``."""
    number = known(value, f"'{name}' to be an integer")
    _refuse(wrong_integer(name, number, least))
    return operator.index(number)


#: no distance between positions is larger, so that sums with positions have 32 bits
LARGEST = 2**30


def distance(name: str, value: Any, least: int = -LARGEST, times: int = 1) -> int:
    """A whole number of at least ``least`` that positions are moved by, up to ``times`` at once: 2**30 in all."""
    number = integer(name, value, least)
    if abs(number) * times > LARGEST:
        most = LARGEST // times
        raise places.error(f"expected '{name}' to be from {max(least, -most)} to {most}, but got {number}")
    return number


def truth(name: str, value: Any) -> bool:
    """True or False."""
    found = known(value, f"'{name}' to be True or False")
    _refuse(wrong_truth(name, found))
    return bool(found)


def _refuse(wrong: Wrong | None) -> None:
    if wrong is not None:
        raise places.error(wrong.text)


def floating(what: str, tensor: Tensor) -> None:
    """Refuse elements that are no floating-point numbers: results have their type, and would be rounded to it."""
    if not tensor.dtype.is_floating() or tensor.dtype.is_fp8():
        raise places.error(f"expected {what} of fp16, bf16 or fp32, but got {tensor.dtype}", "use .to(dtype)")
