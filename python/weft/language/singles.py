# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Powers of float32, within four units of the last place: the logarithm is a pair, whose error an exponent of up to 128
would make visible; and what other functions of float32 are made of. See ``doubles`` for what a pair is, and why the
products here are written as they are."""

from __future__ import annotations

from . import coefficients_singles as known
from .casts import convert, reread
from .doubles import INFINITY, Pair, exact_product, exact_sum, horner, ordered_sum, power_of, whole
from .inline_asm import inline_asm_elementwise
from .literals import scalar_constant
from .maths import abs, fdiv, fma, maximum, minimum, where
from .types import float32, int32
from .value import tensor

_LOG2_E_TWICE = (2.885390043258667, 3.85192597818218e-08)  # 2 / ln 2
_LN2 = 0.6931471805599453


def number(value: float) -> tensor:
    """A constant of float32."""
    return scalar_constant(value, float32)


def unit(name: str, x: tensor, subnormal: bool = False) -> tensor:
    """An instruction of the unit for special functions (PTX ISA 9.7.3). Without ``subnormal`` it takes and gives zeros
    for numbers below the normal range, which saves the machine the steps that scale them.
    """
    code = f"{name}.approx{'' if subnormal else '.ftz'}.f32 $0, $1;"
    made: tensor = inline_asm_elementwise(code, "=f,f", [x], float32, True, 1)
    return made


def exp_parts(high: tensor, low: tensor) -> Pair:
    """exp(high + low) of a pair as an exponent of 2, a whole number, whose power the unit for special functions has
    exactly, and what the factor beside it has beyond 1.
    """
    turns = whole(high * known.LOG2_E[0])
    rest = fma(turns, number(-known.LN2[1]), fma(turns, number(-known.LN2[0]), high)) + low
    return turns, fma(rest * rest, horner(rest, known.EXP), rest)


def rhypot(x: tensor, y: tensor) -> tensor:
    """1 / sqrt(x² + y²), within a unit of the last place, of numbers scaled by a power of two so that squares neither
    overflow nor vanish; 0 where one is infinite.
    """
    large, small = maximum(abs(x), abs(y)), minimum(abs(x), abs(y))
    shift = where(large > 2.0**60, number(2.0**-66), where(large < 2.0**-60, number(2.0**90), number(1.0)))
    a, b = large * shift, small * shift
    square, rest = exact_product(a, a)
    total = fma(b, b, square)
    rest = fma(b, b, square - total) + rest
    root = unit("rsqrt", total)
    wrong, less = exact_product(root, root)
    wrong = fma(-wrong, total, number(1.0)) - fma(less, total, wrong * rest)
    found = fma(root * 0.5, wrong, root) * shift
    found = where(large == 0.0, number(INFINITY), where(large == INFINITY, number(0.0), found))
    return where((x == x) & (y == y) | (large == INFINITY), found, x + y)


def _log2_pair(x: tensor) -> Pair:
    """The logarithm to base 2 of a positive, finite number: of m between √½ and √2, x = m · 2^e, by 2 artanh((m - 1) /
    (m + 1)), to which e is added."""
    small = x < 1.1754943508222875e-38
    bits = reread(where(small, x * 16777216.0, x), int32)
    e = (bits - 0x3F3504F3) >> 23
    m = reread(bits - (e << 23), float32)
    f = m - 1.0
    below, less = ordered_sum(number(2.0), f)
    s = fdiv(f, below)
    s, rest = ordered_sum(s, fdiv(fma(-s, below, f) - s * less, below))
    square = s * s
    tail = s * square * horner(square, [1 / 3, 1 / 5, 1 / 7, 1 / 9])
    high, low = exact_product(s, number(_LOG2_E_TWICE[0]))
    low = fma(s, number(_LOG2_E_TWICE[1]), fma(rest + tail, number(_LOG2_E_TWICE[0]), low))
    turns = convert(e - where(small, 24, 0).to(int32), float32)
    total, rest = exact_sum(turns, high)
    return ordered_sum(total, rest + low)


def _exp2_of_pair(high: tensor, low: tensor) -> tensor:
    bounded = minimum(maximum(high, -252.0), 252.0)
    k = whole(bounded)
    u = ((bounded - k) + where(bounded == high, low, number(0.0))) * _LN2
    near = horner(u, [1.0, 1.0, 1 / 2, 1 / 6, 1 / 24, 1 / 120, 1 / 720, 1 / 5040])
    turns = convert(k, int32)
    first = turns >> 1
    return near * reread((first + 127) << 23, float32) * reread((turns - first + 127) << 23, float32)


def pow_positive(x: tensor, y: tensor) -> tensor:
    """x to the power y of x from 0 to infinity. Not a number where x or y is none."""
    high, low = _log2_pair(where((x > 0.0) & (x < INFINITY), x, number(1.0)))
    bounded = minimum(maximum(y, -1e30), 1e30)
    product, rest = exact_product(bounded, high)
    return power_of(x, y, _exp2_of_pair(product, fma(bounded, low, rest)))
