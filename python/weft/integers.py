# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Integer helpers for grids and block sizes. Kernels may call them with constants."""

from __future__ import annotations


def cdiv(x: int, y: int) -> int:
    """x / y rounded up."""
    return -(-x // y)


def next_power_of_2(n: int) -> int:
    """The least power of two that is not less than n; 1 for n below 1."""
    return 1 if n < 1 else 1 << (n - 1).bit_length()


for _function in (cdiv, next_power_of_2):
    vars(_function)["__weft_constexpr__"] = True
