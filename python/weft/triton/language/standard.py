# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""``triton.language.standard``: functions made of others."""

from weft.language import *  # noqa: F403
from weft.language import constexpr_function


@constexpr_function
def _log2(i: int) -> int:
    """The place of the highest bit of a constant."""
    return int(i).bit_length() - 1


@constexpr_function
def _is_power_of_two(i: int) -> bool:
    """Whether a constant is a power of two."""
    return i > 0 and i & (i - 1) == 0
