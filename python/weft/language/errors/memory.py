# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Pointers and accesses."""

from __future__ import annotations

from typing import Any

from ..types import dtype
from .entry import KernelError, numbered, shape_of, type_of


@numbered(401)
def pointer_operand(operation: str, a: dtype, b: dtype) -> KernelError:
    """A pointer was added to a float or to another pointer, or computed with as if it were a number."""
    if operation in ("+", "-") and (a.is_floating() or b.is_floating()):
        remedy = "a pointer moves by whole elements: use integers, for example offsets.to(wl.int32)"
    elif operation == "+":
        remedy = "add an integer offset to one pointer"
    else:
        remedy = "load the values first with wl.load"
    return KernelError(f"expected operands that '{operation}' takes, but got {a} and {b}", remedy)


@numbered(402)
def expected_pointer(operation: str, value: Any) -> KernelError:
    """A load, a store or an atomic was given a number where an address is needed."""
    return KernelError(
        f"expected a pointer for '{operation}', but got {type_of(value)}",
        "add offsets to a pointer argument: wl.load(x + offsets)",
        "pointer",
    )


@numbered(403)
def pointer_cast(source: dtype, target: dtype) -> KernelError:
    """A pointer is converted from or to a type that does not hold an address."""
    return KernelError(
        f"expected an integer of 64 bits or a pointer to convert with a pointer, but got {source} and {target}",
        "addresses are 64-bit integers: convert with .to(wl.int64) first",
    )


@numbered(404)
def block_with_scalar_pointer(operation: str, argument: str, value: Any) -> KernelError:
    """The pointer is one address, but the mask or the value beside it is a block."""
    return KernelError(
        f"expected '{argument}' of '{operation}' to be a scalar, as the pointer is, but got {type_of(value)}",
        "add a block of offsets to the pointer, for example pointer + wl.arange(0, BLOCK)",
        argument,
    )


@numbered(405)
def not_pointer_shape(operation: str, argument: str, value: Any, pointer: Any) -> KernelError:
    """The mask, the value or the default of an access has another shape than its pointers."""
    return KernelError(
        f"expected '{argument}' of '{operation}' to broadcast to the pointers' shape "
        f"{shape_of(pointer.shape)}, but got {type_of(value)}",
        "build the pointers, the mask and the value from the same offsets",
        argument,
    )


@numbered(406)
def expected_mask(operation: str, value: Any) -> KernelError:
    """A mask is a truth for each element, and got numbers."""
    return KernelError(
        f"expected 'mask' of '{operation}' to be int1, but got {type_of(value)}",
        "compare to make one: offsets < n",
        "mask",
    )


@numbered(407)
def other_without_mask() -> KernelError:
    """'other' says what a load gives where its mask is false, but there is no mask."""
    return KernelError(
        "expected a mask beside 'other' of 'load', but got none",
        "'other' stands where the mask is false: add mask=..., or drop other",
        "other",
    )


@numbered(408)
def element_type(operation: str, argument: str, value: Any, element: dtype) -> KernelError:
    """A pointer is stored where a number belongs, or a number where a pointer does."""
    remedy = "load the value that the pointer points to first" if value.dtype.is_ptr() else "pass a pointer"
    return KernelError(
        f"expected '{argument}' of '{operation}' to be {element}, which the pointer points to, but "
        f"got {type_of(value)}",
        remedy,
        argument,
    )


@numbered(409)
def store_to_constant(pointer: dtype) -> KernelError:
    """The parameter was declared as a pointer to constants, which nothing is stored through."""
    return KernelError(
        f"expected a pointer that may be written through, but got {pointer}",
        "drop 'const' from the parameter's annotation, or the 'k' from its type in the signature",
        "pointer",
    )


@numbered(410)
def needs_block_pointer(operation: str) -> KernelError:
    """boundary_check and padding_option are for block pointers, which know the array's shape."""
    return KernelError(
        f"expected no 'boundary_check' or 'padding_option' for '{operation}' of plain pointers, but got one",
        "use mask= and other=, or make a block pointer with wl.make_block_ptr",
        "boundary_check",
    )


@numbered(411)
def atomic_type(operation: str, got: dtype) -> KernelError:
    """The machine has no atomic operation of that kind on elements of this type (PTX ISA, atom)."""
    return KernelError(
        f"expected a type that '{operation}' takes, but got {got}",
        "elements of 32 and 64 bits do, floats of 16 for 'atomic_add', and all of 16 for 'atomic_cas' and, without a "
        "mask, 'atomic_load': hold others in int32 or float32, or combine in a loop around 'atomic_cas'",
        "pointer",
    )


@numbered(412)
def block_pointer_numbers(operation: str, what: str, value: Any) -> KernelError:
    """Shapes, strides and offsets of a block pointer are single integers, one for each axis."""
    return KernelError(
        f"expected integers for '{what}' of '{operation}', but got {type_of(value)}",
        "pass a tuple of integers or scalars, one an axis; a block pointer makes the ranges itself",
        what,
    )


@numbered(413)
def block_pointer_rank(operation: str, what: str, got: int, rank: int) -> KernelError:
    """Shape, strides, offsets and block shape of a block pointer have one number for each axis."""
    return KernelError(
        f"expected {rank} numbers for '{what}' of '{operation}', one for each axis of the block, but got {got}",
        "give one for each axis",
        what,
    )


@numbered(414)
def expected_block_pointer(operation: str, value: Any) -> KernelError:
    """The function moves block pointers, and was given something else."""
    return KernelError(
        f"expected a block pointer for '{operation}', but got {type_of(value)}",
        "make one with wl.make_block_ptr; plain pointers move by adding: pointer + offsets",
        "base",
    )


@numbered(415)
def mask_of_block_pointer(operation: str, argument: str) -> KernelError:
    """A block pointer knows the array's bounds: masks are for plain pointers."""
    return KernelError(
        f"expected no '{argument}' for '{operation}' of a block pointer, but got one",
        'use boundary_check=(axis, ...) and padding_option="zero"',
        argument,
    )


@numbered(416)
def gathered_rows(operation: str, block_shape: tuple[int, ...], rows: Any) -> KernelError:
    """Rows are gathered and scattered by a descriptor of two axes whose blocks are one row, at a vector of integers."""
    return KernelError(
        f"expected blocks of one row and a vector of rows for '{operation}', but got blocks of {shape_of(block_shape)} "
        f"and {type_of(rows)}",
        "make a descriptor with block_shape=[1, columns], and give the rows' indices as one vector of integers",
        "rows",
    )
