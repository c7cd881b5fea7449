# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""The sizes of a plan: its symbols bound from arrays, its expressions evaluated. Checks are the runtime's own."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from weft.runtime.elements import array_type, holds

_MOST_BLOCKS = 65535  # along the last two axes of a grid

_OPERATORS: dict[type, Callable[[int, int], int]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    # C's: towards zero
    ast.Div: lambda a, b: abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1),
    ast.Mod: lambda a, b: abs(a) % abs(b) * (1 if a >= 0 else -1),
}
_FUNCTIONS: dict[str, Callable[[int, int], int]] = {"cdiv": lambda a, b: -(-a // b), "min": min, "max": max}


def evaluate(expression: str, sizes: Mapping[str, int]) -> int:
    """A size or grid extent (docs/LibraryFormat.md): integers, names, + - * / %, cdiv, min and max."""

    def value(node: ast.expr) -> int:
        match node:
            case ast.Constant(value=int(number)):
                return number
            case ast.Name(id=name):
                return sizes[name]
            case ast.BinOp(left=left, op=op, right=right):
                return _OPERATORS[type(op)](value(left), value(right))
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return -value(operand)
            case ast.Call(func=ast.Name(id=name), args=[left, right]):
                return _FUNCTIONS[name](value(left), value(right))
        raise ValueError(f"expected a grid expression, but got '{expression}'")

    return value(ast.parse(expression, mode="eval").body)


def bind(plan: Mapping[str, Any], arrays: Sequence[Any]) -> dict[str, int]:
    """The symbols of a plan, from its inputs: integers, or torch's symbols."""
    return bind_shapes(plan, [array.shape for array in arrays])


def bind_shapes(plan: Mapping[str, Any], shapes: Sequence[Sequence[int]]) -> dict[str, int]:
    """``bind``, given the inputs' shapes."""
    sizes: dict[str, int] = {}
    for described, shape in zip(plan["inputs"], shapes, strict=False):
        dims = described["dims"]
        if len(dims) != len(shape):
            raise ValueError(
                f"argument '{described.get('name')}': expected {len(dims)} axes, [{', '.join(dims)}], but got "
                f"{len(shape)}: {list(shape)}"
            )
        for dim, size in zip(dims, shape, strict=True):
            if dim.isidentifier():
                sizes.setdefault(dim, size)
    return sizes


def fit(plan: Mapping[str, Any], tensors: Sequence[Any]) -> dict[str, int]:
    """``bind`` of torch's tensors that have no memory, of which no kernel is told: ValueError for types and sizes that
    are not the plan's. Sizes that are symbols of torch's are not asked."""
    sizes = bind(plan, tensors)
    for described, tensor in zip(plan["inputs"], tensors, strict=True):
        label, given = f"argument '{described['name']}'", array_type(tensor.dtype)
        if tensor.is_floating_point() and not holds(given, described["type"]):  # integers are converted
            raise ValueError(f"{label}: expected elements of {described['type']}, but got {given}")
        for axis, (dim, size) in enumerate(zip(described["dims"], tensor.shape, strict=True)):
            wanted = evaluate(dim, sizes)
            if type(wanted) is type(size) is int and wanted != size:
                named = dim if dim == str(wanted) else f"{dim} = {wanted}"
                raise ValueError(f"{label}: expected size {named} on axis {axis}, but got {size}")
    for required in plan.get("requires", ()):
        size, least = (evaluate(required[key], sizes) for key in ("size", "at_least"))
        if type(size) is type(least) is int and size < least:
            raise ValueError(
                f"expected {required['what']}, but got {required['size']} = {size} for {required['at_least']} = {least}"
            )
    return sizes


def folded_batch(
    plan: Mapping[str, Any], count: int, mapped: Sequence[bool], shapes: Sequence[Sequence[int]]
) -> int | None:
    """The batch of one of ``count`` calls, where the axis that they go over can become part of it; None where it
    cannot. ``mapped`` says which inputs have that axis, first, ``shapes`` are the inputs' with it."""
    batch = plan.get("batch")
    if batch is None or any(m and each["dims"][:1] != [batch] for m, each in zip(mapped, plan["inputs"], strict=True)):
        return None
    sizes = bind_shapes(plan, [shape[1:] if m else shape for shape, m in zip(shapes, mapped, strict=True)])
    whole = {**sizes, batch: sizes[batch] * count}
    grids = [launch["grid"] for variant in plan["variants"] for launch in variant["launches"]]
    fits = all(evaluate(extent, whole) <= _MOST_BLOCKS for grid in grids for extent in grid[1:])
    return sizes[batch] if fits else None


def saved_outputs(
    inputs: int, results: int, forward: Sequence[Mapping[str, Any]], backward: Sequence[Mapping[str, Any]]
) -> list[int]:
    """The numbers of NAME.forward's outputs that NAME.backward takes after the program's ``inputs``, in that order. It
    knows them by their names: what of the program's ``results`` it needs is not given twice. ``forward`` are the
    outputs, ``backward`` the inputs, as the plans describe them."""
    numbers = {each["name"]: number for number, each in enumerate(forward)}
    gradients = sum(each["type"].startswith(("fp", "bf")) for each in forward[:results])
    return [numbers[each["name"]] for each in backward[inputs : len(backward) - gradients]]
