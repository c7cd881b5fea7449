# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""The error function's family of float32, by polynomials of :mod:`weft.language.coefficients_singles`. Nothing
branches: what holds near and what holds far are both computed, which takes fewer instructions than to choose between
coefficients.
"""

from __future__ import annotations

from collections.abc import Sequence

from . import coefficients_singles as known
from .doubles import horner, signed
from .maths import PropagateNan, abs, fma, maximum, minimum, where
from .singles import exp_parts, number, unit
from .value import tensor

_ALL = PropagateNan.ALL


def _half_exp_of_square(x: tensor) -> tensor:
    """exp(x²) / 2, within a unit of the last place."""
    square = fma(x, x, number(0.0))
    turns, grown = exp_parts(square, fma(x, x, -square))
    power = unit("ex2", turns - 1.0)
    return fma(power, grown, power)


def _scaled(size: tensor) -> tensor:
    """exp(x²) erfc(x) of a size: a polynomial over x + 2, by steps of Newton's in which x + 2 is not rounded."""
    inverse = unit("rcp", size + 2.0, subnormal=True)
    inverse = _corrected(inverse, fma(-inverse, size, fma(inverse, number(-2.0), number(1.0))), inverse)
    part = fma(inverse, number(-4.0), number(1.0))
    slope, first = horner(part, known.ERFCX[1:-1]), number(known.ERFCX[0])
    above = fma(slope, part, first)
    less = fma(slope, part, first - above) + known.ERFCX[-1]
    quotient = above * inverse
    return _corrected(quotient, fma(-quotient, size, fma(quotient, number(-2.0), above)) + less, inverse)


def _corrected(quotient: tensor, rest: tensor, inverse: tensor) -> tensor:
    """A quotient and what is missing of it: nothing, where the divisor and so the rest is infinite."""
    return fma(inverse, maximum(rest, -1.0), quotient)


def _tail(size: tensor, more: tensor | None = None) -> tensor:
    """erfc of a size, times exp(more)."""
    bounded = minimum(size, 10.5, _ALL)
    square = fma(bounded, bounded, number(0.0))
    rest = fma(-bounded, bounded, square)
    exponent, grown = exp_parts(-square, rest if more is None else rest + more)
    power = unit("ex2", exponent, subnormal=True)
    return fma(power, grown, power) * _scaled(bounded)


def erfc(x: tensor) -> tensor:
    """1 - erf(x)."""
    tail = _tail(abs(x))
    return where(x < 0.0, 2.0 - tail, tail)


def erfcx(x: tensor) -> tensor:
    """exp(x²) · erfc(x)."""
    size = abs(x)
    part = _scaled(size)
    grown = _half_exp_of_square(minimum(size, 9.41))  # four times that is infinite
    return where(x < 0.0, fma(grown, number(4.0), -part), part)


def normcdf(x: tensor) -> tensor:
    """The part of the standard normal distribution below x."""
    bounded = minimum(maximum(x, -14.8, _ALL), 14.8, _ALL)
    high = fma(bounded, number(known.SQRT_HALF[0]), number(0.0))
    low = fma(bounded, number(known.SQRT_HALF[1]), fma(bounded, number(known.SQRT_HALF[0]), -high))
    half = _tail(abs(high), high * low * -2.0) * 0.5
    return where(x > 0.0, 1.0 - half, half)


def _inverse(y: tensor, log: tensor, end: float, center: Sequence[float], tail: tensor) -> tensor:
    """The x whose erf is y, of log2(1 - y²): y times a polynomial of that where it is above the end, else the tail."""
    near = fma(y, number(center[0]), y * log * horner(log, center[1:]))
    return signed(where(log > end, near, tail), y)


def erfinv(y: tensor) -> tensor:
    """The x whose erf is y, of y between -1 and 1."""
    log = unit("lg2", fma(-y, y, number(1.0)))
    tail = horner(unit("sqrt", -log) - known.ERFINV_SHIFT, known.ERFINV_TAIL)
    return _inverse(y, log, -6.0, known.ERFINV, tail)


def _tail_inverse(log: tensor, powers: Sequence[float]) -> tensor:
    """sqrt(-log) times a polynomial of 1 / sqrt(-log)."""
    return unit("sqrt", -log) * horner(unit("rsqrt", -log) - known.ERFCINV_SHIFT, powers)


def erfcinv(z: tensor) -> tensor:
    """The x whose erfc is z, of z between 0 and 2."""
    log = unit("lg2", z * (2.0 - z), subnormal=True)
    return _inverse(1.0 - z, log, -8.0, known.ERFCINV, _tail_inverse(log, known.ERFCINV_TAIL))


def normcdfinv(p: tensor) -> tensor:
    """The x below which the part p of the standard normal distribution lies."""
    z = p * 2.0
    log = unit("lg2", z * (2.0 - z), subnormal=True)
    return _inverse(z - 1.0, log, -8.0, known.NORMCDFINV, _tail_inverse(log, known.NORMCDFINV_TAIL))
