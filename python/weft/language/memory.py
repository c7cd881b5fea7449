# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Reading and writing device memory through pointers."""

from __future__ import annotations

import functools
import math
from typing import Any

from . import errors
from .block_pointers import access, block_pointer, checked_axes
from .casts import convert
from .emit import Builder, builtin, current
from .literals import bits_constant, is_number, to_tensor
from .promotion import broadcast_shape, broadcast_to_shape
from .types import dtype, int1, int8, int64, pointer_type, uint64, unwrap
from .value import member, tensor

_LOAD_CACHES = ("", ".ca", ".cg", ".cs", ".cv")
_STORE_CACHES = ("", ".wb", ".cg", ".cs", ".wt")
_EVICTIONS = ("", "evict_normal", "evict_first", "evict_last")


def pointer_operand(pointer: Any, operation: str) -> tensor:
    """A pointer or block of pointers, with bools reread as the bytes that hold them."""
    value = to_tensor(pointer, f"the pointer of '{operation}'")
    if not value.dtype.is_ptr():
        raise errors.expected_pointer(operation, value)
    if value.dtype.element_ty.is_bool():
        return tensor(value.handle, pointer_type(int8).with_shape(value.shape))
    return value


def check_shape(pointer: tensor, value: Any, operation: str, argument: str) -> None:
    """Refuses a mask or a value that does not broadcast to the pointers' shape."""
    value = to_tensor(value, f"'{argument}' of '{operation}'")
    if value.shape == pointer.shape:
        return
    if not pointer.shape:
        raise errors.block_with_scalar_pointer(operation, argument, value)
    try:
        fits = broadcast_shape(value.shape, pointer.shape) == pointer.shape
    except errors.KernelError:
        fits = False
    if not fits:
        raise errors.not_pointer_shape(operation, argument, value, pointer)


def in_shape_of(pointer: tensor, value: Any, operation: str, argument: str) -> tensor:
    """A mask or a value broadcast to the pointers' shape."""
    check_shape(pointer, value, operation, argument)
    return broadcast_to_shape(to_tensor(value), pointer.shape)


def _spread(pointer: tensor, *others: Any) -> tensor:
    """Pointers repeated to the shape in which a load's mask and what stands for the rest are, where they have one."""
    shapes = [pointer.shape, *(to_tensor(other).shape for other in others if other is not None)]
    if not pointer.shape:
        return pointer
    try:
        return broadcast_to_shape(pointer, functools.reduce(broadcast_shape, shapes))
    except errors.KernelError:
        return pointer  # what does not fit is named with the argument that brings it


def element_operand(pointer: tensor, value: Any, element: dtype, operation: str, argument: str) -> tensor:
    """A value as what the pointers point to, in their shape."""
    check_shape(pointer, value, operation, argument)
    return broadcast_to_shape(as_element(value, element, operation, argument), pointer.shape)


def as_element(value: Any, element: dtype, operation: str, argument: str) -> tensor:
    """A value as what a pointer points to: cast, or a number made a constant of that type."""
    value = unwrap(value)
    if is_number(value) and not element.is_ptr():
        return bits_constant(float(value) if element.is_floating() else _integer(value, element), element)
    converted = to_tensor(value, f"'{argument}' of '{operation}'")
    if converted.dtype.is_ptr() and element in (int64, uint64):
        return convert(converted, element)  # an address is an integer in memory
    if converted.dtype.is_ptr() != element.is_ptr():
        raise errors.element_type(operation, argument, converted, element)
    return convert(converted, element)


def _integer(value: Any, element: dtype) -> int:
    if isinstance(value, float) and not math.isfinite(value):
        raise errors.number_out_of_range(value, str(element))
    return int(bool(value)) if element.is_bool() else int(value)


def mask_operand(pointer: tensor, mask: Any, operation: str) -> tensor:
    """A mask of bools in the pointers' shape."""
    value = in_shape_of(pointer, mask, operation, "mask")
    if not value.dtype.is_bool():
        raise errors.expected_mask(operation, value)
    return value


def _policy(
    builder: Builder, operation: str, cache: Any, caches: tuple[str, ...], eviction: Any, volatile: Any = False
) -> dict[str, Any]:
    """The attributes for a cache operator, an eviction priority or a volatile access, of which PTX takes one; none for
    the usual ones.
    """
    cache, eviction = unwrap(cache) or "", unwrap(eviction) or ""
    if cache not in caches:
        raise errors.unsupported_option("cache_modifier", cache, " ".join(repr(c) for c in caches[1:]))
    if eviction not in _EVICTIONS:
        raise errors.unsupported_option("eviction_policy", eviction, " ".join(repr(e) for e in _EVICTIONS[1:]))
    given = [
        name
        for name, value in (
            ("cache_modifier", cache),
            ("eviction_policy", eviction not in ("", "evict_normal")),
            ("volatile", unwrap(volatile)),
        )
        if value
    ]
    if len(given) > 1:
        raise errors.options_exclude(operation, given)
    attributes = {}
    if unwrap(volatile):
        attributes["isVolatile"] = builder.native.unit
    if cache:
        attributes["cache"] = builder.attribute(f"#tile<cache {cache[1:]}>")
    if eviction in ("evict_first", "evict_last"):
        attributes["eviction"] = builder.attribute(f"#tile<eviction {eviction}>")
    return attributes


def padding_value(pointer: block_pointer, option: Any) -> float | int:
    """What stands where a block leaves its array."""
    option = unwrap(option) or "zero"
    if option not in ("zero", "nan") or (option == "nan" and not pointer.dtype.is_floating()):
        takes = "'zero' or 'nan'" if pointer.dtype.is_floating() else "'zero', for integers,"
        raise errors.unsupported_option("padding_option", option, takes)
    return math.nan if option == "nan" else 0


@builtin
def load(
    pointer: Any,
    mask: Any = None,
    other: Any = None,
    boundary_check: Any = (),
    padding_option: str = "",
    cache_modifier: str = "",
    eviction_policy: str = "",
    volatile: bool = False,
) -> tensor:
    """Read what ``pointer`` points to; a block of pointers gives a block of their shape.

    Where ``mask`` is false memory is not touched, and the result is ``other``, or undefined without it (the simulator
    reports where that matters); pointers and both broadcast to one shape. A ``volatile`` load is of what other programs
    change: what this one accesses afterwards comes after it.

    Of a block pointer the block is read. ``boundary_check`` names the axes along which it may leave the array; elements
    outside are 0, or NaN with ``padding_option="nan"``. (Triton leaves them undefined without a ``padding_option``.)

        v = wl.load(x + at, mask=at < M, other=0.0)
    """
    mask, other = unwrap(mask), unwrap(other)
    if isinstance(pointer, block_pointer):
        checked = checked_axes(pointer, boundary_check, "load")
        for argument, given in (("mask", mask), ("other", other)):
            if given is not None:
                raise errors.mask_of_block_pointer("load", argument)
        block = access(pointer, checked)
        padding = None if block.mask is None else padding_value(pointer, padding_option)
        return load(block.pointers, block.mask, padding, (), "", cache_modifier, eviction_policy, volatile)
    if unwrap(boundary_check) or unwrap(padding_option):
        raise errors.needs_block_pointer("load")
    if other is not None and mask is None:
        raise errors.other_without_mask()
    source = to_tensor(pointer, "the pointer of 'load'")
    address = _spread(pointer_operand(pointer, "load"), mask, other)
    builder, element = current(), address.dtype.element_ty
    operands = [address.handle]
    if mask is not None:
        operands.append(mask_operand(address, mask, "load").handle)
    if other is not None:
        operands.append(element_operand(address, other, element, "load", "other").handle)
    attributes = _policy(builder, "load", cache_modifier, _LOAD_CACHES, eviction_policy, volatile)
    attributes["operandSegmentSizes"] = builder.i32_array([1, int(mask is not None), int(other is not None)])
    result = element.with_shape(address.shape)
    value = tensor(builder.op("tile.load", operands, [result], attributes), result)
    return convert(value, int1) if source.dtype.element_ty.is_bool() else value


@member
@builtin
def store(
    pointer: Any,
    value: Any,
    mask: Any = None,
    boundary_check: Any = (),
    cache_modifier: str = "",
    eviction_policy: str = "",
) -> None:
    """Write ``value`` where ``pointer`` points and ``mask`` is true.

    Value and mask broadcast to the pointers' shape; the value is cast to the pointee. To a block pointer the block is
    written; along the axes of ``boundary_check`` elements outside of the array are not.

        wl.store(y + at, wl.load(x + at) * 2, mask=at < M)
    """
    mask = unwrap(mask)
    if isinstance(pointer, block_pointer):
        if mask is not None:
            raise errors.mask_of_block_pointer("store", "mask")
        block = access(pointer, checked_axes(pointer, boundary_check, "store"))
        store(block.pointers, value, block.mask, (), cache_modifier, eviction_policy)
        return
    if unwrap(boundary_check):
        raise errors.needs_block_pointer("store")
    target = to_tensor(pointer, "the pointer of 'store'")
    address = pointer_operand(pointer, "store")
    if target.dtype.is_const():
        raise errors.store_to_constant(target.dtype)
    builder, stored = current(), target.dtype.element_ty
    written = element_operand(address, value, stored, "store", "value")
    written = convert(written, address.dtype.element_ty)
    operands = [address.handle, written.handle]
    if mask is not None:
        operands.append(mask_operand(address, mask, "store").handle)
    builder.op("tile.store", operands, [], _policy(builder, "store", cache_modifier, _STORE_CACHES, eviction_policy))
