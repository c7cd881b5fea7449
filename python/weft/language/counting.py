# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Functions made of others: ``histogram``, ``swizzle2d``, ``map_elementwise``, ``to_tensor``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from . import errors
from .casts import convert
from .emit import builtin, current
from .literals import to_tensor as as_tensor
from .maths import minimum
from .operators import add, compare, floordiv, logical_and, mod, mul, sub
from .promotion import broadcast_pair, broadcast_to_shape
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
    """A function of scalars over the elements of blocks, which broadcast together: one block, or a tuple of them.

    The function is applied to the blocks, so it may use what works element by element, and wl.where, but no ``if`` of
    its arguments. ``pack`` must be 1.
    """
    if constant_int(pack, "'pack' of 'map_elementwise'") != 1:
        raise errors.unsupported_option("pack", unwrap(pack), "1")
    values = [as_tensor(each, "an argument of 'map_elementwise'") for each in args]
    for k in range(len(values)):
        for other in range(len(values)):
            values[k], values[other] = broadcast_pair(values[k], values[other])
    return current().call(scalar_fn, values, {})


__all__ = ["histogram", "map_elementwise", "swizzle2d", "to_tensor"]
