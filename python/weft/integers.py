# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Integer helpers for grids and block sizes. Kernels may call them with constants."""

from __future__ import annotations

import operator


def _index(where: str, value: object) -> int:
    try:
        return operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        raise TypeError(f"expected integers for weft.{where}, but got {value!r}") from None


def cdiv(x: int, y: int) -> int:
    """x / y rounded up."""
    x, y = _index("cdiv", x), _index("cdiv", y)
    if y == 0:
        raise ValueError("expected a divisor of weft.cdiv other than 0, but got 0")
    return -(-x // y)


def next_power_of_2(n: int) -> int:
    """The least power of two that is not less than n; 1 for n below 1."""
    n = _index("next_power_of_2", n)
    return 1 if n < 1 else 1 << (n - 1).bit_length()


for _function in (cdiv, next_power_of_2):
    vars(_function)["__weft_constexpr__"] = True
