# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Random numbers of a place: Philox-2x32 on scalars of a region (Salmon, Moraes, Dror, Shaw, "Parallel random
numbers: as easy as 1, 2, 3", 2011). What it gives depends on its counter and its key alone, so that a backward draws
the numbers of its forward again, in any order.
"""

from __future__ import annotations

from typing import Any

from .scalars import Scalar, constant, scalar, where, wide_product

#: what the paper recommends, and the fewest that pass its tests (BigCrush)
ROUNDS, FEWEST_ROUNDS = 10, 7
_MULTIPLIER = 0xD256D193
_KEY_STEP = 0x9E3779B9


def _word(bits: int) -> Scalar:
    """32 bits as an integer with a sign, as regions have them."""
    return constant(bits - 2**32 if bits >= 2**31 else bits)


def philox(low: Any, high: Any, key: Any, rounds: int = ROUNDS) -> tuple[Scalar, Scalar]:
    """The two words at the counter (``low``, ``high``) under a key; all are integers of 32 bits."""
    low, high, key = scalar(low), scalar(high), scalar(key)
    for number in range(rounds):
        stepped = key if number == 0 else key + _word(number * _KEY_STEP % 2**32)
        below, above = wide_product(low, _word(_MULTIPLIER))
        low, high = above ^ stepped ^ high, below
    return low, high


def at_pair(n: Any, m: Any, key: Any) -> Scalar:
    """A word of a pair of indices, whose upper 16 bits are random.

    The four pairs of n and n + 8 with m and m + 8, where n & 8 and m & 8 are 0, have the halves of one philox: a matrix
    instruction's fragment of scores has all four in one thread, whichever index its rows are.
    """
    n, m = scalar(n), scalar(m)
    below, above = ((index >> 4 << 3) | (index & 7) for index in (m, n))
    low, high = philox(below, above, key, FEWEST_ROUNDS)
    word = where((n & 8) == 0, low, high)
    return where((m & 8) == 0, word << 16, word)


def is_below(word: Scalar, share: float) -> Scalar:
    """Whether a word's upper 16 bits are among the lowest ``share`` of all, from 0 to 1."""
    bound = min(round(share * 2**16), 2**16 - 1) << 16
    return (word ^ _word(2**31)) < _word(bound ^ 2**31)  # without signs
