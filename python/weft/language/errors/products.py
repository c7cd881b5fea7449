# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Matrix products, reductions and scans."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ..types import describe, dtype
from .entry import KernelError, numbered, shape_of, type_of


@numbered(501)
def dot_rank(what: str, value: Any) -> KernelError:
    """'dot' multiplies matrices, and got an operand of another number of axes."""
    return KernelError(
        f"expected {what} of 'dot' to have two axes, or three for a batch, but got {type_of(value)}",
        "make a matrix of it with [:, None] or wl.reshape",
    )


@numbered(502)
def dot_type(what: str, value: Any) -> KernelError:
    """'dot' was given elements that matrix instructions do not multiply."""
    return KernelError(
        f"expected {what} of 'dot' to be fp16, bf16, fp32, fp64, an 8-bit float or int8, but got {type_of(value)}",
        "convert it with .to(wl.float16)",
    )


@numbered(503)
def dot_types_differ(a: Any, b: Any) -> KernelError:
    """The operands of 'dot' have elements of two types."""
    return KernelError(
        f"expected both operands of 'dot' to have one type, but got {type_of(a)} and {type_of(b)}",
        f"convert one, for example with .to(wl.{b.dtype})"
        if str(b.dtype).startswith("int")
        else "convert one with .to(other.dtype)",
    )


@numbered(504)
def dot_shapes(a: Any, b: Any) -> KernelError:
    """The inner sizes of the operands of 'dot' differ, or those of their batches."""
    swapped = a.shape[-1] == b.shape[-1]
    return KernelError(
        f"expected [M, K] and [K, N] for 'dot', but got {type_of(a)} and {type_of(b)}",
        f"K is {a.shape[-1]} on the left and {b.shape[-2]} on the right"
        + ("; transpose the second operand with wl.trans" if swapped else ""),
    )


@numbered(506)
def dot_accumulator(value: Any, wanted: Any) -> KernelError:
    """'acc' is what the product is added to, and has its shape and its type."""
    return KernelError(
        f"expected 'acc' of 'dot' to be {describe(wanted)}, but got {type_of(value)}",
        f"start from wl.zeros({shape_of(wanted.shape)}, ...)",
        "acc",
    )


@numbered(507)
def dot_result_type(operand: dtype, wanted: dtype, allowed: Iterable[dtype]) -> KernelError:
    """Matrix instructions add products of these operands up in certain types only."""
    names = " or ".join(map(str, allowed))
    return KernelError(
        f"expected {names} for the result of 'dot' of {operand}, but got {wanted}",
        "convert the result with .to(...)",
        "out_dtype",
    )


@numbered(508)
def input_shapes(operation: str, a: Any, b: Any) -> KernelError:
    """Blocks that are reduced or scanned together have one shape."""
    return KernelError(
        f"expected blocks of one shape for '{operation}', but got {type_of(a)} and {type_of(b)}",
        "broadcast them first",
    )


@numbered(509)
def combine_count(operation: str, wanted: int, got: int) -> KernelError:
    """The combine function of a reduction or scan gives another number of values than there are blocks."""
    return KernelError(
        f"expected the combine function of '{operation}' to return {wanted} values, but got {got}",
        "it takes two elements of each block, and gives one of each",
        "combine_fn",
    )


@numbered(510)
def combine_type(operation: str, wanted: dtype, got: Any) -> KernelError:
    """The combine function of a reduction or scan changes the type of an element."""
    return KernelError(
        f"expected the combine function of '{operation}' to return {wanted}, but got {type_of(got)}",
        "convert inside it with .to(...)",
        "combine_fn",
    )


@numbered(511)
def scale_shape(name: str, scale: Any, operand: Iterable[int]) -> KernelError:
    """Scales of 'dot_scaled' have a row for each row of the left operand, or column of the right one, and divide K into
    groups."""
    *rows, inner = operand
    return KernelError(
        f"expected '{name}' of shape [{', '.join(map(str, rows))}, {inner} / group], but got {type_of(scale)}",
        "one scale for every group of neighbours along K; scales of the right operand are not transposed",
        name,
    )


@numbered(512)
def scaled_type(name: str, wanted: str, value: Any) -> KernelError:
    """The bits of an operand of 'dot_scaled' are not those of its format."""
    return KernelError(
        f"expected '{name}' of 'dot_scaled' to have elements of {wanted}, but got {type_of(value)}",
        "name the format that the operand has, or convert it",
        name,
    )


@numbered(513)
def blocks_wanted(operation: str) -> KernelError:
    """A function of blocks is given none."""
    return KernelError(f"expected '{operation}' to be given a block at least, but got none", "give it a block after fn")


@numbered(514)
def pack_count(operation: str, pack: int, got: int) -> KernelError:
    """The function of 'map_elementwise' returns no number, or not as many as elements for each result."""
    return KernelError(
        f"expected the function of '{operation}' to return {pack} scalars for each result, but got {got} in all",
        "return the first result of every element, then the second of every one, and so on",
        "scalar_fn",
    )


@numbered(515)
def pack_type(operation: str, wanted: dtype, got: Any) -> KernelError:
    """The function of 'map_elementwise' returns a block, or elements of one result in several types."""
    return KernelError(
        f"expected the function of '{operation}' to return scalars, here of {wanted}, but got {type_of(got)}",
        "convert inside it with .to(...)",
        "scalar_fn",
    )
