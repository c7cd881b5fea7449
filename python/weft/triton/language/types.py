# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Triton's names for kinds of values and of types: to ask with ``isinstance``, to annotate with, and to read from text
(``str_to_ty``). None of them builds IR.
"""

from __future__ import annotations

import abc
import builtins
from collections.abc import Iterable, Iterator
from typing import Any

from weft.compiler.signature import type_named
from weft.language.aggregates import aggregate_value
from weft.language.block_pointers import block_pointer
from weft.language.descriptors import tensor_descriptor
from weft.language.types import block_type, constexpr, dtype, int32, int64, unwrap
from weft.language.value import tensor


class base_value(abc.ABC):  # noqa: B024
    """Values of a kernel: tensors, constants, block pointers, descriptors, instances of aggregates; in a kernel, tuples
    too, which outside of one are Python's own and no values."""


for _kind in (tensor, constexpr, block_pointer, tensor_descriptor, aggregate_value):
    base_value.register(_kind)
#: what ``isinstance`` takes for it in a kernel, where constants and tuples are Python's
base_value.__weft_instances__ = (base_value, constexpr, builtins.tuple)  # type: ignore[attr-defined]


class base_type(abc.ABC):  # noqa: B024
    """Types: of numbers and pointers (``dtype``), of blocks, constants, tuples and descriptors."""


base_type.register(dtype)
base_type.register(block_type)


class constexpr_type(base_type):
    """The type of a constant, which is its value."""

    def __init__(self, value: Any):
        self.value = unwrap(value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, constexpr_type) and self.value == other.value

    def __hash__(self) -> int:
        return hash(self.value)

    def __repr__(self) -> str:
        return f"constexpr_type[{self.value}]"


class tuple_type(base_type):
    """The type of a tuple: its parts' types in order, and their names where it is a named one."""

    def __init__(self, types: Iterable[Any], fields: Iterable[str] | None = None):
        self.types = builtins.list(types)
        self.fields = None if fields is None else builtins.tuple(fields)

    @property
    def name(self) -> str:
        """The types in brackets, behind the names where there are any."""
        names = [""] * len(self.types) if self.fields is None else [f"{field}:" for field in self.fields]
        return f"[{','.join(name + str(kind) for name, kind in zip(names, self.types, strict=True))}]"

    def __iter__(self) -> Iterator[Any]:
        return iter(self.types)

    def __len__(self) -> int:
        return len(self.types)

    def __getitem__(self, index: int) -> Any:
        return self.types[index]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, tuple_type) and (self.types, self.fields) == (other.types, other.fields)

    def __hash__(self) -> int:
        return hash((builtins.tuple(self.types), self.fields))

    def __repr__(self) -> str:
        return self.name


class tensor_descriptor_base_type(base_type):
    """The type of a descriptor, as far as its blocks go."""

    def __init__(self, block_type: block_type):
        self.block_type = block_type

    def _parts(self) -> builtins.tuple[Any, ...]:
        return (self.block_type,)

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and self._parts() == other._parts()

    def __hash__(self) -> int:
        return hash(self._parts())

    def __repr__(self) -> str:
        return f"tensor_descriptor<{self.block_type}>"


class tensor_descriptor_type(tensor_descriptor_base_type):
    """The type of a descriptor: of its blocks, and of the array's shape and strides."""

    def __init__(self, block_type: block_type, shape_type: tuple_type, strides_type: tuple_type):
        super().__init__(block_type)
        self.shape_type, self.strides_type = shape_type, strides_type

    def _parts(self) -> builtins.tuple[Any, ...]:
        return self.block_type, self.shape_type, self.strides_type


def str_to_ty(name: Any, c: Any) -> Any:
    """The type that a text of a signature names: "fp16", "*i32", "*ki32" (nothing is stored through it),
    "tensordesc<fp16[64, 32]>", "constexpr", whose value is ``c``; of a tuple of texts, the type of a tuple.

    Raises ValueError for other texts.
    """
    if isinstance(name, builtins.tuple):
        return tuple_type([str_to_ty(each, c) for each in name], getattr(name, "_fields", None))
    if name.startswith("constexpr"):
        return constexpr_type(c)
    if name.startswith("tensordesc"):
        return _descriptor(name)
    return type_named("int1" if name == "B" else name)


def _descriptor(text: str) -> tensor_descriptor_type:
    """The type of ``tensordesc<fp16[64, 32]>``."""
    element, _, sizes = text.removeprefix("tensordesc<").removesuffix("]>").partition("[")
    if text != f"tensordesc<{element}[{sizes}]>" or not all(size.strip().isdigit() for size in sizes.split(",")):
        raise ValueError(
            f"expected a descriptor such as 'tensordesc<fp16[64, 32]>', without a layout, but got '{text}'"
        )
    shape = [int(size) for size in sizes.split(",")]
    lengths, strides = tuple_type([int32] * len(shape)), tuple_type([int64] * len(shape))
    return tensor_descriptor_type(block_type(type_named(element), shape), lengths, strides)


tensor_descriptor_base = tensor_descriptor

__all__ = [
    "base_type",
    "base_value",
    "constexpr_type",
    "str_to_ty",
    "tensor_descriptor_base",
    "tensor_descriptor_base_type",
    "tensor_descriptor_type",
    "tuple_type",
]
