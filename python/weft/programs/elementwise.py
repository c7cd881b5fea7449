# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Functions of every element: on scalars of a region they are its operations, on tensors they become an attn.map.

weft.exp log sqrt rsqrt sin cos tanh erf abs   sigmoid silu relu gelu   maximum minimum where
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from . import graph, scalars
from .eager import operation
from .scalars import Scalar
from .tensors import Tensor, map_tensors


def applied(body: Callable[..., Any], *values: Any) -> Any:
    """The body on scalars, or mapped over tensors where there is one among the values."""
    if any(isinstance(value, Tensor) for value in values) and not graph.in_region():
        return map_tensors(body, *values)
    return body(*values)


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
    return applied(lambda a: scalars.function("sqrt", a), x)


@operation
def rsqrt(x: Any) -> Any:
    """1 / sqrt(x)."""
    return applied(lambda a: scalars.function("rsqrt", a), x)


@operation
def sin(x: Any) -> Any:
    return applied(lambda a: scalars.function("sin", a), x)


@operation
def cos(x: Any) -> Any:
    return applied(lambda a: scalars.function("cos", a), x)


@operation
def tanh(x: Any) -> Any:
    return applied(lambda a: scalars.function("tanh", a), x)


@operation
def erf(x: Any) -> Any:
    return applied(lambda a: scalars.function("erf", a), x)


@operation
def abs(x: Any) -> Any:
    return applied(lambda a: scalars.scalar(a).__abs__(), x)


def _sigmoid(a: Any) -> Scalar:
    return 1.0 / (1.0 + scalars.function("exp", -scalars.real(a)))


@operation
def sigmoid(x: Any) -> Any:
    """1 / (1 + exp(-x))."""
    return applied(_sigmoid, x)


@operation
def silu(x: Any) -> Any:
    """x · sigmoid(x)."""
    return applied(lambda a: scalars.real(a) * _sigmoid(a), x)


@operation
def relu(x: Any) -> Any:
    """max(x, 0)."""
    return applied(lambda a: scalars.maximum(scalars.real(a), 0.0), x)


@operation
def gelu(x: Any, approximate: str = "none") -> Any:
    """x · Φ(x); ``approximate="tanh"`` is the usual approximation. As torch.nn.functional.gelu."""
    if approximate not in ("none", "tanh"):
        raise scalars.places.error(f"expected approximate='none' or 'tanh', but got {approximate!r}")

    def exact(a: Any) -> Scalar:
        a = scalars.real(a)
        return 0.5 * a * (1.0 + scalars.function("erf", a * math.sqrt(0.5)))

    def approximated(a: Any) -> Scalar:
        a = scalars.real(a)
        return 0.5 * a * (1.0 + scalars.function("tanh", math.sqrt(2 / math.pi) * (a + 0.044715 * a * a * a)))

    return applied(exact if approximate == "none" else approximated, x)


@operation
def maximum(x: Any, y: Any) -> Any:
    return applied(scalars.maximum, x, y)


@operation
def minimum(x: Any, y: Any) -> Any:
    return applied(scalars.minimum, x, y)


@operation
def where(condition: Any, x: Any, y: Any) -> Any:
    """x where the condition holds, else y."""
    return applied(scalars.where, condition, x, y)
