# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""The error function's family and the gamma function of float64, by polynomials of :mod:`weft.language.coefficients`
and the closed forms that they leave: exponentials of pairs, Stirling's formula, reflection.
"""

from __future__ import annotations

from . import coefficients as known
from .doubles import (
    INFINITY,
    NAN,
    Pair,
    exact_product,
    exact_sum,
    exp_of_bounded,
    exp_pair,
    horner,
    log_pair,
    number,
    ordered_sum,
    pair,
    pair_product,
    pair_sum,
    piecewise,
    power_of_two,
    signed,
    sin,
    whole,
)
from .maths import FLOAT64, abs, fma, maximum, minimum, sqrt, where
from .value import tensor

_PI = 3.141592653589793


# ---- The error function


def _scaled_part(size: tensor) -> tensor:
    """(1 + 2x) exp(x²) erfc(x) of a size."""
    bounded = minimum(size, 1e300)
    return piecewise((bounded - 4.0) / (bounded + 4.0), known.ERFCX)


def _central(x: tensor) -> tensor:
    """erf of a size below 1; not a number where x is none."""
    return x * piecewise(x * x, known.ERF)


def _tail(size: tensor, low: tensor | None = None) -> tensor:
    """erfc of a size, and what it lacks."""
    bounded = minimum(size, 40.0)
    square, rest = exact_product(bounded, bounded)
    if low is not None:
        rest = fma(bounded * 2.0, where(size < 40.0, low, number(0.0)), rest)
    return exp_pair(-square, -rest, _scaled_part(bounded) / fma(bounded, number(2.0), number(1.0)))


def _small_tail(size: tensor) -> tensor:
    """erfc of a size from 1 on, from 6 on that of 6: to be taken from 1, of which it is a sixth at the most."""
    bounded = minimum(size, 6.0)
    above, twice = bounded + 4.0, fma(bounded, number(2.0), number(1.0))
    inverse = number(1.0) / (above * twice)
    part = horner((bounded - 4.0) * (twice * inverse), known.ERF_TAIL) * (above * inverse)
    grown, k = exp_of_bounded(-(bounded * bounded))
    return part * (grown * power_of_two(k))


def erf(x: tensor) -> tensor:
    """The error function."""
    size = abs(x)
    return where(size >= 1.0, signed(1.0 - _small_tail(size), x), _central(x))


def erfc(x: tensor) -> tensor:
    """1 - erf(x)."""
    size = abs(x)
    tail = _tail(size)
    found = where(size < 0.5, 1.0 - _central(x), where(x < 0.0, 2.0 - tail, tail))
    return where(x == x, found, x)


def erfcx(x: tensor) -> tensor:
    """exp(x²) · erfc(x)."""
    size = abs(x)
    positive = _scaled_part(size) * 0.5 / (minimum(size, 1.7e308) + 0.5)
    bounded = minimum(size, 40.0)
    square, rest = exact_product(bounded, bounded)
    grown = exp_pair(square, rest)
    far = where(x < 0.0, grown * 2.0 - positive, where(size < INFINITY, positive, number(0.0)))
    return where(x == x, where(size < 0.5, grown * (1.0 - _central(x)), far), x)


def normcdf(x: tensor) -> tensor:
    """The part of the standard normal distribution below x."""
    bounded = minimum(maximum(x, -60.0), 60.0)
    high, low = pair_product((-bounded, number(0.0)), pair(known.SQRT_HALF))
    size, low = abs(high), where(high < 0.0, -low, low)
    tail = _tail(size, low) * 0.5
    near = 0.5 - _central(high) * 0.5
    found = where(size < 0.5, near, where(x > 0.0, 1.0 - tail, tail))
    return where(x == x, found, x)


def erfinv(y: tensor) -> tensor:
    """The x whose erf is y, of y between -1 and 1."""
    size = abs(y)
    bounded = minimum(size, 0.75)
    centre = y * piecewise(bounded * bounded, known.ERFINV)
    found = where(size <= 0.75, centre, signed(_inverse_tail(1.0 - size), y))
    return where(size <= 1.0, found, number(NAN))


def _inverse_tail(z: tensor) -> tensor:
    """The inverse of erfc for z up to 0.3; infinite at 0."""
    bounded = minimum(maximum(z, 5e-324), 0.3)
    w = sqrt(-log_pair(bounded)[0])
    return where(z > 0.0, w * piecewise(w, known.ERFCINV), number(INFINITY))


def erfcinv(z: tensor) -> tensor:
    """The x whose erfc is z, of z between 0 and 2."""
    below, above = z < 0.25, z > 1.75
    nearest = where(below, z, 2.0 - z)
    tail = _inverse_tail(nearest)
    centre = minimum(maximum(1.0 - z, -0.75), 0.75)
    found = where(below, tail, where(above, -tail, erfinv(centre)))
    return where((z >= 0.0) & (z <= 2.0), found, number(NAN))


def normcdfinv(p: tensor) -> tensor:
    """The x below which the part p of the standard normal distribution lies."""
    return erfcinv(p * 2.0) * -1.4142135623730951


# ---- The gamma function


def _stirling(x: tensor) -> Pair:
    """The logarithm of the gamma function from 8 on, as a pair."""
    bounded = minimum(maximum(x, 8.0), 3e305)
    high, low = log_pair(bounded)
    logs = pair_product(ordered_sum(bounded, number(-0.5)), ordered_sum(high - 1.0, low))
    inverse = 1.0 / bounded
    more = inverse * piecewise(inverse * inverse, known.STIRLING)
    # (x - ½)(log x - 1) - ½ + ½ log 2π + ...: the product of large numbers is one, and exact.
    rest = exact_sum(number(known.HALF_LOG_TWO_PI[0] - 0.5), number(known.HALF_LOG_TWO_PI[1]))
    return pair_sum(logs, pair_sum(rest, (more, number(0.0))))


def _steps(x: tensor) -> tuple[tensor, tensor]:
    """Of x from 0.5 to 8: z between 2 and 3, or below, and the product that leads from Γ(z) to Γ(x)."""
    product, z = number(1.0), x
    for _ in range(6):
        down = z >= 3.0
        less = z - 1.0
        product = where(down, product * less, product)
        z = where(down, less, z)
    return z, product


def _sine_of_turns(size: tensor) -> tensor:
    """|sin(π x)|, exactly 0 at integers."""
    part = abs(size - whole(size))
    return where(part <= 0.25, sin(part * _PI), FLOAT64["cos"]((0.5 - part) * _PI))


def tgamma(x: tensor) -> tensor:
    """The gamma function."""
    size = abs(x)
    near = minimum(maximum(size, 2.0**-60), 8.0)
    below_one, below_two = near < 1.0, near < 2.0
    z, product = _steps(where(below_two, near + where(below_one, number(2.0), number(1.0)), near))
    lifted = (1.0 + piecewise(z, known.GAMMA)) * product  # exact at integers
    divisor = where(below_one, near * (near + 1.0), where(below_two, near, number(1.0)))
    central = lifted / divisor  # Γ(|x|)
    large = _stirling(minimum(size, 200.0))
    sine = _sine_of_turns(size)
    # Γ(-x) is π / (x sin(π x) Γ(x)), negative where the integer below is odd
    factor = where(sine == 0.0, number(1.0), _PI / (size * sine))
    half = _floor(size) * 0.5
    odd = half != whole(half)
    mirrored = where(size < 8.0, factor / central, exp_pair(-large[0], -large[1], factor))
    mirrored = where(odd, mirrored, -mirrored)
    positive = where(size < 8.0, central, exp_pair(*large))
    found = where(x > 0.0, positive, where(sine == 0.0, number(NAN), mirrored))
    tiny = 1.0 / x
    found = where(size < 2.0**-60, tiny, found)
    return where(x == -INFINITY, number(NAN), where(x == x, found, x))


def _floor(x: tensor) -> tensor:
    """The integer below."""
    near = whole(x)
    return where(near > x, near - 1.0, near)


def lgamma(x: tensor) -> tensor:
    """The logarithm of the gamma function's size."""
    size = abs(x)
    low = size < 0.5
    # below ½ the gamma function of 1 + x over x, of either sign
    near = where(low, 1.0 + x, minimum(size, 8.0))
    z, product = _steps(near)
    central = piecewise(z, known.LGAMMA) * (z - 1.0) * (z - 2.0)
    divided = where(low, size, product)
    high, rest = log_pair(maximum(divided, 5e-324))
    sign = where(low, number(-1.0), number(1.0))
    central = where(divided == 1.0, central, fma(sign, high, central + sign * rest))
    large = _stirling(size)
    positive = where(size < 8.0, central, where(size < 3e305, large[0], number(INFINITY)))
    sine = _sine_of_turns(size)
    reflected = pair_sum(pair(known.LOG_PI), _negative(log_pair(maximum(size, 0.5))))
    reflected = pair_sum(reflected, _negative(log_pair(maximum(sine, 1e-300))))
    positive_pair = (where(size < 8.0, central, large[0]), where(size < 8.0, number(0.0), large[1]))
    mirrored = where(sine == 0.0, number(INFINITY), pair_sum(reflected, _negative(positive_pair))[0])
    found = where((x > 0.0) | low, positive, mirrored)
    found = where((x == 0.0) | (size == INFINITY), number(INFINITY), found)
    return where(x == x, where(found == 0.0, number(0.0), found), x)


def _negative(x: Pair) -> Pair:
    return -x[0], -x[1]


FLOAT64.update(erf=erf)
