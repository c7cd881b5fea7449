# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Descriptors of arrays: ``make_tensor_descriptor``, whose blocks are read and written at offsets. They are block
pointers of which every axis is checked. What is copied in bulk is found later, whatever made the addresses.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from . import atomics, errors
from .block_pointers import Access, access, access_rows, block_pointer, make_block_ptr
from .emit import builtin
from .literals import to_tensor
from .memory import load, padding_value, store
from .shapes import reshape
from .types import unwrap
from .value import tensor


@dataclass(frozen=True, eq=False)
class tensor_descriptor:
    """What ``make_tensor_descriptor`` gives: an array's address, shape and strides, and the shape of its blocks."""

    pointer: block_pointer
    padding: str

    def __repr__(self) -> str:
        return f"a descriptor of {self.pointer!r}"

    @property
    def dtype(self) -> Any:
        """The type of an element."""
        return self.pointer.dtype

    @property
    def shape(self) -> tuple[Any, ...]:
        """The array's sizes."""
        return self.pointer.shape

    @property
    def strides(self) -> tuple[Any, ...]:
        """The distances of elements along each axis."""
        return self.pointer.strides

    @property
    def block_shape(self) -> tuple[int, ...]:
        """The sizes of a block."""
        return self.pointer.block_shape

    @builtin
    def load(self, offsets: Any) -> tensor:
        """The block at ``offsets``, one an axis; elements outside of the array are 0, or NaN where that was asked."""
        return load(self.at(offsets), boundary_check=self.axes, padding_option=self.padding)

    @builtin
    def store(self, offsets: Any, value: Any) -> None:
        """Write a block at ``offsets``; elements outside of the array are left out."""
        if isinstance(value, tensor) and value.shape != self.block_shape:
            value = reshape(value, self.block_shape)
        store(self.at(offsets), value, boundary_check=self.axes)

    @builtin
    def gather(self, rows: Any, column: Any) -> tensor:
        """The rows at a vector of indices, from ``column`` on, of a descriptor whose blocks are one row; those outside
        of the array are 0, or NaN where that was asked."""
        at = self._rows("gather", rows, column)
        return load(at.pointers, at.mask, padding_value(self.pointer, self.padding))

    @builtin
    def scatter(self, value: Any, rows: Any, column: Any) -> None:
        """Write rows at a vector of indices, from ``column`` on; those outside of the array are left out."""
        at = self._rows("scatter", rows, column)
        store(at.pointers, value, at.mask)

    @builtin
    def atomic_add(self, offsets: Any, value: Any) -> tensor:
        """Add a block to the array's; as :func:`atomic_add`, elements outside of the array are left out."""
        return self._combine(atomics.atomic_add, offsets, value)

    @builtin
    def atomic_min(self, offsets: Any, value: Any) -> tensor:
        """Keep the lesser of the array's elements and a block's."""
        return self._combine(atomics.atomic_min, offsets, value)

    @builtin
    def atomic_max(self, offsets: Any, value: Any) -> tensor:
        """Keep the greater of the array's elements and a block's."""
        return self._combine(atomics.atomic_max, offsets, value)

    @builtin
    def atomic_and(self, offsets: Any, value: Any) -> tensor:
        """Combine the array's elements with a block's by ``&``."""
        return self._combine(atomics.atomic_and, offsets, value)

    @builtin
    def atomic_or(self, offsets: Any, value: Any) -> tensor:
        """Combine the array's elements with a block's by ``|``."""
        return self._combine(atomics.atomic_or, offsets, value)

    @builtin
    def atomic_xor(self, offsets: Any, value: Any) -> tensor:
        """Combine the array's elements with a block's by ``^``."""
        return self._combine(atomics.atomic_xor, offsets, value)

    def _combine(self, combine: Any, offsets: Any, value: Any) -> tensor:
        at = access(self.at(offsets), self.axes)
        if isinstance(value, tensor) and value.shape != self.block_shape:
            value = reshape(value, self.block_shape)
        found: tensor = combine(at.pointers, value, at.mask, sem="relaxed")
        return found

    def _rows(self, operation: str, rows: Any, column: Any) -> Access:
        indices = to_tensor(rows, f"the rows of '{operation}'")
        is_row = len(self.block_shape) == 2 and self.block_shape[0] == 1
        if not is_row or len(indices.shape) != 1 or not indices.dtype.is_int() or indices.dtype.is_bool():
            raise errors.gathered_rows(operation, self.block_shape, indices)
        return access_rows(self.at((0, column)), indices)

    @property
    def axes(self) -> tuple[int, ...]:
        """All axes."""
        return tuple(range(len(self.block_shape)))

    # ---- As the tensors that loops carry and branches merge: those of its pointer

    def tensors(self) -> list[tensor]:
        """What of it changes, as tensors."""
        return self.pointer.tensors()

    def rebuilt(self, values: Iterator[tensor]) -> tensor_descriptor:
        """The same with other tensors in the place of ``tensors()``."""
        return dataclasses.replace(self, pointer=self.pointer.rebuilt(values))

    def like(self, other: Any) -> bool:
        """Whether another one has the same type and padding, and is of the same array where that is not carried."""
        same = isinstance(other, tensor_descriptor) and self.padding == other.padding
        return same and self.pointer.like(other.pointer)

    def as_whole(self) -> tensor_descriptor:
        """The same, of which base, shape and strides may change."""
        return dataclasses.replace(self, pointer=self.pointer.as_whole())

    def at(self, offsets: Any) -> block_pointer:
        """The block pointer to the block at ``offsets``."""
        pointer = self.pointer
        made = make_block_ptr(pointer.base, pointer.shape, pointer.strides, offsets, pointer.block_shape)
        return dataclasses.replace(made, whole=pointer.whole)


@builtin
def make_tensor_descriptor(
    base: Any, shape: Any, strides: Any, block_shape: Any, padding_option: str = "zero"
) -> tensor_descriptor:
    """A descriptor of the array that begins at ``base``, for blocks of ``block_shape``.

    As for :func:`make_block_ptr`; ``padding_option`` is "zero" or "nan". Unlike in Triton any strides will do, the
    last one need not be 1.

        d = wl.make_tensor_descriptor(x, [M, N], [N, 1], [64, 32])
        wl.store(y, wl.sum(d.load([0, 32])))
    """
    sizes = unwrap(block_shape)
    rank = len(sizes) if isinstance(sizes, (tuple, list)) else 1
    option = unwrap(padding_option)
    if option not in ("zero", "nan"):
        raise errors.unsupported_option("padding_option", option, "'zero' or 'nan'")
    return tensor_descriptor(make_block_ptr(base, shape, strides, (0,) * rank, block_shape), option)


@builtin
def load_tensor_descriptor(desc: tensor_descriptor, offsets: Any) -> tensor:
    """The block of a descriptor at ``offsets``."""
    if not isinstance(desc, tensor_descriptor):
        raise errors.expected_block_pointer("load_tensor_descriptor", desc)
    return desc.load(offsets)


@builtin
def store_tensor_descriptor(desc: tensor_descriptor, offsets: Any, value: Any) -> None:
    """Write a block of a descriptor at ``offsets``."""
    if not isinstance(desc, tensor_descriptor):
        raise errors.expected_block_pointer("store_tensor_descriptor", desc)
    desc.store(offsets, value)


__all__ = ["load_tensor_descriptor", "make_tensor_descriptor", "store_tensor_descriptor", "tensor_descriptor"]
