# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Loads as Triton's scripts count on them."""

import inspect
from typing import Any

import weft.language as wl
from weft.language.emit import builtin
from weft.language.types import unwrap


@builtin
def load(pointer: Any, mask: Any = None, other: Any = None, *more: Any, **options: Any) -> Any:
    """:func:`weft.language.load`. What ``mask`` leaves out is 0 without ``other``: Triton leaves it open and has 0
    there on NVIDIA's GPUs, on which sums over ragged edges count."""
    scalars = isinstance(pointer, wl.tensor) and pointer.dtype.is_ptr() and not pointer.dtype.element_ty.is_ptr()
    if unwrap(mask) is not None and unwrap(other) is None and scalars:
        other = 0
    return wl.load(pointer, mask, other, *more, **options)


vars(load)["__signature__"] = inspect.signature(wl.load)  # by which calls are checked


__all__ = ["load"]
