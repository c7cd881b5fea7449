# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""score_mod and mask: the user's functions of scalars, traced into regions of attend and softmax."""

from __future__ import annotations

import types
from collections.abc import Callable, Sequence
from typing import Any

from . import graph, places, scalars
from .graph import Region
from .scalars import F32, I1, I32, Scalar
from .sizes import Size
from .tensors import Tensor, is_array, lift

# How far b, h, n and m run; m of several domains is not said.
Extents = tuple[Size, Size, Size, Size | None]


def score_region(function: Callable[..., Any] | None, extents: Extents, bias: Tensor | None = None) -> Region:
    """The region of a score_mod(score, b, h, n, m), to which a bias is added; one with neither is empty."""
    if function is None and bias is None:
        return Region()

    def body(score: Scalar, *place: Scalar) -> Any:
        changed = score if function is None else with_tensors(function)(score, *place)
        return changed if bias is None else scalars.real(changed) + _at(bias, place)

    return _traced(body, [F32, I32, I32, I32, I32], (None, *extents), "score_mod", F32)


def _at(bias: Tensor, place: tuple[Scalar, ...]) -> Scalar:
    """The element of a bias [B, H, N, M], or of fewer axes, the last ones, at (b, h, n, m)."""
    return bias[place[4 - bias.ndim :]]


def mask_region(function: Callable[..., Any], extents: Extents) -> Region:
    """The region of a mask(b, h, n, m)."""
    return _traced(with_tensors(function), [I32, I32, I32, I32], extents, "mask", I1)


def _traced(
    function: Callable[..., Any], arguments: list[str], extents: Sequence[Size | None], what: str, wanted: str
) -> Region:
    tracing = graph.tracing()
    with tracing.region(arguments) as region:
        where = zip(region.arguments, extents, strict=True)
        given = function(*(Scalar(a, a.type == I32, extent) for a, extent in where))
        try:
            result = scalars.scalar(given)
        except places.CompilationError:
            raise places.error(f"expected '{what}' to give a number, but got '{type(given).__name__}'") from None
        if wanted == F32:
            if result.type == I1:
                raise places.error(
                    f"expected '{what}' to give a score, but got a truth",
                    "who attends is a pattern: weft.mask(lambda b, h, n, m: ...)",
                )
            result = scalars.real(result)
        elif result.type != I1:
            raise places.error(f"expected '{what}' to give a truth, but got {result.type}", "compare, as in m <= n")
        tracing.add("attn.yield", [result.value])
    return region


def with_tensors(function: Callable[..., Any], change: Callable[[Any], Any] = lift) -> Callable[..., Any]:
    """The function with the arrays of its closure and its globals changed: into tensors of the program being traced."""
    if not isinstance(function, types.FunctionType):
        return function
    cells = [_lifted(cell, change) for cell in function.__closure__ or ()]
    names = {
        name: change(value) for name in function.__code__.co_names if is_array(value := function.__globals__.get(name))
    }
    if not names and not any(cell[1] for cell in cells):
        return function
    return types.FunctionType(
        function.__code__,
        {**function.__globals__, **names} if names else function.__globals__,
        function.__name__,
        function.__defaults__,
        tuple(cell for cell, _ in cells),
    )


def _lifted(cell: Any, change: Callable[[Any], Any]) -> tuple[Any, bool]:
    """A closure's cell, or one of the tensor where it holds an array; and whether it did."""
    try:
        value = cell.cell_contents
    except ValueError:
        return cell, False
    return (types.CellType(change(value)), True) if is_array(value) else (cell, False)
