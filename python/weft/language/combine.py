# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Elements of blocks combined by a function: the region that does, and the reduction along an axis."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from . import errors
from .emit import current
from .literals import to_tensor
from .operators import add, or_
from .types import dtype
from .value import tensor

Combine = Callable[..., Any]


def combiner(combine: Combine, types: Sequence[dtype], name: str) -> Any:
    """The region that combines two elements: ``combine`` applied to scalars."""
    builder = current()
    count = len(types)
    with builder.region([*types, *types]) as region:
        arguments = [tensor(region.argument(i), types[i % count]) for i in range(2 * count)]
        result = builder.call(combine, arguments, {})
        results = result if isinstance(result, tuple) else (result,)
        if len(results) != count:
            raise errors.combine_count(name, count, len(results))
        results = tuple(to_tensor(r, f"what the combine function of '{name}' returns") for r in results)
        for wanted, got in zip(types, results, strict=True):
            if got.type != wanted:
                raise errors.combine_type(name, wanted, got)
        builder.op("tile.yield", [r.handle for r in results])
    return region


def reduced(inputs: Sequence[tensor], axis: int, combine: Combine, name: str) -> tuple[tensor, ...]:
    """tile.reduce: blocks of one shape reduced together along ``axis``, counted from the front, which is dropped."""
    shape = tuple(s for i, s in enumerate(inputs[0].shape) if i != axis)
    region = combiner(combine, [v.dtype for v in inputs], name)
    builder = current()
    types = [v.dtype.with_shape(shape) for v in inputs]
    made = builder.op("tile.reduce", [v.handle for v in inputs], types, {"axis": builder.i32(axis)}, [region])
    return tuple(tensor(handle, t) for handle, t in zip(made if len(types) > 1 else (made,), types, strict=True))


def to_scalar(value: tensor) -> tensor:
    """The one element of a block of one: the sum of it."""
    if value.dtype.is_ptr():
        raise errors.element_count("reshape", value.shape, ())
    if len(value.shape) > 1:
        flat = value.dtype.with_shape((1,))
        value = tensor(current().op("tile.reshape", [value.handle], [flat]), flat)
    return reduced((value,), 0, or_ if value.dtype.is_int() else add, "reshape")[0]
