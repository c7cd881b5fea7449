# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Functions of one element, a scalar of a region: what weft's functions of every element and those of torch and NumPy
share.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from . import scalars
from .scalars import Scalar


def absolute(a: Any) -> Scalar:
    """|a|; of an integer an integer."""
    return scalars.scalar(a).__abs__()


def sigmoid(a: Any) -> Scalar:
    """1 / (1 + exp(-a))."""
    return 1.0 / (1.0 + scalars.function("exp", -scalars.real(a)))


def softplus(a: Any) -> Scalar:
    """log(1 + exp(a)), without overflow."""
    a = scalars.real(a)
    positive = a > 0
    # Selections, since the derivative of max(a, 0) is 0 at 0, as that of |a| is, and this one's is 1/2.
    smaller = scalars.function("exp", scalars.where(positive, -a, a))
    return scalars.where(positive, a, 0.0) + scalars.function("log1p", smaller)


def silu(a: Any) -> Scalar:
    """a · sigmoid(a)."""
    return scalars.real(a) * sigmoid(a)


def gelu(approximate: str) -> Callable[[Any], Scalar]:
    """a · Φ(a), by erf for "none" and by tanh for "tanh", as torch.nn.functional.gelu."""
    if approximate not in ("none", "tanh"):
        raise scalars.places.error(f"expected approximate='none' or 'tanh', but got {approximate!r}")

    def exact(a: Any) -> Scalar:
        a = scalars.real(a)
        return 0.5 * a * (1.0 + scalars.function("erf", a * math.sqrt(0.5)))

    def approximated(a: Any) -> Scalar:
        a = scalars.real(a)
        return 0.5 * a * (1.0 + scalars.function("tanh", math.sqrt(2 / math.pi) * (a + 0.044715 * a * a * a)))

    return exact if approximate == "none" else approximated
