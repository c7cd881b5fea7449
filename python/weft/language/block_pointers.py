# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Pointers to blocks of an array with a shape and strides: ``make_block_ptr`` and ``advance``.

A block pointer is no value of the machine's. It is an array's address, shape and strides with the offsets of a block,
and each access computes the block's addresses from them, and its mask where bounds are to be checked.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from . import errors
from .casts import convert
from .emit import builtin
from .literals import to_tensor
from .maths import maximum
from .operators import add, compare, logical_and, mul
from .shapes import arange, constant_int, constant_shape, expand_dims
from .types import int32, int64, uint32, uint64, unwrap
from .value import member, tensor


@dataclass(frozen=True, eq=False)
class block_pointer:
    """What ``make_block_ptr`` gives. Immutable: ``advance`` gives another one."""

    base: tensor
    shape: tuple[Any, ...]
    strides: tuple[Any, ...]
    offsets: tuple[Any, ...]
    block_shape: tuple[int, ...]
    whole: bool = False
    """whether a loop carries base, shape and strides too, which otherwise stay as they are"""

    __weft_carried__ = True

    @property
    def dtype(self) -> Any:
        """The type of an element."""
        return self.base.dtype.element_ty

    @property
    def type(self) -> Any:
        """The type of a pointer to an element."""
        return self.base.type

    def __repr__(self) -> str:
        return f"a pointer to {self.dtype}[{', '.join(map(str, self.block_shape))}]"

    # ---- As the tensors that loops carry and branches merge

    def tensors(self) -> list[tensor]:
        """What of it changes, as tensors: the offsets; all of it, where it is whole."""
        offsets = [convert(to_tensor(each), int32) for each in self.offsets]
        if not self.whole:
            return offsets
        return [self.base, *(convert(to_tensor(each), int64) for each in (*self.shape, *self.strides)), *offsets]

    def rebuilt(self, values: Iterator[tensor]) -> block_pointer:
        """The same with other tensors in the place of ``tensors()``."""
        rank = len(self.block_shape)
        if not self.whole:
            return dataclasses.replace(self, offsets=tuple(next(values) for _ in range(rank)))
        base = next(values)
        parts = [tuple(next(values) for _ in range(rank)) for _ in range(3)]
        return dataclasses.replace(self, base=base, shape=parts[0], strides=parts[1], offsets=parts[2])

    def like(self, other: Any) -> bool:
        """Whether another one has the same type, and is at the same array where that is not carried."""
        if not isinstance(other, block_pointer) or self.whole != other.whole:
            return False
        if self.base.type != other.base.type or self.block_shape != other.block_shape:
            return False
        return self.whole or self.same_array(other)

    def same_array(self, other: block_pointer) -> bool:
        """Whether another one is known to be at the same array."""
        mine, others = (self.base, *self.shape, *self.strides), (other.base, *other.shape, *other.strides)
        return len(mine) == len(others) and all(map(_same, mine, others))

    def as_whole(self) -> block_pointer:
        """The same, of which base, shape and strides may change."""
        return self if self.whole else dataclasses.replace(self, whole=True)


def _same(a: Any, b: Any) -> bool:
    known = [each.constant if isinstance(each, tensor) else each for each in (a, b)]
    return a is b or (known[0] is not None and type(known[0]) is type(known[1]) and known[0] == known[1])


def _integers(values: Any, what: str, operation: str, wide: bool = False) -> tuple[Any, ...]:
    """Scalars of integers: numbers as they are, others as int32, or int64 where they are wide and may be."""
    values = unwrap(values)
    found: list[Any] = []
    for value in values if isinstance(values, (tuple, list)) else (values,):
        scalar = to_tensor(value, f"a number of '{what}' of '{operation}'")
        if scalar.shape or not scalar.dtype.is_int() or scalar.dtype.is_bool():
            raise errors.block_pointer_numbers(operation, what, scalar)
        if scalar.constant is not None:
            found.append(int(scalar.constant))
        elif (wide and scalar.dtype.primitive_bitwidth > 32) or scalar.dtype in (uint32, uint64):
            found.append(convert(scalar, int64))
        else:
            found.append(convert(scalar, int32))
    return tuple(found)


@builtin
def make_block_ptr(
    base: Any, shape: Any, strides: Any, offsets: Any, block_shape: Any, order: Any = None
) -> block_pointer:
    """A pointer to the block of ``block_shape`` at ``offsets`` of an array that begins at ``base``.

    base: a scalar pointer. shape, strides: the array's sizes, and the distances between elements along each axis,
    counted in elements; integers or scalars. offsets: where the block begins; int32. block_shape: constants.
    order: accepted as in Triton, without effect; what is contiguous is read from the strides.

        p = wl.make_block_ptr(x, (M, N), (N, 1), (wl.program_id(0) * 64, 0), (64, 32), (1, 0))
        for _ in range(0, N, 32):
            total += wl.load(p, boundary_check=(0, 1), padding_option="zero")
            p = wl.advance(p, (0, 32))
    """
    pointer = to_tensor(base, "the base of 'make_block_ptr'")
    if not pointer.dtype.is_ptr():
        raise errors.expected_pointer("make_block_ptr", pointer)
    if pointer.shape:
        raise errors.expected_scalar("the base of 'make_block_ptr'", pointer)
    name = "make_block_ptr"
    sizes = constant_shape(block_shape, "the block_shape of make_block_ptr")
    parts = (
        _integers(shape, "shape", name, wide=True),
        _integers(strides, "strides", name, wide=True),
        _integers(offsets, "offsets", name),
    )
    for what, found in zip(("shape", "strides", "offsets"), parts, strict=True):
        if len(found) != len(sizes):
            raise errors.block_pointer_rank(name, what, len(found), len(sizes))
    return block_pointer(pointer, *parts, sizes)


@member
@builtin
def advance(base: Any, offsets: Any) -> block_pointer:
    """The block pointer ``offsets`` elements on along each axis."""
    if not isinstance(base, block_pointer):
        raise errors.expected_block_pointer("advance", base)
    steps = _integers(offsets, "offsets", "advance")
    if len(steps) != len(base.block_shape):
        raise errors.block_pointer_rank("advance", "offsets", len(steps), len(base.block_shape))
    moved = tuple(_sum(a, b) for a, b in zip(base.offsets, steps, strict=True))
    return dataclasses.replace(base, offsets=moved)


def _sum(a: Any, b: Any) -> Any:
    if isinstance(a, int) and isinstance(b, int):
        return a + b
    if isinstance(b, int) and b == 0:
        return a
    return convert(add(to_tensor(a), to_tensor(b)), int32)


@dataclass(frozen=True)
class Access:
    """The addresses of a block, and which of them lie within the array: None where no bound is checked."""

    pointers: tensor
    mask: tensor | None


def checked_axes(pointer: block_pointer, boundary_check: Any, operation: str) -> tuple[int, ...]:
    """The axes that ``boundary_check`` names."""
    given = unwrap(boundary_check)
    given = () if given in (None, "") else given
    rank = len(pointer.block_shape)
    axes = [
        constant_int(axis, f"an axis of boundary_check of {operation}")
        for axis in (given if isinstance(given, (tuple, list)) else (given,))
    ]
    for axis in axes:
        if not -rank <= axis < rank:
            raise errors.axis_out_of_range(f"boundary_check of {operation}", axis, rank)
    return tuple(axis % rank for axis in axes)


def access(pointer: block_pointer, checked: Sequence[int]) -> Access:
    """Where the block is, and whether each element lies within the array along the axes that are checked."""
    rank = len(pointer.block_shape)
    address, mask = pointer.base, None
    # The corner is one scalar of 64 bits; what is added to it along an axis is small.
    for offset, stride in zip(pointer.offsets, pointer.strides, strict=True):
        if isinstance(offset, int) and offset == 0:
            continue
        address = add(address, _product(offset, stride))
    for axis, size in enumerate(pointer.block_shape):
        span = arange(0, size)
        at = _placed(_along(span, pointer.strides[axis], size), axis, rank)
        address = add(address, at)
        if axis in checked:
            inside = _placed(_inside(span, pointer.offsets[axis], pointer.shape[axis]), axis, rank)
            mask = inside if mask is None else logical_and(mask, inside)
    return Access(address, mask)


def access_rows(pointer: block_pointer, rows: tensor) -> Access:
    """Where a block of one row is at each of ``rows``, of which every element is checked."""
    row = access(pointer, (1,))
    stride = convert(to_tensor(pointer.strides[0]), int64)
    address = add(row.pointers, _placed(mul(convert(rows, int64), stride), 0, 2))
    inside = _placed(_inside(rows, 0, pointer.shape[0]), 0, 2)
    return Access(address, inside if row.mask is None else logical_and(row.mask, inside))


def _placed(values: tensor, axis: int, rank: int) -> tensor:
    """A vector along one axis of several."""
    others = tuple(i for i in range(rank) if i != axis)
    return expand_dims(values, others) if others else values


def _product(offset: Any, stride: Any) -> Any:
    if isinstance(stride, int) and stride == 1:
        return offset
    if isinstance(offset, int) and isinstance(stride, int):
        return offset * stride
    return mul(convert(to_tensor(offset), int64), convert(to_tensor(stride), int64))


def _along(span: tensor, stride: Any, size: int) -> tensor:
    """The distance of each index from the first: in 32 bits where it is known to fit."""
    if isinstance(stride, int):
        if stride == 1:
            return span
        if abs(stride) * size < 2**31:
            return mul(span, stride)
    return mul(convert(span, int64), convert(to_tensor(stride), int64))


def _inside(span: tensor, offset: Any, size: Any) -> tensor:
    """Whether 0 <= offset + span < size, by one comparison of unsigned integers; nothing is where size is below 0."""
    index = span if isinstance(offset, int) and offset == 0 else add(span, to_tensor(offset))
    bound = to_tensor(size)
    wide = any(each.primitive_bitwidth + each.is_int_unsigned() > 32 for each in (index.dtype, bound.dtype))
    signed, unsigned = (int64, uint64) if wide else (int32, uint32)
    most = max(size, 0) if isinstance(size, int) else maximum(convert(bound, signed), 0)
    return compare("<", convert(convert(index, signed), unsigned), convert(convert(to_tensor(most), signed), unsigned))


__all__ = ["advance", "block_pointer", "make_block_ptr"]
