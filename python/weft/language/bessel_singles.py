# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Bessel functions of float32 of orders 0 and 1: below 8 by polynomials times the distances from their zeros, from
there by amplitude and phase. Both are computed for every argument: nothing branches.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

from . import coefficients_singles as known
from .casts import convert, reread
from .doubles import horner, signed, whole
from .maths import PropagateNan, abs, fdiv, fma, minimum, where
from .singles import exp_parts, number, unit
from .types import float32, int32
from .value import tensor

_TWO_OVER_PI, _TURN = 0.6366197723675814, 6.283185307179586
_ALL = PropagateNan.ALL


# ---- The first and second kind


def _far(size: tensor, order: int, ahead: float, sign: tensor | None = None) -> tensor:
    """The function that is, from 8 on, its amplitude times the sine of an angle, by how many turns that is ahead of x
    but for the phase. With the sign of another number, where one is given.
    """
    inverse = unit("rcp", size)
    square = inverse * inverse
    phase = fma(inverse, horner(square, (known.PHASE0, known.PHASE1)[order]), number(ahead))
    # x in turns, less whole ones: once where they are exact, and once more for numbers so large that they are not
    bounded = minimum(size, 1e30, _ALL)
    turns = whole(bounded * -known.PER_TURN[0])
    rest = fma(bounded, number(known.PER_TURN[1]), fma(bounded, number(known.PER_TURN[0]), turns)) + phase
    sine = unit("sin", (rest - whole(rest)) * _TURN)
    root = unit("rsqrt", size)
    amplitude = horner(square, (known.AMPLITUDE0, known.AMPLITUDE1)[order])
    return sine * (amplitude * (root if sign is None else signed(root, sign)))


def _off_square(x: tensor, square: tuple[float, float]) -> tensor:
    """x² less the square of a root, whose rest is exact near the root."""
    return fma(x, x, number(-square[0])) - square[1]


def _near(x: tensor, squares: Sequence[tuple[float, float]], powers: Sequence[float]) -> tensor:
    """A polynomial of x² times the distances from two roots' squares, and from that of one beyond 8."""
    first, second = (_off_square(x, each) for each in squares[:2])
    third = fma(x, x, number(-squares[2][0]))
    return first * second * (third * horner(x * x - known.J_SHIFT, powers))


def j0(x: tensor) -> tensor:
    """The Bessel function of the first kind of order 0."""
    size = abs(x)
    near = _near(x, known.J0_SQUARES, known.J0)
    return where(size < 8.0, near, _far(size, 0, 0.125))


def j1(x: tensor) -> tensor:
    """The Bessel function of the first kind of order 1."""
    size = abs(x)
    near = x * _near(x, known.J1_SQUARES, known.J1)
    return where(size < 8.0, near, _far(size, 1, -0.125, x))


def _log_over(x: tensor, root: tuple[float, float]) -> tensor:
    """The logarithm of a positive number over a root, exact near that."""
    small = x < 1.1754943508222875e-38
    bits = reread(where(small, x * 8388608.0, x), int32)
    exponent = (bits - _bits(root[0] * 0.5**0.5)) & -0x800000
    e = fma(convert(exponent, float32), number(2.0**-23), where(small, number(-23.0), number(0.0)))
    off = reread(bits - exponent, float32) - root[0]
    f = fma(off, number(1 / root[0]), number(-root[1] / root[0])) if root[1] else off
    return fma(e, number(known.LN2[0]), fma(f * f, horner(f, known.LOG), f))


def _bits(value: float) -> int:
    """The bits of a float32."""
    bits: int = struct.unpack("<i", struct.pack("<f", value))[0]
    return bits


def _between(x: tensor, roots: Sequence[tuple[float, float]], powers: Sequence[float]) -> tensor:
    """A polynomial times the distances from two roots, and from one beyond 8 where there is a third."""
    first, second = ((x - each[0]) - each[1] for each in roots[:2])
    rest = horner(x - known.Y_SHIFT, powers)
    return first * second * (rest if len(roots) == 2 else rest * (x - roots[2][0]))


def _second(x: tensor, low: tensor, end: float, middle: tensor, far: tensor) -> tensor:
    """The pieces together: -inf at 0, not a number below, as logarithms are."""
    found = where(x < end, low, where(x < 8.0, middle, far))
    return where(x > 0.0, found, unit("lg2", x, subnormal=True))


def y0(x: tensor) -> tensor:
    """The Bessel function of the second kind of order 0, of x from 0."""
    square = x * x
    rest = _off_square(x, known.Y0_SQUARE) * horner(square, known.Y0_LOW)
    low = fma(_log_over(x, known.Y0_ROOT) * _TWO_OVER_PI, horner(square, known.J0_LOW), rest)
    return _second(x, low, 2.0, _between(x, known.Y0_ROOTS, known.Y0), _far(x, 0, -0.125))


def y1(x: tensor) -> tensor:
    """The Bessel function of the second kind of order 1, of x from 0."""
    square = x * x
    log = _log_over(x, (1.0, 0.0)) * _TWO_OVER_PI
    rest = fma(log, horner(square, known.J1_LOW), horner(square, known.Y1_LOW))
    low = fma(x, rest, fdiv(number(-_TWO_OVER_PI), x))
    return _second(x, low, 1.75, _between(x, known.Y1_ROOTS, known.Y1), _far(x, 1, -0.375))


# ---- The modified functions


def _modified(size: tensor, powers: Sequence[float], sign: tensor | None = None) -> tensor:
    """exp(x) / sqrt(x) times a polynomial of 1 / x, of a size from 6 on; with the sign of another number."""
    bounded = minimum(size, 93.0, _ALL)  # infinite from there
    turns, grown = exp_parts(bounded, number(0.0))
    power = unit("ex2", turns - 8.0)  # the result is in the range where 2^turns is not; the polynomial has the 2^8
    root = unit("rsqrt", bounded)
    root = root if sign is None else signed(root, sign)
    return fma(power, grown, power) * (root * horner(unit("rcp", bounded), powers))


def i0(x: tensor) -> tensor:
    """The modified Bessel function of the first kind of order 0."""
    size = abs(x)
    return where(size < 6.0, horner(x * x, known.I0), _modified(size, known.I0_FAR))


def i1(x: tensor) -> tensor:
    """The modified Bessel function of the first kind of order 1."""
    size = abs(x)
    return where(size < 6.0, x * horner(x * x, known.I1), _modified(size, known.I1_FAR, x))
