# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Making blocks, and moving their elements: ranges, constants, reshapes, axes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from . import errors
from .casts import convert, reread
from .combine import to_scalar
from .emit import builtin, current
from .literals import bits_constant, is_number, scalar_constant, to_tensor
from .promotion import broadcast_pair, broadcast_to_shape, operands
from .types import dtype, int8, int32, unwrap
from .value import attach, member, tensor

MAX_ELEMENTS = 1 << 20


def constant_int(value: Any, what: str) -> int:
    """An integer known at compile time."""
    value = unwrap(value)
    known = value.constant if isinstance(value, tensor) else value
    if isinstance(known, bool) or not isinstance(known, int):
        raise errors.not_constant(what, value)
    return known


def constant_shape(shape: Any, what: str) -> tuple[int, ...]:
    """A shape known at compile time, of at most 2^20 elements."""
    shape = unwrap(shape)
    sizes = tuple(
        constant_int(s, f"a size in {what}") for s in (shape if isinstance(shape, (tuple, list)) else (shape,))
    )
    elements = 1
    for size in sizes:
        if size < 1:
            raise errors.empty_axis(what, size, sizes)
        elements *= size
    if elements > MAX_ELEMENTS:
        raise errors.too_many_elements(what, sizes, elements, MAX_ELEMENTS)
    return sizes


def is_power_of_two(size: int) -> bool:
    """Whether halving leads to 1."""
    return size & (size - 1) == 0


def _sizes(shape: tuple[Any, ...]) -> Any:
    """``f(x, 2, 3)`` and ``f(x, (2, 3))`` mean the same."""
    if len(shape) == 1 and isinstance(unwrap(shape[0]), (tuple, list)):
        return unwrap(shape[0])
    return shape


@builtin
def arange(start: Any, end: Any) -> tensor:
    """The integers from start to end - 1 as int32 [end - start]; both constant.

    tile = wl.arange(0, 64)[:, None] * N + wl.arange(0, 32)[None, :]
    """
    first, last = constant_int(start, "the start of arange"), constant_int(end, "the end of arange")
    length = last - first
    if length < 1:
        raise errors.empty_range(first, last)
    if length > MAX_ELEMENTS:
        raise errors.too_many_elements("arange", (length,), length, MAX_ELEMENTS)
    builder, result = current(), int32.with_shape((length,))
    return tensor(
        builder.op("tile.make_range", [], [result], {"start": builder.i32(first), "end": builder.i32(last)}), result
    )


@builtin
def full(shape: Any, value: Any, dtype: dtype) -> tensor:
    """A block of constant ``shape`` filled with a number or a scalar, cast to ``dtype``."""
    element, value = unwrap(dtype), unwrap(value)
    if not hasattr(element, "is_floating"):
        raise errors.expected_dtype("full", element)
    sizes = constant_shape(shape, "the shape of full")
    if is_number(value):
        scalar = bits_constant(value if element.is_floating() else int(value), element)
    else:
        scalar = to_tensor(value, "the value of 'full'")
        if scalar.shape:
            raise errors.expected_scalar("the value of 'full'", scalar)
        scalar = convert(scalar, element)
    return broadcast_to_shape(scalar, sizes)


@builtin
def zeros(shape: Any, dtype: dtype) -> tensor:
    """A block of constant ``shape`` filled with 0."""
    return full(shape, 0, dtype)


@member
@builtin
def zeros_like(input: tensor) -> tensor:
    """A block of 0 with the shape and type of another."""
    value = to_tensor(input, "the argument of 'zeros_like'")
    return full(value.shape, 0, value.dtype) if value.shape else scalar_constant(0, value.dtype)


@builtin
def full_like(input: tensor, value: Any) -> tensor:
    """A block filled with a number or scalar, with the shape and type of another."""
    like = to_tensor(input, "the argument of 'full_like'")
    return full(like.shape, value, like.dtype)


def normalised_axis(axis: Any, rank: int, what: str) -> int:
    """An axis counted from the front; negative ones count from the back."""
    index = constant_int(axis, f"the axis of {what}")
    if not -rank <= index < rank:
        raise errors.axis_out_of_range(what, index, rank)
    return index % rank


@member
@builtin
def expand_dims(input: tensor, axis: Any) -> tensor:
    """The block with an axis of size 1 inserted at ``axis``, or at each axis of a tuple; ``x[:, None]`` means the
    same.
    """
    value = to_tensor(input, "the argument of 'expand_dims'")
    axis = unwrap(axis)
    axes = axis if isinstance(axis, (tuple, list)) else (axis,)
    rank = len(value.shape) + len(axes)
    builder = current()
    for index in sorted(normalised_axis(a, rank, "expand_dims") for a in axes):
        shape = (*value.shape[:index], 1, *value.shape[index:])
        if value.shape:
            result = value.dtype.with_shape(shape)
            value = tensor(
                builder.op("tile.expand_dims", [value.handle], [result], {"axis": builder.i32(index)}), result
            )
        else:
            value = broadcast_to_shape(value, (1,))
    return value


@member
@builtin
def unsqueeze(x: tensor, dim: Any) -> tensor:
    """As :func:`expand_dims`."""
    return expand_dims(x, dim)


@member
@builtin
def item(input: tensor) -> tensor:
    """The one element of a block, as a scalar.

    total = wl.sum(wl.load(x + at), 0, keep_dims=True).item()
    """
    value = to_tensor(input, "the argument of 'item'")
    if value.numel != 1:
        raise errors.element_count("item", value.shape, ())
    if value.dtype.primitive_bitwidth == 8 and value.dtype.is_floating():
        return reread(_reshaped(reread(value, int8), ()), value.dtype)
    return _reshaped(value, ())


@member
@builtin
def squeeze(x: tensor, dim: Any) -> tensor:
    """The block without the axis ``dim``, whose size must be 1."""
    value = to_tensor(x, "the argument of 'squeeze'")
    axis = normalised_axis(dim, len(value.shape), "squeeze")
    if value.shape[axis] != 1:
        raise errors.not_one(value.shape[axis], axis)
    return _reshaped(value, (*value.shape[:axis], *value.shape[axis + 1 :]))


@member
@builtin
def broadcast_to(input: tensor, *shape: Any) -> tensor:
    """The block repeated along its axes of size 1 to a constant shape."""
    return broadcast_to_shape(to_tensor(input), constant_shape(_sizes(shape), "the shape of broadcast_to"))


@builtin
def broadcast(input: tensor, other: tensor) -> tuple[tensor, tensor]:
    """Both blocks in their common shape."""
    return broadcast_pair(to_tensor(input), to_tensor(other))


@member
@builtin
def reshape(input: tensor, *shape: Any, can_reorder: bool = False) -> tensor:
    """The same elements in row-major order under a constant shape of as many elements; a size of -1 is worked out."""
    value = to_tensor(input, "the argument of 'reshape'")
    wanted = [constant_int(s, "a size in the shape of reshape") for s in _sizes(shape)]
    if wanted.count(-1) == 1:
        known = 1
        for size in wanted:
            known *= size if size != -1 else 1
        wanted[wanted.index(-1)] = value.numel // known if known else 0
    sizes = constant_shape(tuple(wanted), "the shape of reshape")
    elements = 1
    for size in sizes:
        elements *= size
    if elements != value.numel:
        raise errors.element_count("reshape", value.shape, sizes)
    return _reshaped(value, sizes)


def _reshaped(value: tensor, shape: tuple[int, ...]) -> tensor:
    if value.shape == shape:
        return value
    if not value.shape:
        return broadcast_to_shape(value, shape)
    result = value.dtype.with_shape(shape)
    if not shape:
        return to_scalar(value)
    return tensor(current().op("tile.reshape", [value.handle], [result]), result)


@member
@builtin
def view(input: tensor, *shape: Any) -> tensor:
    """As :func:`reshape`."""
    return reshape(input, *shape)


@member
@builtin
def ravel(x: tensor, can_reorder: bool = False) -> tensor:
    """The elements in row-major order along one axis."""
    value = to_tensor(x, "the argument of 'ravel'")
    return _reshaped(value, (value.numel,))


@member
@builtin
def permute(input: tensor, *dims: Any) -> tensor:
    """The axes reordered: axis i of the result is axis dims[i] of the input."""
    value = to_tensor(input, "the argument of 'permute'")
    order = [normalised_axis(d, len(value.shape), "permute") for d in _sizes(dims)]
    if sorted(order) != list(range(len(value.shape))):
        raise errors.not_a_permutation(order, len(value.shape))
    result = value.dtype.with_shape(value.shape[i] for i in order)
    builder = current()
    return tensor(builder.op("tile.permute", [value.handle], [result], {"order": builder.i32_array(order)}), result)


@member
@builtin
def trans(input: tensor, *dims: Any) -> tensor:
    """The block with its last two axes swapped, or its axes in the order ``dims``; ``x.T`` swaps two axes."""
    if dims:
        return permute(input, *dims)
    value = to_tensor(input, "the argument of 'trans'")
    rank = len(value.shape)
    if rank < 2:
        raise errors.rank_too_small("trans", value, 2)
    return permute(value, (*range(rank - 2), rank - 1, rank - 2))


@member
@builtin
def join(a: Any, b: Any) -> tensor:
    """Two blocks of one shape along a new last axis of size 2; they broadcast together.

    pairs = wl.join(wl.load(x + at), wl.load(y + at))    # [64, 2]
    """
    a, b = operands("join", a, b, pointers=(True, True))
    scalars = not a.shape
    if scalars:
        a, b = broadcast_to_shape(a, (1,)), broadcast_to_shape(b, (1,))
    result = a.dtype.with_shape((*a.shape, 2))
    joined = tensor(current().op("tile.join", [a.handle, b.handle], [result]), result)
    return _reshaped(joined, (2,)) if scalars else joined


@member
@builtin
def split(a: tensor) -> tuple[tensor, tensor]:
    """The two halves of a block whose last axis has size 2, without that axis."""
    value = to_tensor(a, "the argument of 'split'")
    if not value.shape or value.shape[-1] != 2:
        raise errors.last_axis_of_two("split", value)
    scalars = len(value.shape) == 1
    if scalars:
        value = _reshaped(value, (1, 2))
    result = value.dtype.with_shape(value.shape[:-1])
    left, right = (tensor(h, result) for h in current().op("tile.split", [value.handle], [result, result]))
    return (_reshaped(left, ()), _reshaped(right, ())) if scalars else (left, right)


@member
@builtin
def gather(src: tensor, index: tensor, axis: Any) -> tensor:
    """The elements that ``index`` names along ``axis``: result[i, j] = src[index[i, j], j] for axis 0.

    ``index`` is a block of integers with the shape of ``src`` but for its size along ``axis``, and gives the result's
    shape. An index outside of the axis gives any value.

        last = wl.gather(wl.load(x + at), 63 - at, 0)
    """
    value = to_tensor(src, "the first argument of 'gather'")
    where = to_tensor(index, "the index of 'gather'")
    if not value.shape:
        raise errors.rank_too_small("gather", value, 1)
    if not where.dtype.is_int() or where.dtype.is_bool():
        raise errors.needs_integers("the index of gather", where.dtype, "cast it with .to(wl.int32)")
    along = normalised_axis(axis, len(value.shape), "gather")
    besides = [size for i, size in enumerate(value.shape) if i != along]
    if len(where.shape) != len(value.shape) or [s for i, s in enumerate(where.shape) if i != along] != besides:
        raise errors.gather_shapes(value, where, along)
    where = convert(where, int32)
    result = value.dtype.with_shape(where.shape)
    builder = current()
    return tensor(
        builder.op("tile.gather", [value.handle, where.handle], [result], {"axis": builder.i32(along)}), result
    )


@builtin
def interleave(a: Any, b: Any) -> tensor:
    """The elements of two blocks taken in turns along the last axis."""
    joined = join(a, b)
    shape = joined.shape
    return _reshaped(joined, (*shape[:-2], shape[-2] * 2)) if len(shape) > 1 else joined


@builtin
def cat(input: Any, other: Any, can_reorder: bool = False, dim: int = 0) -> tensor:
    """Two blocks of one shape, one after the other along an axis."""
    joined = join(input, other)
    rank = len(joined.shape) - 1
    axis = normalised_axis(dim, rank, "cat")
    ordered = permute(joined, (*range(axis), rank, *range(axis, rank)))
    shape = ordered.shape
    return _reshaped(ordered, (*shape[:axis], 2 * shape[axis + 1], *shape[axis + 2 :]))


def index(value: tensor, slices: Any) -> tensor:
    """``x[:, None]``: whole axes and new ones."""
    items: Sequence[Any] = slices if isinstance(slices, tuple) else (slices,)
    whole = slice(None)
    if any(item is not None and item != whole for item in items if not isinstance(item, tensor)) or any(
        isinstance(i, tensor) for i in items
    ):
        raise errors.unsupported_index(value)
    kept = sum(item == whole for item in items)
    if kept > len(value.shape) and value.shape:  # of a scalar, as in Triton, they name no axis
        raise errors.too_many_indices(value, kept)
    scalar = not value.shape
    for axis, item in enumerate(items):
        if item is None:
            value = expand_dims(value, min(axis, len(value.shape)) if scalar else axis)
    return value


attach("__getitem__", index)
attach("T", property(trans, doc="The block with its last two axes swapped."))
