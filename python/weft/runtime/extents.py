# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Where arrays lie in memory."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any


def extent(array: Any) -> tuple[int, int] | None:
    """The first byte of a NumPy array or a torch tensor, and the one past its last; None of anything else, such as an
    address."""
    if hasattr(array, "data_ptr") and hasattr(array, "is_contiguous"):
        begin = int(array.data_ptr())
        if array.is_contiguous():
            return begin, begin + int(array.nbytes)
        size = int(array.element_size())
        return _span(begin, array.shape, [step * size for step in array.stride()], size)
    if hasattr(array, "ctypes") and hasattr(array, "strides"):
        begin = int(array.ctypes.data)
        if array.flags.c_contiguous:
            return begin, begin + int(array.nbytes)
        return _span(begin, array.shape, array.strides, int(array.itemsize))
    return None


def _span(begin: int, shape: Sequence[int], steps: Sequence[int], size: int) -> tuple[int, int]:
    if 0 in shape:
        return begin, begin
    ends = [step * (count - 1) for step, count in zip(steps, shape, strict=True)]
    return begin + sum(min(end, 0) for end in ends), begin + sum(max(end, 0) for end in ends) + size


def share_memory(arguments: Sequence[Any], pairs: Iterable[tuple[int, int]]) -> bool:
    """Whether two arguments of a pair, by number, may share memory: they do not where both are arrays of which one ends
    before the other begins. Part of every launch of a kernel that asks for it."""
    known: dict[int, tuple[int, int] | None] = {}
    for pair in pairs:
        for place in pair:
            if place not in known:
                known[place] = extent(arguments[place])
        one, other = known[pair[0]], known[pair[1]]
        if one is None or other is None or (one[0] < other[1] and other[0] < one[1]):
            return True
    return False


__all__ = ["extent", "share_memory"]
