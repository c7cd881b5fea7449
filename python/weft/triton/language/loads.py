# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Loads as Triton's scripts count on them."""

from typing import Any

import weft.language as wl
from weft.language.block_pointers import block_pointer
from weft.language.emit import builtin
from weft.language.types import unwrap


@builtin
def load(
    pointer: Any,
    mask: Any = None,
    other: Any = None,
    boundary_check: Any = (),
    padding_option: str = "",
    cache_modifier: str = "",
    eviction_policy: str = "",
    volatile: bool = False,
) -> Any:
    """:func:`weft.language.load`. What ``mask`` leaves out is 0 without ``other``: Triton leaves it open and has 0
    there on NVIDIA's GPUs, on which sums over ragged edges count."""
    scalars = isinstance(pointer, wl.tensor) and pointer.dtype.is_ptr() and not pointer.dtype.element_ty.is_ptr()
    if unwrap(mask) is not None and unwrap(other) is None and scalars and not isinstance(pointer, block_pointer):
        other = 0
    given = (boundary_check, padding_option, cache_modifier, eviction_policy, volatile)
    return wl.load(pointer, mask, other, *given)


__all__ = ["load"]
