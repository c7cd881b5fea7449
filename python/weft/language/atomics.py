# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Reading, combining and writing back as one step. Each gives the value that memory held before."""

from __future__ import annotations

from typing import Any

from . import errors
from .casts import convert, reread
from .emit import builtin, current
from .maths import where
from .memory import element_operand, mask_operand, pointer_operand
from .operators import invert
from .promotion import broadcast_to_shape
from .types import get_int_dtype, int1, pointer_type, unwrap
from .value import member, tensor

_ORDERS = ("relaxed", "acquire", "release", "acq_rel")
_SCOPES = ("gpu", "cta", "sys")


def _order(sem: Any, scope: Any) -> dict[str, Any]:
    """The attributes of an order and of the threads that it holds for."""
    sem, scope = unwrap(sem) or "acq_rel", unwrap(scope) or "gpu"
    if sem not in _ORDERS:
        raise errors.unsupported_option("sem", sem, " ".join(repr(o) for o in _ORDERS))
    if scope not in _SCOPES:
        raise errors.unsupported_option("scope", scope, " ".join(repr(s) for s in _SCOPES))
    builder = current()
    return {"order": builder.attribute(f"#tile<order {sem}>"), "scope": builder.attribute(f"#tile<scope {scope}>")}


def _emit(kind: str, address: tensor, value: tensor, mask: tensor | None, order: dict[str, Any]) -> tensor:
    builder = current()
    operands = [address.handle, value.handle] + ([mask.handle] if mask is not None else [])
    attributes = {"kind": builder.attribute(f"#tile<atomic {kind}>"), **order}
    return tensor(builder.op("tile.atomic_rmw", operands, [value.type], attributes), value.type)


def _prepare(name: str, pointer: Any, value: Any, mask: Any) -> tuple[tensor, tensor, tensor | None]:
    """Address, value and mask of one shape; the value of the pointee's type."""
    address = pointer_operand(pointer, name)
    element = address.dtype.element_ty
    if address.dtype.is_const():
        raise errors.store_to_constant(address.dtype)
    small_float_add = name == "atomic_add" and element.primitive_bitwidth == 16 and element.is_floating()
    if element.is_ptr() or (element.primitive_bitwidth < 32 and not small_float_add):
        raise errors.atomic_type(name, element)
    value = element_operand(address, value, element, name, "val")
    mask = unwrap(mask)
    return address, value, None if mask is None else mask_operand(address, mask, name)


def _bitwise(kind: str, pointer: Any, val: Any, mask: Any, sem: Any, scope: Any) -> tensor:
    """Of a float's bits where the elements are floats."""
    order = _order(sem, scope)
    address, value, mask = _prepare(f"atomic_{kind}", pointer, val, mask)
    element = value.dtype
    if element.is_floating():
        bits = get_int_dtype(element.primitive_bitwidth, True)
        address, value = convert(address, pointer_type(bits)), reread(value, bits)
    return reread(_emit(kind, address, value, mask, order), element)


@member
@builtin
def atomic_add(pointer: Any, val: Any, mask: Any = None, sem: str | None = None, scope: str | None = None) -> tensor:
    """Add ``val``: integers of 32 or 64 bits, floats of 16 to 64.

    old = wl.atomic_add(y + at % 8, 1.0, sem="relaxed")
    """
    order = _order(sem, scope)
    address, value, mask = _prepare("atomic_add", pointer, val, mask)
    return _emit("fadd" if value.dtype.is_floating() else "add", address, value, mask, order)


@member
@builtin
def atomic_and(pointer: Any, val: Any, mask: Any = None, sem: str | None = None, scope: str | None = None) -> tensor:
    """Combine with ``val`` by ``&``: integers of 32 or 64 bits, and the bits of floats."""
    return _bitwise("and", pointer, val, mask, sem, scope)


@member
@builtin
def atomic_or(pointer: Any, val: Any, mask: Any = None, sem: str | None = None, scope: str | None = None) -> tensor:
    """Combine with ``val`` by ``|``: integers of 32 or 64 bits, and the bits of floats."""
    return _bitwise("or", pointer, val, mask, sem, scope)


@member
@builtin
def atomic_xor(pointer: Any, val: Any, mask: Any = None, sem: str | None = None, scope: str | None = None) -> tensor:
    """Combine with ``val`` by ``^``: integers of 32 or 64 bits, and the bits of floats."""
    return _bitwise("xor", pointer, val, mask, sem, scope)


@member
@builtin
def atomic_max(pointer: Any, val: Any, mask: Any = None, sem: str | None = None, scope: str | None = None) -> tensor:
    """Keep the greater of memory and ``val``: integers and floats of 32 or 64 bits."""
    return _extremum("atomic_max", "max", "umin", pointer, val, mask, sem, scope)


@member
@builtin
def atomic_min(pointer: Any, val: Any, mask: Any = None, sem: str | None = None, scope: str | None = None) -> tensor:
    """Keep the lesser of memory and ``val``: integers and floats of 32 or 64 bits."""
    return _extremum("atomic_min", "min", "umax", pointer, val, mask, sem, scope)


def _extremum(
    name: str, kind: str, negative_kind: str, pointer: Any, val: Any, mask: Any, sem: Any, scope: Any
) -> tensor:
    order = _order(sem, scope)
    address, value, mask = _prepare(name, pointer, val, mask)
    if value.dtype.is_int():
        return _emit(kind if value.dtype.is_int_signed() else f"u{kind}", address, value, mask, order)
    # Floats compare as their bits do: as signed integers where the sign bit is clear, as unsigned ones in reverse where
    # it is set.
    width = value.dtype.primitive_bitwidth
    signed, unsigned = get_int_dtype(width, True), get_int_dtype(width, False)
    bits = reread(value, signed)
    negative = convert(reread(value, unsigned) >> (width - 1), int1)
    if mask is None:
        mask = broadcast_to_shape(tensor(None, int1, True), address.shape)
    as_signed = convert(address, pointer_type(signed))
    above = _emit(kind, as_signed, bits, mask & invert(negative), order)
    below = _emit(negative_kind, as_signed, bits, mask & negative, order)
    return reread(where(negative, below, above), value.dtype)


@member
@builtin
def atomic_xchg(pointer: Any, val: Any, mask: Any = None, sem: str | None = None, scope: str | None = None) -> tensor:
    """Write ``val``: 32-bit or 64-bit numbers."""
    order = _order(sem, scope)
    address, value, mask = _prepare("atomic_xchg", pointer, val, mask)
    return _emit("exchange", address, value, mask, order)


@member
@builtin
def atomic_cas(pointer: Any, cmp: Any, val: Any, sem: str | None = None, scope: str | None = None) -> tensor:
    """Write ``val`` where memory holds ``cmp``: 16-bit, 32-bit or 64-bit numbers."""
    order = _order(sem, scope)
    address = pointer_operand(pointer, "atomic_cas")
    element = address.dtype.element_ty
    if element.is_ptr() or element.primitive_bitwidth not in (16, 32, 64):
        raise errors.atomic_type("atomic_cas", element)
    expected = element_operand(address, cmp, element, "atomic_cas", "cmp")
    value = element_operand(address, val, element, "atomic_cas", "val")
    return tensor(
        current().op("tile.atomic_cas", [address.handle, expected.handle, value.handle], [value.type], order),
        value.type,
    )


@member
@builtin
def atomic_load(pointer: Any, mask: Any = None, sem: str | None = None, scope: str | None = None) -> tensor:
    """What memory holds, read as one step with an order ("acquire" by default): numbers of 32 or 64 bits, without a
    mask of 16 too. It is an atomic that changes no bit, so the memory must be writable; what a false ``mask`` gives is
    undefined."""
    address, kind = _as_integers(pointer, "atomic_load", 16 if unwrap(mask) is None else 32)
    sem = unwrap(sem) or "acquire"
    narrow = kind.primitive_bitwidth == 16  # for which there is a compare and swap alone
    held = atomic_cas(address, 0, 0, sem, scope) if narrow else atomic_or(address, 0, mask, sem, scope)
    return reread(held, kind)


@member
@builtin
def atomic_store(pointer: Any, value: Any, mask: Any = None, sem: str | None = None, scope: str | None = None) -> None:
    """Write ``value`` as one step with an order ("release" by default): numbers of 32 or 64 bits."""
    atomic_xchg(pointer, value, mask, unwrap(sem) or "release", scope)


def _as_integers(pointer: Any, name: str, least: int = 32) -> tuple[tensor, Any]:
    """A pointer to the integers of as many bits as its elements, ``least`` or more, and their type."""
    address = pointer_operand(pointer, name)
    element = address.dtype.element_ty
    if element.is_ptr() or element.primitive_bitwidth < least:
        raise errors.atomic_type(name, element)
    return convert(address, pointer_type(get_int_dtype(element.primitive_bitwidth, True))), element


__all__ = [
    "atomic_add",
    "atomic_and",
    "atomic_cas",
    "atomic_load",
    "atomic_max",
    "atomic_min",
    "atomic_or",
    "atomic_store",
    "atomic_xchg",
    "atomic_xor",
]
