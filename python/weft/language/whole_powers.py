# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Powers whose exponents are small whole numbers, by products: of one that is known, and of a scalar that the launch
knows. Each product adds a rounding to those of its factors, of a unit of the last place at most: the fifth power has
four, the third two. In between nothing overflows that the power does not."""

from __future__ import annotations

from collections.abc import Callable

from .emit import current
from .literals import scalar_constant
from .maths import where
from .types import float64
from .value import tensor

_LARGEST = 5


def largest_known(x: tensor) -> int:
    """Up to which exponent products are near enough: in float64 a power is off by two units."""
    return 3 if x.dtype == float64 else _LARGEST


def known_exponent(y: tensor, x: tensor) -> int | None:
    """The exponent, where it is known now, whole, and small enough for products."""
    if not y.is_constant or not 0 <= y.constant <= largest_known(x) or y.constant != int(y.constant):
        return None
    return int(y.constant)


def by_products(x: tensor, n: int) -> tensor:
    """x to a power that is known, at least 1."""
    if n == 1:
        return x
    half = by_products(x, n // 2)
    return half * half * x if n % 2 else half * half


def _by_bits(x: tensor, n: tensor) -> tensor:
    """x to the power n, a scalar up to the largest."""
    found, square = scalar_constant(1.0, x.dtype), x
    last = _LARGEST.bit_length() - 1
    for bit in range(last + 1):
        found = where((n & (1 << bit)) != 0, found * square, found)
        if bit < last:
            square = square * square
    return found


def by_branch(x: tensor, n: tensor, usual: Callable[[], tensor]) -> tensor:
    """x to the power n, a whole number that all of a block have in common: by products where it is small, and else
    ``usual``."""
    builder = current()
    small = (n >= 0) & (n <= _LARGEST)
    with builder.region([]) as then:
        builder.op("scf.yield", [_by_bits(x, n).handle])
    with builder.region([]) as otherwise:
        builder.op("scf.yield", [usual().handle])
    return tensor(builder.op("scf.if", [small.handle], [x.type], {}, [then, otherwise]), x.type)
