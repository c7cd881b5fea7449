# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Bessel functions of float64: by polynomials between 0 and 8 times the distance from the nearest zero, by
Hankel's form from 8 on; of whole orders by their recurrence, upward where it is stable, else downward (Miller).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from . import coefficients as known
from .casts import convert
from .doubles import (
    INFINITY,
    NAN,
    exact_product,
    exp_pair,
    log_near_one,
    log_pair,
    number,
    piecewise,
    pow_positive,
    signed,
    sincos,
)
from .emit import current
from .literals import scalar_constant
from .maths import FLOAT64, abs, fma, maximum, minimum, sqrt, where
from .promotion import broadcast_pair
from .reduction import max
from .types import float64, int32
from .value import tensor

_SQRT_OF_ONE_OVER_PI = 0.5641895835477563
_TWO_OVER_PI = 0.6366197723675814


# ---- The first and second kind, of orders 0 and 1


def _hankel(size: tensor, order: int) -> tuple[tensor, tensor]:
    """The functions of the first and of the second kind from 8 on."""
    bounded = minimum(maximum(size, 8.0), 1e305)
    inverse = 8.0 / bounded
    p = piecewise(inverse * inverse, (known.P0, known.P1)[order])
    q = piecewise(inverse * inverse, (known.Q0, known.Q1)[order]) / bounded
    sine, cosine = sincos(bounded)
    # cos and sin of x - π/4, and of x - 3π/4, without the root of two
    turned = (sine + cosine, sine - cosine) if order == 0 else (sine - cosine, -(sine + cosine))
    scale = _SQRT_OF_ONE_OVER_PI / sqrt(bounded)
    first, second = (turned[0] * p - turned[1] * q) * scale, (turned[1] * p + turned[0] * q) * scale
    infinite = size == INFINITY
    return where(infinite, number(0.0), first), where(infinite, number(0.0), second)


def j0(x: tensor) -> tensor:
    """The Bessel function of the first kind of order 0."""
    size = abs(x)
    found = where(size < 8.0, piecewise(minimum(size, 8.0), known.J0), _hankel(size, 0)[0])
    return where(x == x, found, x)


def _j1_near(size: tensor) -> tensor:
    return size * piecewise(minimum(size, 8.0), known.J1)


def j1(x: tensor) -> tensor:
    """The Bessel function of the first kind of order 1."""
    size = abs(x)
    found = where(size < 8.0, _j1_near(size), _hankel(size, 1)[0])
    return where(x == x, where(x < 0.0, -found, where(x == 0.0, x, found)), x)


def _second(x: tensor, low: tensor, middle: tensor, order: int, end: float) -> tensor:
    found = where(x < end, low, where(x < 8.0, middle, _hankel(x, order)[1]))
    found = where(x == 0.0, number(-INFINITY), found)
    return where(x == x, where(x < 0.0, number(NAN), found), x)


def y0(x: tensor) -> tensor:
    """The Bessel function of the second kind of order 0, of x from 0."""
    near = minimum(maximum(x, 5e-324), 2.2)
    root, rest = known.Y0_ROOT
    distance = (near - root) - rest
    ratio = distance * (1 / root)
    log = where(
        abs(ratio) < 0.25, log_near_one(ratio, number(0.0))[0], log_pair(near)[0] - FLOAT64["log"](number(root))
    )
    small = piecewise(near, known.J0)
    low = fma(log * _TWO_OVER_PI, small, distance * (near + root) * piecewise(near * near, known.Y0_LOW))
    return _second(x, low, piecewise(minimum(maximum(x, 2.2), 8.0), known.Y0), 0, 2.2)


def y1(x: tensor) -> tensor:
    """The Bessel function of the second kind of order 1, of x from 0."""
    near = minimum(maximum(x, 5e-324), 1.2)
    logs = log_pair(near)[0] * _j1_near(near)
    low = fma(logs - 1.0 / near, number(_TWO_OVER_PI), near * piecewise(near * near, known.Y1_LOW))
    low = where(near < 1e-300, -_TWO_OVER_PI / near, low)
    return _second(x, low, piecewise(minimum(maximum(x, 1.2), 8.0), known.Y1), 1, 1.2)


# ---- The modified functions


def _modified(x: tensor, low: Sequence[known.Piece], large: Sequence[known.Piece]) -> tensor:
    """I0, or I1 over x below 8."""
    size = abs(x)
    bounded = minimum(size, 8.0)
    near = piecewise(bounded * bounded, low)
    far = minimum(maximum(size, 8.0), 800.0)
    part = piecewise(8.0 / far, large) / sqrt(far)
    return where(size < 8.0, near, exp_pair(far, number(0.0), part))


def i0(x: tensor) -> tensor:
    """The modified Bessel function of the first kind of order 0."""
    return where(x == x, _modified(x, known.I0, known.I0_LARGE), x)


def i1(x: tensor) -> tensor:
    """The modified Bessel function of the first kind of order 1."""
    size = abs(x)
    found = _modified(x, known.I1, known.I1_LARGE)
    return where(x == x, signed(where(size < 8.0, size * found, found), x), x)


# ---- Whole orders


def _loop(
    first: tensor, last: tensor, step: int, carried: Sequence[tensor], body: Callable[..., Sequence[tensor]]
) -> list[tensor]:
    """A loop over an int32 on the device, upward by a step from the first to before the last."""
    builder = current()
    types = [v.type for v in carried]
    with builder.region([int32, *types]) as region:
        arguments = [tensor(region.argument(1 + i), t) for i, t in enumerate(types)]
        results = body(tensor(region.argument(0), int32), *arguments)
        builder.op("scf.yield", [r.handle for r in results])
    bounds = [first.handle, last.handle, scalar_constant(step, int32).handle]
    made = builder.op("scf.for", [*bounds, *(v.handle for v in carried)], types, {}, [region])
    return [tensor(handle, t) for handle, t in zip(made if len(types) > 1 else (made,), types, strict=True)]


def _filled(value: float, like: tensor) -> tensor:
    return where(like == like, number(value), number(value))


def _greatest(n: tensor) -> tensor:
    return max(n, None) if n.shape else n


def _arguments(n: tensor, x: tensor) -> tuple[tensor, tensor, tensor]:
    order, x = broadcast_pair(minimum(maximum(n, 0), 100000), x)
    return order, x, _greatest(order)


def _ended(n: tensor, x: tensor, found: tensor) -> tensor:
    """Orders below 0 have no value; what is no number stays."""
    return where(x == x, where(n < 0, number(NAN), found), x)


def jn(n: tensor, x: tensor) -> tensor:
    """The Bessel function of the first kind of a whole order from 0."""
    order, x, most = _arguments(n, x)
    size = abs(x)
    bounded = minimum(maximum(size, 1e-30), 1e305)
    turn = 2.0 / bounded

    def up(k: tensor, before: tensor, last: tensor) -> list[tensor]:
        here = k < order
        return [where(here, last, before), where(here, fma(convert(k, float64) * turn, last, -before), last)]

    zero, one = j0(size), j1(size)
    upward = _loop(scalar_constant(1, int32), most, 1, [zero, one], up)[1]
    wide = convert(most, float64)
    # from an order so high that what is neglected there is below the last place of what comes out, an even one
    start = (convert(sqrt(wide * 240.0), int32) + most + 40) // 2 * 2

    def down(i: tensor, *carried: tensor) -> list[tensor]:
        before, last, total, found = carried
        k = start - i
        following = fma(convert(k, float64) * turn, last, -before)
        large = abs(following) > 1e200
        before, following, total, found = (where(large, v * 1e-200, v) for v in (last, following, total, found))
        at = k - 1
        found = where(order == at, following, found)
        even = where((at & 1) == 0, where(at == 0, number(1.0), number(2.0)), number(0.0))
        return [before, following, fma(following, even, total), found]

    nothing = _filled(0.0, size)
    first = [nothing, _filled(1e-30, size), nothing, nothing]
    _, _, total, found = _loop(scalar_constant(0, int32), start, 1, first, down)
    downward = found / total
    exponent = convert(order, float64)
    downward = where(size < 1e-30, downward * pow_positive(size * 1e30, exponent), downward)
    usual = where(order == 0, zero, where(order == 1, one, where(size > exponent, upward, downward)))
    odd = (order & 1) == 1
    return _ended(n, x, where((x < 0.0) & odd, -usual, usual))


def yn(n: tensor, x: tensor) -> tensor:
    """The Bessel function of the second kind of a whole order from 0, of x from 0."""
    order, x, most = _arguments(n, x)
    turn = 2.0 / minimum(maximum(x, 5e-324), 1e305)

    def up(k: tensor, before: tensor, last: tensor) -> list[tensor]:
        following = fma(convert(k, float64) * turn, last, -before)
        here = (k < order) & (last > -INFINITY)
        return [where(here, last, before), where(here, following, last)]

    zero, one = y0(x), y1(x)
    found = _loop(scalar_constant(1, int32), most, 1, [zero, one], up)[1]
    return _ended(n, x, where(order == 0, zero, found))


# ---- Lengths


def rhypot(x: tensor, y: tensor) -> tensor:
    """1 / sqrt(x² + y²), of numbers scaled by a power of two so that squares neither overflow nor vanish."""
    large, small = maximum(abs(x), abs(y)), minimum(abs(x), abs(y))
    shift = where(large > 1e150, number(2.0**-600), where(large < 1e-150, number(2.0**600), number(1.0)))
    a, b = large * shift, small * shift
    square, rest = exact_product(a, a)
    other, more = exact_product(b, b)
    total = square + other
    rest = rest + more + (other - (total - square))
    root = 1.0 / sqrt(total)
    wrong, less = exact_product(root, root)
    wrong = fma(-wrong, total, number(1.0)) - (less * total + root * root * rest)
    found = fma(root * 0.5, wrong, root) * shift
    found = where(large == 0.0, number(INFINITY), where(large == INFINITY, number(0.0), found))
    infinite = (abs(x) == INFINITY) | (abs(y) == INFINITY)
    return where(infinite, number(0.0), where((x == x) & (y == y), found, number(NAN)))


__all__ = ["i0", "i1", "j0", "j1", "jn", "rhypot", "y0", "y1", "yn"]
