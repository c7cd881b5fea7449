# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""``triton.tools.ragged_tma``: descriptors of arrays that are subarrays of several lengths, one behind another along an
axis, of which blocks are read and written within one subarray.

A subarray is the array from its first row on, cut to its length; bounds are checked as for every descriptor. Any rank,
any strides and any axis will do.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

from weft.language import int64
from weft.language.block_pointers import make_block_ptr
from weft.language.descriptors import tensor_descriptor
from weft.language.emit import builtin
from weft.language.literals import to_tensor
from weft.language.operators import add, mul
from weft.language.types import unwrap
from weft.language.value import tensor

from .tensor_descriptor import TensorDescriptor


def create_ragged_descriptor(T: Any, block_shape: Sequence[int], ragged_dim: int = 0) -> TensorDescriptor:
    """A descriptor of a tensor for :func:`load_ragged`, :func:`store_ragged` and :func:`atomic_add_ragged`, in blocks
    of ``block_shape``. ``ragged_dim``, from the end where it is negative, is the axis along which subarrays lie."""
    rank = len(T.shape)
    if not -rank <= ragged_dim < rank:
        raise ValueError(f"expected 'ragged_dim' to be an axis of {rank}, but got {ragged_dim}")
    return TensorDescriptor.from_tensor(T, block_shape)


@builtin
def load_ragged(TMA: tensor_descriptor, slice_off: Any, slice_size: Any, coords: Any, ragged_dim: int = 0) -> tensor:
    """The block at ``coords`` of the subarray of ``slice_size`` rows from row ``slice_off`` on; 0 outside of it."""
    return _subarray(TMA, slice_off, slice_size, ragged_dim).load(coords)


@builtin
def store_ragged(
    TMA: tensor_descriptor, slice_off: Any, slice_size: Any, coords: Any, data: tensor, ragged_dim: int = 0
) -> None:
    """Write a block at ``coords`` of a subarray; what lies outside of it is left out."""
    _subarray(TMA, slice_off, slice_size, ragged_dim).store(coords, data)


@builtin
def atomic_add_ragged(
    TMA: tensor_descriptor, slice_off: Any, slice_size: Any, coords: Any, data: tensor, ragged_dim: int = 0
) -> None:
    """Add a block at ``coords`` of a subarray; what lies outside of it is left out."""
    _subarray(TMA, slice_off, slice_size, ragged_dim).atomic_add(coords, data)


def _subarray(of: tensor_descriptor, first: Any, size: Any, axis: Any) -> tensor_descriptor:
    """The descriptor of some rows of an array."""
    whole, along = of.pointer, unwrap(axis) % len(of.block_shape)
    begin = add(whole.base, mul(to_tensor(first).to(int64), whole.strides[along]))
    shape = [size if each == along else extent for each, extent in enumerate(whole.shape)]
    pointer = make_block_ptr(begin, shape, whole.strides, (0,) * len(shape), whole.block_shape)
    return dataclasses.replace(of, pointer=pointer)


__all__ = ["atomic_add_ragged", "create_ragged_descriptor", "load_ragged", "store_ragged"]
