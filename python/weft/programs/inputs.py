# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""A call's arguments: the arrays among them become the program's inputs, everything else is static.

Arrays are looked for in tuples, lists, dicts and mixers too; their names follow the way there: ``weights_conv1``.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from ..compiler.diagnostics import CompilationError
from ..compiler.specialise import array_type
from ..language.types import dtype
from ..runtime.plain import negated, objection, recording
from . import places
from .dtypes import NAMES, dtype_of
from .graph import Graph, Input, TensorType, Value
from .sizes import Size, Symbol
from .tensors import Tensor, is_array


@dataclass(frozen=True)
class Facts:
    """What the compiled form depends on of an array: its type, its sizes, whether wide accesses are possible."""

    element: dtype
    shape: tuple[int, ...]
    aligned: bool
    constant: bool = False


def facts_of(array: Any, selective: bool = False, name: str = "") -> Facts:
    """The facts of a NumPy array or a torch tensor. CompilationError where programs take no such array, with the
    argument's name."""
    what = f"'{name}'" if name else "an array"
    try:
        element = dtype_of(array_type(array.dtype))
    except (TypeError, CompilationError):
        given = str(array.dtype).removeprefix("torch.")
        raise places.error(f"expected {what} of {', '.join(NAMES)}, but got {given}") from None
    shape = tuple(int(size) for size in array.shape)
    if hasattr(array, "data_ptr"):
        address, strides = array.data_ptr(), [s * element.itemsize for s in array.stride()]
    elif hasattr(array, "ctypes"):
        address, strides = array.ctypes.data, list(array.strides)
    else:
        raise places.error(f"expected a NumPy array or a torch tensor, but got '{type(array).__name__}'")
    along = [stride for stride, size in zip(strides[:-1], shape[:-1], strict=True) if size > 1]
    aligned = all(number % 16 == 0 for number in [address, *along])
    constant = selective and element.is_floating() and not getattr(array, "requires_grad", False)
    return Facts(element, shape, aligned, constant)


def readable(arrays: Sequence[tuple[str, Any]]) -> list[tuple[str, Any]]:
    """A call's arrays by name, as kernels read them. CompilationError where one of them has other values than its
    memory holds, or where something records torch's operations and would not see the call."""
    if recorder := recording():
        raise places.error(
            f"expected a call outside of {recorder}, which does not see what kernels compute",
            "record the rest of the model, and call the program beside it",
        )
    for name, array in arrays:
        if wrong := objection(array):
            raise places.error(wrong.text(f"'{name}'"), wrong.remedy)
    return [(name, array.resolve_neg() if negated(array) else array) for name, array in arrays]


def wants_gradients(arrays: Sequence[Any]) -> bool:
    """Whether a call on these arrays is to be differentiable."""
    if not any(getattr(array, "requires_grad", False) for array in arrays):
        return False
    import torch

    return torch.is_grad_enabled()


def must_be_deterministic() -> bool:
    """Whether torch.use_deterministic_algorithms(True) holds; where it only warns, what a program says counts."""
    torch = sys.modules.get("torch")
    if torch is None or not torch.are_deterministic_algorithms_enabled():
        return False
    return not torch.is_deterministic_algorithms_warn_only_enabled()


# What stands in a structure for the input of that number.
@dataclass(frozen=True)
class Slot:
    number: int


@dataclass(frozen=True)
class Node:
    """A container among the arguments: how it is made again, of its parts by name."""

    kind: Any
    parts: tuple[tuple[Any, Any], ...]


@dataclass(frozen=True)
class Static:
    """A value that is part of the compiled form."""

    value: Any


def spelling(structure: Any) -> Any:
    """A structure as plain containers, of which a key can be made."""
    if isinstance(structure, Slot):
        return ("array", structure.number)
    if isinstance(structure, Static):
        return structure.value
    if isinstance(structure, Node):
        return (structure.kind, tuple((name, spelling(part)) for name, part in structure.parts))
    return tuple((name, spelling(part)) for name, part in structure)


def flatten(value: Any, name: str, found: list[tuple[str, Any]]) -> Any:
    """The structure of an argument; its arrays go to ``found`` with their names."""
    if is_array(value):
        found.append((name, value))
        return Slot(len(found) - 1)
    if isinstance(value, (tuple, list)):
        return Node(type(value), tuple((str(i), flatten(v, f"{name}_{i}", found)) for i, v in enumerate(value)))
    if isinstance(value, dict):
        return Node(dict, tuple((k, flatten(v, f"{name}_{k}", found)) for k, v in value.items()))
    if hasattr(type(value), "__weft_parts__"):
        parts = tuple((k, flatten(v, f"{name}_{k}" if name else k, found)) for k, v in value.__weft_parts__())
        return Node(type(value), parts)
    return Static(value)


def rebuild(structure: Any, tensor: Callable[[int], Any]) -> Any:
    """What ``flatten`` took apart, with ``tensor(number)`` in the place of each array."""
    if isinstance(structure, Slot):
        return tensor(structure.number)
    if isinstance(structure, Static):
        return structure.value
    parts = [(name, rebuild(part, tensor)) for name, part in structure.parts]
    if structure.kind is dict:
        return dict(parts)
    if issubclass(structure.kind, (tuple, list)):
        values = [value for _, value in parts]
        return structure.kind(*values) if hasattr(structure.kind, "_fields") else structure.kind(values)
    return structure.kind.__weft_rebuild__(dict(parts))


_ROLES = {4: ("B", "H", "N", "D"), 3: ("B", "N", "D"), 2: ("R", "C"), 1: ("L",)}


def add_input(graph: Graph, name: str, facts: Any, sizes: tuple[Size, ...] | None = None, array: Any = None) -> Tensor:
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
    return Tensor(value)


def capture(graph: Graph, array: Any) -> Tensor:
    """The input that stands for an array from outside the program's arguments; one for each array."""
    found = graph.captured.get(id(array))
    if found is None:
        name = f"captured{len(graph.captured)}"
        if wrong := objection(array):
            raise places.error(wrong.text("an array from around the program"), wrong.remedy)
        if negated(array):
            raise places.error(
                "expected an array from around the program to be in memory as it is, but got a view that is negated "
                "when it is read",
                "use .resolve_neg()",
            )
        outer, graph.block = graph.block, graph.body
        found = graph.captured[id(array)] = (
            array,
            add_input(graph, name, facts_of(array, graph.selective), None, array),
        )
        graph.block = outer
    tensor = found[1]
    assert isinstance(tensor, Tensor)
    return tensor
