# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Elementary functions of float64, which the machine has no instructions for: within two units of the last place.

A *pair* is a number as the sum of two float64 (in ``singles``, float32), of which the second is at most half a unit of
the first one's last place. Products and sums are fused where the back end likes; a product whose rounding matters is
``fma(a, b, 0)``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from . import coefficients as known
from .casts import convert, reread
from .emit import current
from .literals import scalar_constant
from .maths import FLOAT64, abs, fma, maximum, minimum, umulhi, where
from .types import float64, int64, uint64
from .value import tensor

Pair = tuple[tensor, tensor]
INFINITY, NAN = float("inf"), float("nan")
_LAST_DIGIT = 1.5 * 2.0**52  # whose last digit is 1


def number(value: float) -> tensor:
    """A constant of float64."""
    return scalar_constant(value, float64)


def pair(values: Sequence[float]) -> Pair:
    """A constant pair."""
    return number(values[0]), number(values[1])


def whole(x: tensor) -> tensor:
    """The nearest integer, halves to the even one."""
    return tensor(current().op("math.roundeven", [x.handle], [x.type]), x.type)


def signed(size: tensor, sign: tensor) -> tensor:
    """The first with the sign of the second."""
    return tensor(current().op("math.copysign", [size.handle, sign.handle], [size.type]), size.type)


# ---- Pairs and polynomials


def ordered_sum(a: tensor, b: tensor) -> Pair:
    """a + b, where a is 0 or not the smaller."""
    total = a + b
    return total, b - (total - a)


def exact_sum(a: tensor, b: tensor) -> Pair:
    """a + b."""
    total = a + b
    rest = total - a
    return total, (a - (total - rest)) + (b - rest)


def exact_product(a: tensor, b: tensor) -> Pair:
    """a · b."""
    product = fma(a, b, scalar_constant(0.0, a.dtype))
    return product, fma(a, b, -product)


def pair_sum(a: Pair, b: Pair) -> Pair:
    """a + b."""
    total, rest = exact_sum(a[0], b[0])
    return ordered_sum(total, rest + (a[1] + b[1]))


def pair_product(a: Pair, b: Pair) -> Pair:
    """a · b."""
    product, rest = exact_product(a[0], b[0])
    return ordered_sum(product, fma(a[0], b[1], fma(a[1], b[0], rest)))


def horner(u: tensor, powers: Sequence[Any]) -> tensor:
    """A polynomial, lowest power first."""
    numbers = [each if isinstance(each, tensor) else scalar_constant(each, u.dtype) for each in powers]
    total = numbers[-1]
    for coefficient in reversed(numbers[:-1]):
        total = fma(total, u, coefficient)
    return total


def piecewise(x: tensor, pieces: Sequence[known.Piece]) -> tensor:
    """What the piece in which x lies gives; the first and the last reach on."""
    count = max(len(each.powers) for each in pieces)
    below = [x < each.end for each in pieces[:-1]]

    def chosen(values: Sequence[float]) -> tensor:
        found = number(values[-1])
        for condition, value in reversed(list(zip(below, values[:-1], strict=True))):
            found = where(condition, number(value), found)
        return found

    u = (x - chosen([p.center for p in pieces])) * chosen([1 / p.half for p in pieces])
    result = horner(u, [chosen([(p.powers + (0.0,) * count)[k] for p in pieces]) for k in range(count)])
    if any(p.root for p in pieces):
        roots = [p.root or (0.0, 0.0) for p in pieces]
        distance = (x - chosen([r[0] for r in roots])) - chosen([r[1] for r in roots])
        for condition, p in zip(below, pieces, strict=False):
            if p.root is None:
                distance = where(condition, number(1.0), distance)
        result = result * distance
    return result


# ---- Exponentials


def power_of_two(exponent: tensor) -> tensor:
    """2 to the power of an int64 between -1023, which gives 0, and 1024, which gives infinity."""
    return reread((exponent + 1023) << 52, float64)


def scaled(x: tensor, exponent: tensor) -> tensor:
    """x · 2^exponent of an int64, in two steps so that neither factor leaves the range."""
    first = exponent >> 1
    return x * power_of_two(first) * power_of_two(exponent - first)


def exp_parts(x: tensor, low: tensor) -> tuple[Pair, Pair, tensor]:
    """exp(x + low) is 2^k of the first pair, which is 1 more than the second; and k."""
    x = minimum(maximum(x, -1400.0), 1400.0)
    k = whole(x * known.LOG2_E[0])
    high, rest = ordered_sum(fma(-k, number(known.LN2[0]), x), fma(-k, number(known.LN2[1]), low))
    factorials = [0.5]
    for n in range(3, 16):
        factorials.append(factorials[-1] / n)
    more = fma(high * high, horner(high, factorials), fma(rest, high, rest))
    one, less = ordered_sum(number(1.0), high)
    return ordered_sum(one, less + more), ordered_sum(high, more), convert(k, int64)


def exp_pair(x: tensor, low: tensor, factor: tensor | None = None) -> tensor:
    """exp(x + low), times a factor that may keep it from leaving the range."""
    (high, rest), _, k = exp_parts(x, low)
    return scaled(high + rest if factor is None else fma(high, factor, rest * factor), k)


def _known(x: tensor, result: tensor) -> tensor:
    """The result, but x where that is not a number."""
    return where(x == x, result, x)


def _turned(x: tensor, rate: float) -> tuple[tensor, tensor]:
    """The integer next to x · rate, of which there are at most 2^30: as a float64, and as an int64. A sum with
    1.5 · 2^52 has no digits after the point, and the integer in its last ones."""
    moved = fma(x, number(rate), number(_LAST_DIGIT))
    return moved - _LAST_DIGIT, reread(moved, int64) - reread(number(_LAST_DIGIT), int64)


def exp_of_bounded(x: tensor) -> tuple[tensor, tensor]:
    """exp(x) is 2^k of the first; of an x whose k are few."""
    turns, k = _turned(x, known.LOG2_E[0])
    high, low = known.LN2_SPLIT
    rest = fma(turns, number(-low), fma(turns, number(-high), x))
    return horner(rest, (1.0, 1.0, *known.EXP)), k


def exp(x: tensor, halved: bool = False) -> tensor:
    """e to the power x, or half of that, also where all of it would be infinite."""
    part, k = exp_of_bounded(minimum(maximum(x, -1400.0), 1400.0))
    return _known(x, scaled(part, k - 1 if halved else k))


def exp2(x: tensor) -> tensor:
    """2 to the power x."""
    bounded = minimum(maximum(x, -2000.0), 2000.0)
    turns, k = _turned(bounded, 1.0)
    return _known(x, scaled(horner(bounded - turns, (1.0, known.LN2[0], *known.EXP2)), k))


def exp10(x: tensor) -> tensor:
    """10 to the power x. What rounding takes of the logarithm of 10, which is more than 2, or of what it multiplies,
    would be up to a third of a unit each."""
    bounded = minimum(maximum(x, -600.0), 600.0)
    turns, k = _turned(bounded, known.LOG2_10[0])
    high, low = known.LOG10_2_SPLIT
    most = fma(turns, number(-high), bounded)
    rest = fma(turns, number(-low), most)
    lost = fma(turns, number(-low), most - rest)
    rate, more = pair(known.LN10)
    little = fma(lost, rate, rest * fma(rest, horner(rest, known.EXP10), more))
    return _known(x, scaled(fma(rest, rate, little) + 1.0, k))


def expm1(x: tensor) -> tensor:
    """exp(x) - 1."""
    (high, rest), (less, little), k = exp_parts(x, number(0.0))
    bound = minimum(k, 1023)
    scale = power_of_two(maximum(bound, -1000))
    large = (high * scale - 1.0) + rest * scale
    result = where(k == 0, less + little, where(k > 1000, exp_pair(x, number(0.0)), large))
    return where(x == 0.0, x, _known(x, result))


def tanh(x: tensor) -> tensor:
    """The hyperbolic tangent."""
    less = expm1(minimum(abs(x), 40.0) * 2.0)
    return _known(x, signed(less / (less + 2.0), x))


# ---- Logarithms


def parts(x: tensor) -> tuple[tensor, tensor]:
    """A positive number's m between √½ and √2 and the int64 exponent of x = m · 2^exponent."""
    small = x < 2.2250738585072014e-308
    bits = reread(where(small, x * 2.0**54, x), int64)
    exponent = (bits - 0x3FE6A09E667F3BCD) >> 52
    return reread(bits - (exponent << 52), float64), exponent - where(small, 54, 0).to(int64)


def log_near_one(f: tensor, low: tensor) -> Pair:
    """The logarithm of 1 + f + low for f between -0.3 and 0.42, by 2 artanh(f / (2 + f))."""
    below, less = ordered_sum(number(2.0), f)
    s = f / below
    s, rest = ordered_sum(s, (fma(-s, below, f) - s * (less + low) + low) / below)
    square = pair_product((s, rest), (s, rest))
    cube = pair_product((s, rest), square)
    tail = square[0] * cube[0] * horner(square[0], [2.0 / n for n in range(5, 31, 2)])
    high, little = pair_sum((s * 2.0, rest * 2.0), pair_product(cube, pair(known.TWO_THIRDS)))
    return ordered_sum(high, little + tail)


def log_pair(x: tensor, low: tensor | None = None) -> Pair:
    """The logarithm of a positive, finite x + low."""
    m, exponent = parts(x)
    rest = number(0.0) if low is None else low * power_of_two(maximum(-exponent, -1023))
    near = log_near_one(*exact_sum(m - 1.0, rest)) if low is not None else log_near_one(m - 1.0, rest)
    turns = convert(exponent, float64)
    high, little = exact_product(turns, number(known.LN2[0]))
    return pair_sum((high, fma(turns, number(known.LN2[1]), little)), near)


def _of_positive(x: tensor, result: tensor) -> tensor:
    """A logarithm's values at 0, infinity and where there is none."""
    bounded = where(x < INFINITY, result, x)
    return where(x > 0.0, bounded, where(x == 0.0, number(-INFINITY), number(NAN)))


def _log_parts(m: tensor) -> tuple[tensor, tensor, tensor]:
    """The logarithm of m between √½ and √2 is f - (half - more): f is m - 1, half is f²/2, and more is s · (half + r)
    of s = f / (2 + f), where 2 artanh(s) is 2 s + s r."""
    f = m - 1.0
    s = f / (f + 2.0)
    square = s * s
    half = f * f * 0.5
    return f, half, s * fma(square, horner(square, known.LOG), half)


def log(x: tensor) -> tensor:
    """The natural logarithm."""
    m, exponent = parts(x)
    f, half, more = _log_parts(m)
    turns = convert(exponent, float64)
    high, low = known.LN2_SPLIT
    return _of_positive(x, fma(turns, number(high), f - (half - fma(turns, number(low), more))))


def _log_to_base(x: tensor, factor: Sequence[float], turn: Sequence[float]) -> tensor:
    """The natural logarithm of m times a factor in two parts, and the exponent times what one turn is in two."""
    m, exponent = parts(x)
    f, half, more = _log_parts(m)
    high = f - half
    low = ((f - high) - half) + more
    product, rest = exact_product(high, number(factor[0]))
    rest = fma(high, number(factor[1]), fma(low, number(factor[0]), rest))
    turns = convert(exponent, float64)
    moved = turns if turn[0] == 1.0 else turns * turn[0]
    if turn[1]:
        rest = fma(turns, number(turn[1]), rest)
    total = moved + product
    return _of_positive(x, total + (((moved - total) + product) + rest))


def log2(x: tensor) -> tensor:
    """The logarithm to base 2."""
    return _log_to_base(x, known.LOG2_E, (1.0, 0.0))


def log10(x: tensor) -> tensor:
    """The logarithm to base 10."""
    return _log_to_base(x, known.LOG10_E, known.LOG10_2_SPLIT)


def log1p(x: tensor) -> tensor:
    """The logarithm of 1 + x."""
    total, rest = exact_sum(number(1.0), x)
    return where(abs(x) < 2.0**-54, x, _of_positive(total, log_pair(total, rest)[0]))


def power_of(x: tensor, y: tensor, usual: tensor) -> tensor:
    """x to the power y of x from 0 to infinity, which is ``usual`` between these. Not a number where x or y is none."""
    zero, infinity = (scalar_constant(each, x.dtype) for each in (0.0, INFINITY))
    ends = where(x == 0.0, where(y > 0.0, zero, infinity), where(y > 0.0, infinity, zero))
    result = where((x > 0.0) & (x < INFINITY), usual, ends)
    return where((x == x) & (y == y), result, x + y)


def pow_positive(x: tensor, y: tensor) -> tensor:
    """x to the power y of x from 0 to infinity. Not a number where x or y is none."""
    high, low = log_pair(x)
    bounded = minimum(maximum(y, -1e305), 1e305)
    high, low = pair_product((bounded, number(0.0)), (high, low))
    return power_of(x, y, exp_pair(high, where(abs(high) < 1400.0, low, number(0.0))))


# ---- Angles


def _far_quarters(x: tensor) -> tuple[Pair, tensor]:
    """Of a positive x from 2^50: what it is past a multiple of π/2, and which, by the digits of 2/π that matter."""
    bits = reread(x, int64)
    mantissa = reread((bits & 0xFFFFFFFFFFFFF) | 0x10000000000000, uint64)
    skipped = ((bits >> 52) & 2047) - (1075 + 2 - 64)
    place, shift = skipped >> 6, reread(skipped & 63, uint64)
    words = (0, *known.TWO_OVER_PI)
    chosen = [scalar_constant(each, uint64) for each in words[:4]]
    for start in range(1, 18):
        here = place == start
        chosen = [where(here, scalar_constant(words[start + k], uint64), old) for k, old in enumerate(chosen)]
    rest = 63 - shift
    a, b, c = ((chosen[k] << shift) | ((chosen[k + 1] >> 1) >> rest) for k in range(3))
    low = mantissa * b
    total = low + umulhi(mantissa, c)
    high = mantissa * a + umulhi(mantissa, b) + (total < low).to(uint64)
    quarter = reread((high + (1 << 61)) >> 62, int64)
    fraction = reread(high, int64) - (quarter << 62)
    upper = (fraction >> 11) << 11
    little = fma(convert(total, float64), number(2.0**-64), convert(fraction - upper, float64))
    past = ordered_sum(convert(upper, float64), little)
    return pair_product((past[0] * 2.0**-62, past[1] * 2.0**-62), pair(known.HALF_PI)), quarter


def _far_or_near(size: tensor, near: Pair, quarter: tensor) -> tuple[Pair, tensor]:
    """What ``_far_quarters`` says of those of a block from 2^50, by a branch, as hardly any are; else what is given."""
    if not size.shape:  # the function of a reduction, say, has no branches
        far, its = _far_quarters(size)
        beyond = size >= 2.0**50
        high, low = (where(beyond, f, n) for f, n in zip(far, near, strict=True))
        return (high, low), where(beyond, its, quarter)
    builder, values = current(), (size, *near, quarter)
    kinds = [value.dtype for value in values]
    with builder.region(kinds) as region:
        arguments = [tensor(region.argument(i), kind) for i, kind in enumerate(kinds)]
        with builder.region([]) as then:
            far, its = _far_quarters(arguments[0])
            builder.op("scf.yield", [far[0].handle, far[1].handle, its.handle])
        with builder.region([]) as otherwise:
            builder.op("scf.yield", [each.handle for each in arguments[1:]])
        chosen = builder.op("scf.if", [(arguments[0] >= 2.0**50).handle], kinds[1:], {}, [then, otherwise])
        builder.op("tile.yield", list(chosen))
    types = [value.type for value in values[1:]]
    made = builder.op("tile.map", [value.handle for value in values], types, {"pack": builder.i32(1)}, [region])
    high, low, quarter = (tensor(handle, kind) for handle, kind in zip(made, types, strict=True))
    return (high, low), quarter


def quarters(x: tensor) -> tuple[Pair, tensor]:
    """What x is past the nearest multiple of π/2, and the multiple modulo 4 as an int64."""
    size = abs(x)
    k = whole(minimum(size, 2.0**50) * known.TWO_OVER_PI_NEAR[0])
    first, first_rest = exact_product(k, number(known.HALF_PI[0]))
    second, second_rest = exact_product(k, number(known.HALF_PI[1]))
    high, low = exact_sum(size - first, -first_rest)
    high, rest = exact_sum(high, -second)
    near = ordered_sum(high, low + rest - second_rest - k * known.HALF_PI[2])
    (high, low), quarter = _far_or_near(size, near, convert(k, int64))
    negative = x < 0.0
    return (where(negative, -high, high), where(negative, -low, low)), where(negative, -quarter, quarter)


def _series(first: int) -> list[float]:
    """(-1)^n / (2n + first)!"""
    powers, term = [], 1.0
    for n in range(1, first + 1):
        term /= n
    for n in range(9):
        powers.append(term)
        term /= -((2 * n + first + 1) * (2 * n + first + 2))
    return powers


def sincos(x: tensor) -> Pair:
    """The sine and the cosine."""
    (r, low), quarter = quarters(x)
    square = r * r
    sine = r + fma(r * square, horner(square, [-p for p in _series(3)]), fma(low, square * -0.5, low))
    one, rest = ordered_sum(number(1.0), square * -0.5)
    cosine = one + (rest + fma(square * square, horner(square, _series(4)), -(r * low)))
    odd = (quarter & 1) == 1
    first, second = where(odd, cosine, sine), where(odd, sine, cosine)
    known_ = abs(x) < INFINITY
    first = where((quarter & 2) != 0, -first, first)
    second = where(((quarter + 1) & 2) != 0, -second, second)
    return where(known_, first, number(NAN)), where(known_, second, number(NAN))


def sin(x: tensor) -> tensor:
    """The sine."""
    return where(x == 0.0, x, sincos(x)[0])


def cos(x: tensor) -> tensor:
    """The cosine."""
    return sincos(x)[1]


def atan(x: tensor) -> tensor:
    """The angle whose tangent is x: by the reciprocal to at most 1, by the difference to π/4 to at most √2 - 1."""
    size = abs(x)
    inverted = size > 1.0
    one = number(1.0)
    top, bottom = where(inverted, -one, size), where(inverted, size, one)
    shifted = abs(top) > 0.41421356237309503 * bottom
    turn = where(inverted, one, -one)
    above, more = exact_sum(top, where(shifted, turn * bottom, number(0.0)))
    below, under = exact_sum(bottom, where(shifted, -turn * top, number(0.0)))
    known_ = size < INFINITY
    ratio = where(known_, above / below, number(0.0))
    low = where(known_, (fma(-ratio, below, above) + (more - ratio * under)) / below, number(0.0))
    square = ratio * ratio
    angle = ratio + fma(ratio * square, piecewise(square, known.ATAN), low)
    steps = where(inverted, number(2.0), number(0.0)) + where(shifted & known_, -turn, number(0.0))
    half = steps * 0.5
    angle = fma(half, number(known.HALF_PI[0]), fma(half, number(known.HALF_PI[1]), angle))
    return _known(x, signed(angle, x))


FLOAT64.update(exp=exp, exp2=exp2, exp10=exp10, expm1=expm1, tanh=tanh, log=log, log2=log2, log10=log10, log1p=log1p)
FLOAT64.update(sin=sin, cos=cos, atan=atan)
