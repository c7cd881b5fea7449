# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""libdevice's error functions, gamma functions, Bessel functions, and functions of a float's exponent.

Those of float32 are computed in float32, and those of narrower floats through it, but for Bessel functions of orders
that are arguments: they are computed in float64 and rounded once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from weft.language import bessel, bessel_singles, errors, gamma_singles, singles, special, special_singles
from weft.language.casts import convert, reread
from weft.language.doubles import power_of_two
from weft.language.emit import builtin
from weft.language.literals import scalar_constant, to_tensor
from weft.language.maths import abs, where
from weft.language.promotion import operands
from weft.language.types import float32, float64, get_int_dtype, int32, int64
from weft.language.value import tensor


def _floats(name: str, x: Any) -> tensor:
    value = to_tensor(x, f"the argument of '{name}'")
    if not value.dtype.is_floating():
        raise errors.needs_floats(name, value.dtype)
    return value


def _by_width(name: str, wide: Callable[[tensor], tensor], narrow: Callable[[tensor], tensor], x: Any) -> tensor:
    """A function of float64, or of float32, through which narrower floats go."""
    value = _floats(name, x)
    return wide(value) if value.dtype == float64 else convert(narrow(convert(value, float32)), value.dtype)


# ---- Of errors


@builtin
def erfc(x: Any) -> tensor:
    """1 - erf(x), accurate also where that is small; within 3 units of the last place of float64, 4 of float32."""
    return _by_width("erfc", special.erfc, special_singles.erfc, x)


@builtin
def erfcx(x: Any) -> tensor:
    """exp(x²) · erfc(x), within 3 units of the last place."""
    return _by_width("erfcx", special.erfcx, special_singles.erfcx, x)


@builtin
def erfinv(x: Any) -> tensor:
    """The number whose erf is x, within 3 units of the last place of float64, 2 of float32; not a number outside of -1
    to 1.
    """
    return _by_width("erfinv", special.erfinv, special_singles.erfinv, x)


@builtin
def erfcinv(x: Any) -> tensor:
    """The number whose erfc is x, within 3 units of the last place; not a number outside of 0 to 2."""
    return _by_width("erfcinv", special.erfcinv, special_singles.erfcinv, x)


@builtin
def normcdf(x: Any) -> tensor:
    """The part of the standard normal distribution below x, within 4 units of the last place."""
    return _by_width("normcdf", special.normcdf, special_singles.normcdf, x)


@builtin
def normcdfinv(x: Any) -> tensor:
    """The number below which the part x of the standard normal distribution lies, within 5 units of the last place of
    float64, 3 of float32; not a number outside of 0 to 1.
    """
    return _by_width("normcdfinv", special.normcdfinv, special_singles.normcdfinv, x)


# ---- Gamma


@builtin
def tgamma(x: Any) -> tensor:
    """The gamma function, within 5 units of the last place; not a number at negative integers."""
    return _by_width("tgamma", special.tgamma, gamma_singles.tgamma, x)


@builtin
def lgamma(x: Any) -> tensor:
    """The logarithm of the gamma function's size, within 4 units of the last place, or, between -11 and -2.26,
    where it has zeros, within 1e-15 of float64 and 3e-6 of float32; infinite at 0 and negative integers.
    """
    return _by_width("lgamma", special.lgamma, gamma_singles.lgamma, x)


# ---- Bessel


@builtin
def j0(x: Any) -> tensor:
    """The Bessel function of the first kind of order 0: below 8 within 7 units of the last place, also near zeros, else
    within 1e-15 of float64 and 3.5e-7 of float32.
    """
    return _by_width("j0", bessel.j0, bessel_singles.j0, x)


@builtin
def j1(x: Any) -> tensor:
    """The Bessel function of the first kind of order 1, as accurate as :func:`j0`."""
    return _by_width("j1", bessel.j1, bessel_singles.j1, x)


@builtin
def y0(x: Any) -> tensor:
    """The Bessel function of the second kind of order 0, as accurate as :func:`j0`; not a number below 0."""
    return _by_width("y0", bessel.y0, bessel_singles.y0, x)


@builtin
def y1(x: Any) -> tensor:
    """The Bessel function of the second kind of order 1, as accurate as :func:`j0`; not a number below 0."""
    return _by_width("y1", bessel.y1, bessel_singles.y1, x)


def _of_order(name: str, function: Callable[[tensor, tensor], tensor], n: Any, x: Any) -> tensor:
    order = to_tensor(n, f"the order of '{name}'")
    if not order.dtype.is_int() or order.dtype.is_bool():
        raise errors.needs_integers(f"the order of {name}", order.dtype, "cast it with .to(wl.int32)")
    value = _floats(name, x)
    return convert(function(convert(order, int32), convert(value, float64)), value.dtype)


@builtin
def jn(n: Any, x: Any) -> tensor:
    """The Bessel function of the first kind of an integer order, which may differ by element: within 5e-12. Not a
    number for orders below 0. A loop on the device runs to the highest order of the block.
    """
    return _of_order("jn", bessel.jn, n, x)


@builtin
def yn(n: Any, x: Any) -> tensor:
    """The Bessel function of the second kind of an integer order, as :func:`jn`; not a number for x below 0."""
    return _of_order("yn", bessel.yn, n, x)


@builtin
def cyl_bessel_i0(x: Any) -> tensor:
    """The modified Bessel function of the first kind of order 0, within 6 units of the last place."""
    return _by_width("cyl_bessel_i0", bessel.i0, bessel_singles.i0, x)


@builtin
def cyl_bessel_i1(x: Any) -> tensor:
    """The modified Bessel function of the first kind of order 1, within 6 units of the last place."""
    return _by_width("cyl_bessel_i1", bessel.i1, bessel_singles.i1, x)


# ---- Lengths, exponents, neighbours


@builtin
def rhypot(x: Any, y: Any) -> tensor:
    """1 / sqrt(x² + y²), also where the squares leave the type's range; within 1 unit of the last place."""
    x, y = operands("rhypot", _floats("rhypot", x), y)
    if x.dtype == float64:
        return bessel.rhypot(x, y)
    return convert(singles.rhypot(convert(x, float32), convert(y, float32)), x.dtype)


def _exponent(value: tensor) -> tensor:
    """The int32 exponent of a float32 or float64 that is neither 0 nor infinite."""
    bits, digits, least = (32, 23, -126) if value.dtype == float32 else (64, 52, -1022)
    size = abs(value)
    small = size < 2.0**least
    biased = reread(where(small, size * 2.0 ** (digits + 1), size), get_int_dtype(bits, True)) >> digits
    return convert(biased, int32) - where(small, 1 - least + digits + 1, 1 - least)


@builtin
def ilogb(x: Any) -> tensor:
    """The exponent of x as an int32: the n for which |x| / 2ⁿ is from 1 to below 2. The least int32 for 0 and what is
    not a number, the greatest for infinities.
    """
    value = _floats("ilogb", x)
    value = value if value.dtype == float64 else convert(value, float32)
    found = where(abs(value) == float("inf"), 2147483647, _exponent(value))
    return where((value == 0.0) | (value != value), -2147483648, found)


@builtin
def logb(x: Any) -> tensor:
    """The exponent of x as a float: -inf of 0, inf of infinities."""

    def function(value: tensor) -> tensor:
        found = where(abs(value) < float("inf"), convert(_exponent(value), value.dtype), abs(value))
        return where(value == 0.0, scalar_constant(float("-inf"), value.dtype), found)

    return _by_width("logb", function, function, x)


@builtin
def nextafter(x: Any, y: Any) -> tensor:
    """The float of x's type that is next to x in the direction of y; y where they are equal."""
    x, y = operands("nextafter", _floats("nextafter", x), y)
    width = x.dtype.primitive_bitwidth
    kind = get_int_dtype(width, True)
    bits, sign = reread(x, kind), reread(y, kind) & scalar_constant(-(1 << (width - 1)), kind)
    away = (x < y).to(kind) == (x > 0.0).to(kind)
    moved = where(away, bits + 1, bits - 1)
    moved = where(x == 0.0, sign | 1, moved)
    found = where(x == y, y, reread(moved, x.dtype))
    return where((x == x) & (y == y), found, x + y)


@builtin
def rcp64h(x: Any) -> tensor:
    """The upper 32 bits of 1 / x of float64, as a float64 whose lower bits are clear; numbers below the normal range
    count as 0.
    """
    value = convert(_floats("rcp64h", x), float64)
    tiny = power_of_two(scalar_constant(-1022, int64))
    value = where(abs(value) < tiny, value * 0.0, value)
    inverse = 1.0 / value
    bits = reread(inverse, int64)
    rounded = (bits + (1 << 31)) & scalar_constant(-(1 << 32), int64)
    found = where(abs(inverse) < float("inf"), reread(rounded, float64), inverse)
    return where(abs(inverse) < tiny, inverse * 0.0, found)
