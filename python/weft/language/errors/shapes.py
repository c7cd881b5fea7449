# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Shapes and axes."""

from __future__ import annotations

from typing import Any

from .entry import KernelError, numbered, shape_of, type_of


@numbered(301)
def not_broadcastable(a: tuple[int, ...], b: tuple[int, ...], axis: int, x: int, y: int) -> KernelError:
    """Two shapes differ on an axis on which neither is 1."""
    remedy = f"axis {axis} is {x} on the left and {y} on the right; sizes must be equal or 1"
    if len(a) == len(b) == 1:
        remedy += ", so index one with [:, None] and the other with [None, :] to combine every pair"
    return KernelError(f"expected shapes that broadcast together, but got {shape_of(a)} and {shape_of(b)}", remedy)


@numbered(302)
def cannot_broadcast_to(source: tuple[int, ...], target: tuple[int, ...]) -> KernelError:
    """A block cannot be repeated to the shape that was asked for."""
    return KernelError(
        f"expected a shape that broadcasts to {shape_of(target)}, but got {shape_of(source)}",
        "only axes of size 1 are repeated; add them with [:, None]",
    )


@numbered(304)
def too_many_elements(what: str, shape: tuple[int, ...], elements: int, most: int) -> KernelError:
    """A block is larger than the registers of a program can hold."""
    return KernelError(
        f"expected at most {most} elements for {what}, but got {elements} in {shape_of(shape)}",
        "use smaller blocks and a loop",
    )


@numbered(305)
def empty_range(first: int, last: int) -> KernelError:
    """wl.arange was given an end that is not after its start."""
    return KernelError(
        f"expected the end of arange to be greater than its start, but got {first} and {last}",
        "write wl.arange(0, SIZE)",
    )


@numbered(306)
def not_constant(what: str, value: Any) -> KernelError:
    """A size, an axis or the like must be known when the kernel is compiled, and comes from a run-time value."""
    return KernelError(
        f"expected {what} to be a constant integer, but got {type_of(value)}"
        if "condition" not in what
        else f"expected {what} to be a constant, but got {type_of(value)}",
        "annotate the parameter it comes from with wl.constexpr, or assign it with ': wl.constexpr ='",
    )


@numbered(307)
def axis_out_of_range(what: str, axis: int, rank: int) -> KernelError:
    """The block has no such axis."""
    return KernelError(
        f"expected an axis of {what} from {-rank} to {rank - 1}, but got {axis}",
        "axes count from 0, and from -1 backwards",
        "axis",
    )


@numbered(308)
def grid_axis(operation: str, axis: int) -> KernelError:
    """program_id and num_programs know the axes 0, 1 and 2 of a grid."""
    return KernelError(
        f"expected 0, 1 or 2 for the axis of {operation}, but got {axis}", "a grid has three axes", "axis"
    )


@numbered(309)
def element_count(operation: str, source: tuple[int, ...], target: tuple[int, ...]) -> KernelError:
    """A reshape keeps every element, so both shapes have as many."""
    return KernelError(
        f"expected a shape with as many elements as {shape_of(source)} for '{operation}', but got {shape_of(target)}",
        "the sizes must multiply to the same number",
    )


@numbered(310)
def not_a_permutation(order: list[int], rank: int) -> KernelError:
    """The order of axes names one twice, or leaves one out."""
    return KernelError(
        f"expected each of the axes 0 to {rank - 1} once, but got {shape_of(order)}", "name every axis once"
    )


@numbered(311)
def rank_too_small(operation: str, value: Any, rank: int) -> KernelError:
    """The operation goes along an axis that the value has not."""
    axes = "axis" if rank == 1 else "axes"
    message = f"expected a block with at least {rank} {axes} for '{operation}', but got {type_of(value)}"
    return KernelError(
        message, "insert an axis with [:, None]" if value.shape else "a scalar has no axes; build a block with wl.full"
    )


@numbered(312)
def last_axis_of_two(operation: str, value: Any) -> KernelError:
    """'split' takes apart what 'join' put together: a last axis of size 2."""
    return KernelError(
        f"expected a block whose last axis has size 2 for '{operation}', but got {type_of(value)}", "reshape it first"
    )


@numbered(313)
def gather_shapes(source: Any, index: Any, axis: int) -> KernelError:
    """The index of a gather picks along one axis, and has the size of the block on all others."""
    return KernelError(
        f"expected an index with the shape of what it picks from but along axis {axis}, "
        f"but got {shape_of(index.shape)} for {shape_of(source.shape)}",
        "broadcast the index along the other axes with wl.broadcast_to",
        "index",
    )


@numbered(314)
def unsupported_index(value: Any) -> KernelError:
    """A block was indexed as an array: elements of a block lie in the registers of many threads."""
    return KernelError(
        "expected only ':' and None between the brackets of a block, but got something else",
        "a block has no elements to pick out: select with wl.where and reduce, or load what you need through a pointer",
    )


@numbered(315)
def too_many_indices(value: Any, count: int) -> KernelError:
    """There are more colons between the brackets than the block has axes."""
    return KernelError(
        f"expected at most {len(value.shape)} ':' for {type_of(value)}, but got {count}", "write one ':' for each axis"
    )


@numbered(316)
def hint_values(operation: str, values: list[int], value: Any) -> KernelError:
    """multiple_of, max_contiguous and max_constancy take one positive number for each axis."""
    return KernelError(
        f"expected one positive number an axis for '{operation}' of {type_of(value)}, but got {shape_of(values)}",
        "give a number for a block of one axis, a tuple for more",
        "values",
    )


@numbered(317)
def top_count(count: int, size: int) -> KernelError:
    """An axis has no more of its best elements than it has elements."""
    return KernelError(
        f"expected 'k' of 'topk' to be from 1 to {size}, but got {count}",
        "take as many as the axis has, or fewer",
        "k",
    )


@numbered(318)
def not_one(size: int, axis: int) -> KernelError:
    """Only an axis of size 1 can be left out."""
    return KernelError(
        f"expected axis {axis} of 'squeeze' to have size 1, but got {size}",
        "reduce along it, or reshape the block",
        "dim",
    )


@numbered(319)
def empty_axis(what: str, size: int, shape: tuple[int, ...]) -> KernelError:
    """A block has at least one element along each axis."""
    return KernelError(
        f"expected sizes of at least 1 for {what}, but got {size} in {shape_of(shape)}",
        "leave out what is done with the block where it has no elements",
    )
