# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Where arrays lie in memory."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any


def extent(array: Any) -> tuple[int, int] | None:
    """The first byte of a NumPy array or a torch tensor, and the one past its last; None of anything else, such as an
    address."""
    if hasattr(array, "data_ptr") and hasattr(array, "stride") and hasattr(array, "element_size"):
        begin, shape, size = int(array.data_ptr()), tuple(array.shape), int(array.element_size())
        steps = [step * size for step in array.stride()]
    elif hasattr(array, "ctypes") and hasattr(array, "strides"):
        begin, shape, size = int(array.ctypes.data), array.shape, int(array.itemsize)
        steps = list(array.strides)
    else:
        return None
    if 0 in shape:
        return begin, begin
    ends = [step * (count - 1) for step, count in zip(steps, shape, strict=True)]
    return begin + sum(min(end, 0) for end in ends), begin + sum(max(end, 0) for end in ends) + size


def share_memory(arguments: Sequence[Any], pairs: Iterable[tuple[int, int]]) -> bool:
    """Whether two arguments of a pair, by number, may share memory: they do not where both are arrays of which one ends
    before the other begins."""
    for first, second in pairs:
        one, other = extent(arguments[first]), extent(arguments[second])
        if one is None or other is None or (one[0] < other[1] and other[0] < one[1]):
            return True
    return False


__all__ = ["extent", "share_memory"]
