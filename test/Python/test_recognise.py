# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Masks that are patterns with formulas, by what they compute: equal to the mask pair by pair, and of the family that
has them."""

import numpy as np
import pytest
import weft
from weft.programs.recognise import pattern_of

N = 23

# A mask, and how the pattern that it is begins.
MASKS = {
    "n >= m": (lambda b, h, n, m: n >= m, "weft.causal()"),
    "m <= n": (lambda b, h, n, m: m <= n, "weft.causal()"),
    "m < n + 1": (lambda b, h, n, m: m < n + 1, "weft.causal()"),
    "not m > n": (lambda b, h, n, m: ~(m > n), "weft.causal()"),
    "window": (lambda b, h, n, m: (n - m <= 5) & (m - n <= 2), "(weft.window(5, None) & weft.window(None, 2))"),
    "|n - m|": (lambda b, h, n, m: abs(n - m) <= 4, "(weft.window(4, None) & weft.window(None, 4))"),
    "|n - m|, far": (lambda b, h, n, m: abs(m - n) > 4, "(weft.window"),
    "diagonal": (lambda b, h, n, m: n == m + 2, "weft.window(2, -2)"),
    "no diagonal": (lambda b, h, n, m: n != m, "~weft.window(0, 0)"),
    "prefix": (lambda b, h, n, m: (m < 5) | (n >= m), "(weft.prefix(5) | weft.causal())"),
    "not the first": (lambda b, h, n, m: m >= 3, "~weft.prefix(3)"),
    "first rows": (lambda b, h, n, m: n < 4, "weft.prefix(4).transpose()"),
    "one row": (lambda b, h, n, m: n == 4, "(weft.prefix(5) & ~weft.prefix(4)).transpose()"),
    "negative": (lambda b, h, n, m: m < -3, "~weft.full()"),
    "positions": (lambda b, h, n, m: n >= 0, "weft.full()"),
    "a stretch": (lambda b, h, n, m: (m >= 2) & (m < 9), "(~weft.prefix(2) & weft.prefix(9))"),
    "twice": (lambda b, h, n, m: 2 * n - n >= m - 1, "weft.window(None, 1)"),
    "chunks": (lambda b, h, n, m: (n // 4 == m // 4) & (n >= m), "(weft.block_window((4,), ()) & weft.causal())"),
    "everything": (lambda b, h, n, m: (m <= m) & True, "weft.full()"),
    "nothing": (lambda b, h, n, m: (m < m) | (n < n), "~weft.full()"),
}
OTHERS = {
    "heads": lambda b, h, n, m: n >= m + h,
    "multiples": lambda b, h, n, m: 2 * n >= m,
    "remainders": lambda b, h, n, m: n % 2 == m % 2,
    "a sum": lambda b, h, n, m: n + m < 9,
    "chunks before": lambda b, h, n, m: n // 4 >= m // 4,
    "reals": lambda b, h, n, m: n * 0.5 >= m,
    "fails": lambda b, h, n, m: n if n > m else m,
}


@pytest.mark.parametrize("name", MASKS)
def test_a_pattern_that_says_the_same(name):
    mask, spelled = MASKS[name]
    found = pattern_of(mask)
    assert found is not None
    assert repr(found).startswith(spelled), repr(found)
    np.testing.assert_array_equal(found.matrix(N), weft.mask(mask).matrix(N))


@pytest.mark.parametrize("name", OTHERS)
def test_masks_that_stay_masks(name):
    assert pattern_of(OTHERS[name]) is None


def test_values_count():
    """A mask is remembered by what it reads, not by where it is written."""

    def window(size):
        return lambda b, h, n, m: n - m <= size

    assert pattern_of(window(3)) == weft.window(3, None)
    assert pattern_of(window(8)) == weft.window(8, None)
    table = np.arange(N)
    assert pattern_of(lambda b, h, n, m: table[n] >= m) is None
