# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""A call's arguments: the arrays among them become the program's inputs, everything else is static.

Arrays are looked for in tuples, lists, dicts and mixers too; their names follow the way there: ``weights_conv1``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from .facts import is_array


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
