# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""The gamma function of float32 and its logarithm, by polynomials of :mod:`weft.language.coefficients_singles` and
Stirling's formula; below 0 by reflection. All of it is computed for every argument: nothing branches.
"""

from __future__ import annotations

from . import coefficients_singles as known
from .casts import convert, reread
from .doubles import INFINITY, NAN, Pair, exact_product, horner, ordered_sum, signed, whole
from .maths import PropagateNan, abs, fma, minimum, where
from .operators import shl, xor
from .singles import exp_parts, number, unit
from .types import float32, int32
from .value import tensor

_SQRT_HALF_BITS, _EXPONENT = 0x3F3504F3, -0x800000


def _sine_of_turns(part: tensor) -> tensor:
    """sin(π x) / π of a number between -½ and ½."""
    square = part * part
    return fma(part * square, horner(square, known.SINE[1:]), part)


def _parts(x: tensor) -> tuple[tensor, tensor]:
    """A positive normal number's m between √½ and √2, less 1, and 2^23 e of x = m · 2^e."""
    bits = reread(x, int32)
    exponent = (bits - _SQRT_HALF_BITS) & _EXPONENT
    return reread(bits - exponent, float32) - 1.0, convert(exponent, float32)


# ---- The logarithm

_END = 2.5  # Stirling's formula from there


def _log_parts(x: tensor) -> tuple[tensor, tensor]:
    """The logarithm of a positive number as two numbers to be added, of which the first is e · log 2."""
    small = x < 1.1754943508222875e-38
    f, exponent = _parts(where(small, x * 8388608.0, x))
    e = fma(exponent, number(2.0**-23), where(small, number(-23.0), number(0.0)))
    return e, fma(f * f, horner(f, known.LOG), f)


def _log2(x: tensor) -> tensor:
    """The logarithm to base 2 of a positive normal number: the unit's is off by 2^-22 of the result beyond ½ to 2."""
    f, exponent = _parts(x)
    return fma(exponent, number(2.0**-23), unit("lg2", f + 1.0))


def lgamma(x: tensor) -> tensor:
    """The logarithm of the gamma function's size. It is ``main`` for positive x, and below 0 the logarithm of π / |x
    sin(π x)| less that; ``main`` is log(Γ(1 + b)), of b between 0 and 1.5, or Stirling's formula.
    """
    size, negative = abs(x), x < 0.0
    low, near = size < 1.0, size < _END
    sine = abs(_sine_of_turns(size - whole(size)))
    mirrored = where(low, number(1.0), size) * sine
    # Γ(x) is Γ(1 + x) / x below 1, and Γ(1 + (x - 1)) from there: the logarithm of 1 is exactly 0
    reduced = where(negative, mirrored, size)
    of_log = where(near, where(low | negative, reduced, number(1.0)), size)
    e, log = _log_parts(of_log)
    b = where(low, size, size - 1.0)
    central = b * (b - 1.0) * horner(b - known.LGAMMA_SHIFT, known.LGAMMA)
    inverse = unit("rcp", size)
    rest = fma(inverse, horner(inverse * inverse, known.STIRLING), number(known.STIRLING_REST))
    # less 1 where that is exact, since the logarithm of e is
    far = fma(size - 0.5, fma(e, number(known.LN2[0]), number(-1.0)) + log, rest)
    main = where(near, central, far)
    reflected = where(negative, _log2(mirrored) * -known.LN2[0], number(0.0))
    other = where(near, 0.0 - fma(e, number(known.LN2[0]), log), reflected)
    found = fma(where(negative, number(-1.0), number(1.0)), main, other)
    return where((reduced == 0.0) | (size == INFINITY), number(INFINITY), found)


# ---- The function


def _log_less_one(x: tensor) -> Pair:
    """log(x) - 1 of a number from 1 to 48."""
    f, exponent = _parts(x)
    square, little = exact_product(f, f)
    high = fma(square, number(-0.5), f)
    low = fma(little, number(-0.5), fma(square, number(-0.5), f - high))
    low = fma(square * f, horner(f, known.LOG_CUBE), low)
    turns = fma(exponent, number(known.LN2_OF_BITS[0]), number(-1.0))
    total, rest = ordered_sum(turns, high)  # not the smaller one, or of the same power of two
    return ordered_sum(total, fma(exponent, number(known.LN2_OF_BITS[1]), rest + low))


def _power(x: tensor, factor: tensor) -> Pair:
    """exp(factor (log(x) - 1)), and a power of two that is to be multiplied with it at last."""
    high, low = _log_less_one(x)
    product, rest = exact_product(factor, high)
    turns, grown = exp_parts(product, fma(factor, low, rest))
    tiny = turns < -100.0
    power = unit("ex2", where(tiny, turns + 64.0, turns))
    return fma(power, grown, power), where(tiny, number(2.0**-64), number(1.0))


def tgamma(x: tensor) -> tensor:
    """The gamma function: of sizes below 1 that of 1 more over x, below 0 by Γ(-x) = -π / (x sin(π x) Γ(x))."""
    size, negative = abs(x), x < 0.0
    low = size < 1.0
    moved = where(low, size + 1.0, size)
    moved = minimum(moved, where(negative, number(48.0), number(35.05)), PropagateNan.ALL)  # 0 and infinite beyond
    power, scale = _power(moved, signed(moved - 0.5, x))
    factor = horner(unit("rcp", moved), known.GAMMA)
    turns = whole(size)
    sine = _sine_of_turns(turns - size)  # of the other sign, as the result is
    sine = reread(xor(reread(sine, int32), shl(convert(turns, int32), 31)), float32)
    up = number(2.0**25)  # a divisor below the normal range keeps all its bits
    divisor, rest = exact_product(factor, where(low, up, size))
    below = where(negative, fma(divisor, sine, rest * sine), where(low, x * up, number(1.0)))
    above = where(negative, power, power * factor)
    found = above * unit("rcp", below) * where(low, up, scale)
    return where(negative & (sine == 0.0), number(NAN), found)
