# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Functions of every element: on scalars of a region they are its operations, on tensors they become an attn.map.

weft.exp log sqrt rsqrt sin cos tanh erf abs   sigmoid silu relu gelu   maximum minimum where
"""

from __future__ import annotations

from typing import Any

from . import bodies, scalars
from .eager import operation
from .tensors import applied


@operation
def exp(x: Any) -> Any:
    """e to the power of x."""
    return applied(lambda a: scalars.function("exp", a), x)


@operation
def log(x: Any) -> Any:
    """The natural logarithm."""
    return applied(lambda a: scalars.function("log", a), x)


@operation
def sqrt(x: Any) -> Any:
    """The square root of every element; NaN below 0. Scalars of a score_mod too."""
    return applied(lambda a: scalars.function("sqrt", a), x)


@operation
def rsqrt(x: Any) -> Any:
    """1 / sqrt(x)."""
    return applied(lambda a: scalars.function("rsqrt", a), x)


@operation
def sin(x: Any) -> Any:
    """The sine of every element, in radians."""
    return applied(lambda a: scalars.function("sin", a), x)


@operation
def cos(x: Any) -> Any:
    """The cosine of every element, in radians."""
    return applied(lambda a: scalars.function("cos", a), x)


@operation
def tanh(x: Any) -> Any:
    """The hyperbolic tangent of every element."""
    return applied(lambda a: scalars.function("tanh", a), x)


@operation
def erf(x: Any) -> Any:
    """The error function of every element, 2/√π · ∫₀ˣ exp(-t²) dt."""
    return applied(lambda a: scalars.function("erf", a), x)


@operation
def abs(x: Any) -> Any:
    """|x| of every element; integers stay integers."""
    return applied(bodies.absolute, x)


@operation
def sigmoid(x: Any) -> Any:
    """1 / (1 + exp(-x))."""
    return applied(bodies.sigmoid, x)


@operation
def silu(x: Any) -> Any:
    """x · sigmoid(x)."""
    return applied(bodies.silu, x)


@operation
def relu(x: Any) -> Any:
    """max(x, 0)."""
    return applied(lambda a: scalars.maximum(scalars.real(a), 0.0), x)


@operation
def gelu(x: Any, approximate: str = "none") -> Any:
    """x · Φ(x); ``approximate="tanh"`` is the usual approximation. As torch.nn.functional.gelu."""
    return applied(bodies.gelu(approximate), x)


@operation
def maximum(x: Any, y: Any) -> Any:
    """The larger of x and y, element by element; shapes broadcast. NaN where one of them is NaN."""
    return applied(scalars.maximum, x, y)


@operation
def minimum(x: Any, y: Any) -> Any:
    """The smaller of x and y, element by element; shapes broadcast. NaN where one of them is NaN."""
    return applied(scalars.minimum, x, y)


@operation
def where(condition: Any, x: Any, y: Any) -> Any:
    """x where the condition holds, else y."""
    return applied(scalars.where, condition, x, y)
