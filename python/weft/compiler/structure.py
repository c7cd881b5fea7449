# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Variables as lists of tensors and back: what loops carry and branches merge."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from ..language.aggregates import aggregate_value
from ..language.block_pointers import block_pointer
from ..language.descriptors import tensor_descriptor
from ..language.literals import is_number, to_tensor
from ..language.value import tensor

ARRAYS = (block_pointer, tensor_descriptor)  # values that say themselves which tensors of theirs are carried


def in_kind(value: tuple[Any, ...] | list[Any], parts: Iterable[Any]) -> tuple[Any, ...]:
    """Parts as a tuple; a named one where the value is."""
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*parts)
    return tuple(parts)


def as_variable(value: Any) -> Any:
    """What a variable holds when a value is assigned to it: numbers become constant scalars, as in Triton."""
    if is_number(value):
        return to_tensor(value)
    if isinstance(value, (tuple, list)):
        return in_kind(value, map(as_variable, value))
    return value


def _varying(value: aggregate_value) -> dict[str, Any]:
    """The fields of an instance that hold tensors; the others are constants."""
    return {name: each for name, each in value.fields().items() if flatten(each) is not None}


def flatten(value: Any) -> list[tensor] | None:
    """The tensors of a variable, in order; None when it holds anything else."""
    if isinstance(value, tensor):
        return [value]
    if isinstance(value, ARRAYS):
        return value.tensors()
    if isinstance(value, aggregate_value):
        value = tuple(_varying(value).values())
    if isinstance(value, tuple) and value:
        leaves: list[tensor] = []
        for part in value:
            inner = flatten(part)
            if inner is None:
                return None
            leaves += inner
        return leaves
    return None


def rebuild(template: Any, leaves: Iterator[tensor]) -> Any:
    """A value of the template's structure from other tensors."""
    if isinstance(template, tensor):
        return next(leaves)
    if isinstance(template, ARRAYS):
        return template.rebuilt(leaves)
    if isinstance(template, aggregate_value):
        return template.replaced(**{name: rebuild(each, leaves) for name, each in _varying(template).items()})
    return in_kind(template, (rebuild(part, leaves) for part in template))


def same_structure(a: Any, b: Any) -> bool:
    """Whether two variables hold tensors of the same types in the same places."""
    if isinstance(a, tensor) and isinstance(b, tensor):
        return a.type == b.type
    if isinstance(a, ARRAYS):
        return a.like(b)
    if isinstance(a, aggregate_value) or isinstance(b, aggregate_value):
        return type(a) is type(b) and all(map(_same_field, a.fields().values(), b.fields().values()))
    return isinstance(a, tuple) and isinstance(b, tuple) and len(a) == len(b) and all(map(same_structure, a, b))


def _same_field(a: Any, b: Any) -> bool:
    return same_structure(a, b) if flatten(a) is not None else same_constant(a, b)


def moving(value: Any) -> Any:
    """A variable of which everything may change: block pointers carry their array with them."""
    if isinstance(value, ARRAYS):
        return value.as_whole()
    if isinstance(value, aggregate_value):
        return value.replaced(**{name: moving(each) for name, each in _varying(value).items()})
    return in_kind(value, map(moving, value)) if isinstance(value, tuple) else value


def alike(a: Any, b: Any) -> tuple[Any, Any]:
    """Two variables that are to be one: block pointers of different arrays with these arrays."""
    if isinstance(a, ARRAYS) and type(a) is type(b) and not a.like(b):
        return a.as_whole(), b.as_whole()
    if isinstance(a, tuple) and isinstance(b, tuple) and len(a) == len(b):
        pairs = [alike(x, y) for x, y in zip(a, b, strict=True)]
        return in_kind(a, (x for x, _ in pairs)), in_kind(b, (y for _, y in pairs))
    return a, b


def same_constant(a: Any, b: Any) -> bool:
    """Whether two variables hold one and the same compile-time value."""
    if a is b:
        return True
    if isinstance(a, tensor) and isinstance(b, tensor):
        return (
            a.constant is not None
            and b.constant is not None
            and a.type == b.type
            and repr(a.constant) == repr(b.constant)
        )
    if isinstance(a, tensor) or isinstance(b, tensor) or type(a) is not type(b):
        return False
    if isinstance(a, aggregate_value):
        return all(map(same_constant, a.fields().values(), b.fields().values()))
    if isinstance(a, tuple):
        return len(a) == len(b) and all(map(same_constant, a, b))
    return bool(a == b)
