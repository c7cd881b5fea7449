# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Random numbers of a place: Philox-2x32-10 on scalars of a region (Salmon, Moraes, Dror, Shaw, "Parallel random
numbers: as easy as 1, 2, 3", 2011). What it gives depends on its counter and its key alone, so that a backward draws
the numbers of its forward again, in any order.
"""

from __future__ import annotations

from typing import Any

from .scalars import Scalar, constant, scalar, wide_product

_ROUNDS = 10
_MULTIPLIER = 0xD256D193
_KEY_STEP = 0x9E3779B9


def _word(bits: int) -> Scalar:
    """32 bits as an integer with a sign, as regions have them."""
    return constant(bits - 2**32 if bits >= 2**31 else bits)


def philox(low: Any, high: Any, key: Any) -> Scalar:
    """The first word at the counter (``low``, ``high``) under a key; all are integers of 32 bits."""
    low, high, key = scalar(low), scalar(high), scalar(key)
    for number in range(_ROUNDS):
        stepped = key if number == 0 else key + _word(number * _KEY_STEP % 2**32)
        below, above = wide_product(low, _word(_MULTIPLIER))
        low, high = above ^ stepped ^ high, below
    return low


def is_below(word: Scalar, share: float) -> Scalar:
    """Whether a random word, read without its sign, is among the lowest ``share`` of all words, from 0 to 1."""
    bound = min(round(share * 2**32), 2**32 - 1)
    return (word ^ _word(2**31)) < _word((bound + 2**31) % 2**32)
