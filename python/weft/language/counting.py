# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Functions made of others: ``histogram``, ``swizzle2d``, ``map_elementwise``, ``to_tensor``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from . import errors
from .casts import convert
from .combine import to_scalar
from .emit import builtin, current
from .literals import to_tensor as as_tensor
from .maths import minimum
from .operators import add, compare, floordiv, logical_and, mod, mul, sub
from .promotion import broadcast_all, broadcast_to_shape
from .shapes import constant_int, constant_shape, expand_dims
from .types import int32, unwrap
from .value import member, tensor


@builtin
def to_tensor(value: Any) -> tensor:
    """A number as a scalar; a tensor as it is."""
    return as_tensor(value)


@member
@builtin
def histogram(input: Any, num_bins: int, mask: Any = None) -> tensor:
    """How many elements of a block have each of the values 0 to ``num_bins`` - 1, where ``mask`` is true; int32
    [num_bins].

    Other values are not counted (they are undefined in Triton). Counters are in shared memory, 4 bytes each.
    """
    value = as_tensor(input, "the argument of 'histogram'")
    if not value.dtype.is_int() or value.dtype.is_bool():
        raise errors.needs_integers("histogram", value.dtype, "cast it with .to(wl.int32)")
    if not value.shape:
        value = expand_dims(value, 0)
    result = int32.with_shape(constant_shape((num_bins,), "'num_bins' of 'histogram'"))
    operands = []
    if unwrap(mask) is not None:
        operands.append(broadcast_to_shape(as_tensor(mask, "the mask of 'histogram'"), value.shape))
    if value.dtype.primitive_bitwidth == 64:  # what does not fit 32 bits is no bin
        fits = logical_and(compare(">=", value, 0), compare("<", value, result.numel))
        operands = [logical_and(operands[0], fits) if operands else fits]
    operands.insert(0, convert(value, int32))
    return tensor(current().op("tile.histogram", [each.handle for each in operands], [result]), result)


@builtin
def swizzle2d(i: Any, j: Any, size_i: Any, size_j: Any, size_g: Any) -> tuple[Any, Any]:
    """The place of program (i, j) of a grid of size_i by size_j when rows are taken in groups of ``size_g``, each group
    column by column, so that programs that run together share what they read."""
    number = add(mul(i, size_j), j)
    in_group = mul(size_g, size_j)
    first = mul(floordiv(number, in_group), size_g)
    height = minimum(sub(size_i, first), size_g)
    rest = mod(number, in_group)
    return add(first, mod(rest, height)), floordiv(rest, height)


@builtin
def map_elementwise(scalar_fn: Callable[..., Any], *args: Any, pack: int = 1) -> Any:
    """A function of scalars for every element of blocks, which broadcast together: a block for each number that the
    function returns, in a tuple where it returns a tuple.

    The function may branch and loop by its arguments; it reads and writes no memory. With ``pack`` it is given that
    many elements of the first block, then of the second and so on, and returns as many of each result; which elements
    come together is not specified.

        sums = wl.map_elementwise(plus, wl.load(x + at), wl.load(y + at))    # plus: a @weft.jit function of two scalars
    """
    values = broadcast_all([as_tensor(each, "an argument of 'map_elementwise'") for each in args])
    if not values:
        raise errors.blocks_wanted("map_elementwise")
    shape, count = values[0].shape, constant_int(pack, "'pack' of 'map_elementwise'")
    builder = current()
    if not shape and count == 1:
        return builder.call(scalar_fn, values, {})
    values = [value if shape else expand_dims(value, 0) for value in values]
    with builder.region([value.dtype for value in values for _ in range(count)]) as region:
        arguments = [tensor(region.argument(i), values[i // count].dtype) for i in range(count * len(values))]
        returned = builder.call(scalar_fn, arguments, {})
        alone = not isinstance(returned, tuple)
        scalars = [
            as_tensor(each, "what the function of 'map_elementwise' returns")
            for each in ((returned,) if alone else returned)
        ]
        _check_packs(scalars, count)
        builder.op("tile.yield", [each.handle for each in scalars])
    types = [each.dtype.with_shape(values[0].shape) for each in scalars[::count]]
    attributes = {"pack": builder.i32(count)}
    made = builder.op("tile.map", [value.handle for value in values], types, attributes, [region])
    results = tuple(
        tensor(handle, kind) for handle, kind in zip(made if len(types) > 1 else (made,), types, strict=True)
    )
    if not shape:
        results = tuple(to_scalar(each) for each in results)
    return results[0] if len(results) == 1 and (alone or count > 1) else results


def _check_packs(scalars: list[tensor], count: int) -> None:
    """Whether what a function returns for ``count`` elements is that many scalars of one type for each result."""
    if not scalars or len(scalars) % count:
        raise errors.pack_count("map_elementwise", count, len(scalars))
    for i, each in enumerate(scalars):
        first = scalars[i - i % count]
        if each.shape or each.type != first.type:
            raise errors.pack_type("map_elementwise", first.dtype, each)


__all__ = ["histogram", "map_elementwise", "swizzle2d", "to_tensor"]
