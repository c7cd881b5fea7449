# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""The inputs of a program being traced: of its arguments, and of the arrays around it that it meets on the way."""

from __future__ import annotations

from typing import Any

from ..compiler import places
from ..runtime.plain import described, negated, objection
from .facts import facts_of
from .graph import Graph, Input, TensorType, Value
from .sizes import Size, Symbol
from .torch_reads import narrowed

_ROLES = {4: ("B", "H", "N", "D"), 3: ("B", "N", "D"), 2: ("R", "C"), 1: ("L",)}


def add_input(graph: Graph, name: str, facts: Any, sizes: tuple[Size, ...] | None = None, array: Any = None) -> Value:
    """A new input of the program, of fresh sizes where none are given; ``facts`` are Facts, or Declared. The ``array``
    that it is in the present call may be looked into where it is one number."""
    if sizes is None:
        if len(facts.shape) > 6:
            raise places.error(f"expected '{name}' to have at most 6 axes, but got {len(facts.shape)}")
        made = []
        roles = _ROLES.get(len(facts.shape), ())
        for axis, size in enumerate(facts.shape):
            role = roles[axis] if roles else "S"
            made.append(Size(1, Symbol(size, [(9, role)])))
        sizes = tuple(made)
    value = Value(TensorType(sizes, facts.element))
    graph.inputs.append(Input(name, value, facts.aligned, facts.constant))
    if array is not None and not sizes:
        graph.numbers[id(value)] = array
    return value


def capture(graph: Graph, array: Any) -> Value:
    """The input that stands for an array from outside the program's arguments; one for each array."""
    found = graph.captured.get(id(array))
    if found is None:
        key = id(array)
        if graph.as_torch:
            graph.replaced.append(array)
            array = narrowed(array)
        name = f"captured{len(graph.captured)}"
        if not described(array) and (wrong := objection(array, differentiable=True)):
            raise places.error(wrong.text("an array from around the program"), wrong.remedy)
        if negated(array):
            raise places.error(
                "expected an array from around the program to be in memory as it is, but got a view that is negated "
                "when it is read",
                "use .resolve_neg()",
            )
        outer, graph.block = graph.block, graph.body
        found = graph.captured[key] = (
            array,
            add_input(graph, name, facts_of(array, graph.selective), None, array),
        )
        graph.block = outer
    value: Value = found[1]
    return value
