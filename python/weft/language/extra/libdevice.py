# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""NVIDIA's names of functions of numbers (CUDA's libdevice), made of the language's own: element by element, operands
broadcast together, 16-bit floats through float32.

Functions whose names begin with ``fast_`` are those of :mod:`weft.language.extra.fast`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from weft.language import coefficients, doubles, errors, singles, whole_powers
from weft.language.casts import convert, reread
from weft.language.emit import builtin, current
from weft.language.literals import scalar_constant, to_tensor
from weft.language.maths import (
    FLOAT64,
    abs,
    clamp,
    cos,
    exp,
    exp2,
    fdiv,
    fma,
    log,
    log2,
    maximum,
    minimum,
    rsqrt,
    sin,
    sqrt,
    tanh,
    umulhi,
    where,
)
from weft.language.maths import ceil as maths_ceil
from weft.language.maths import erf as erf
from weft.language.maths import floor as maths_floor
from weft.language.operators import add, and_, compare, mod, mul, shr, sub, truediv
from weft.language.promotion import broadcast_pair, operands
from weft.language.types import float32, float64, get_int_dtype, int32, int64, uint32, uint64
from weft.language.value import tensor

from . import fast, instructions
from .instructions import brev as brev
from .instructions import byte_perm as byte_perm
from .instructions import double2hiint as double2hiint
from .instructions import double2loint as double2loint
from .instructions import hadd as hadd
from .instructions import hiloint2double as hiloint2double
from .instructions import mul24 as mul24
from .instructions import rhadd as rhadd
from .instructions import sad as sad
from .special import cyl_bessel_i0 as cyl_bessel_i0
from .special import cyl_bessel_i1 as cyl_bessel_i1
from .special import erfc as erfc
from .special import erfcinv as erfcinv
from .special import erfcx as erfcx
from .special import erfinv as erfinv
from .special import ilogb as ilogb
from .special import j0 as j0
from .special import j1 as j1
from .special import jn as jn
from .special import lgamma as lgamma
from .special import logb as logb
from .special import nextafter as nextafter
from .special import normcdf as normcdf
from .special import normcdfinv as normcdfinv
from .special import rcp64h as rcp64h
from .special import rhypot as rhypot
from .special import tgamma as tgamma
from .special import y0 as y0
from .special import y1 as y1
from .special import yn as yn

_LN2, _LOG10_E, _HALF_PI = 0.6931471805599453, 0.4342944819032518, 1.5707963267948966


def _floats(x: Any, name: str) -> tensor:
    value = to_tensor(x, f"the argument of '{name}'")
    if not value.dtype.is_floating():
        raise errors.needs_floats(name, value.dtype)
    return value


def _wide(x: Any, name: str) -> tensor:
    value = _floats(x, name)
    return value if value.dtype.primitive_bitwidth >= 32 else convert(value, float32)


def _same_type(name: str, function: Callable[[tensor], tensor], x: Any) -> tensor:
    """A function computed in float32 or float64, in the argument's type."""
    if to_tensor(x).dtype == float64 and name in FLOAT64:
        return FLOAT64[name](to_tensor(x))
    return convert(function(_wide(x, name)), to_tensor(x).dtype)


def _operation(operation: str, *values: tensor) -> tensor:
    return tensor(current().op(f"math.{operation}", [v.handle for v in values], [values[0].type]), values[0].type)


# ---- Rounding


@builtin
def round(x: Any) -> tensor:
    """To the nearest integer, halves away from zero; a float."""

    def function(v: tensor) -> tensor:
        half = _operation("copysign", *broadcast_pair(scalar_constant(0.5, v.dtype), v))
        return _operation("trunc", instructions.INSTRUCTIONS["add_rz"](v, half))  # no sum comes up to the next integer

    return _same_type("round", function, x)


@builtin
def rint(x: Any) -> tensor:
    """To the nearest integer, halves to the even one; a float."""
    return _same_type("rint", lambda v: _operation("roundeven", v), x)


@builtin
def nearbyint(x: Any) -> tensor:
    """As :func:`rint`."""
    return rint(x)


@builtin
def trunc(x: Any) -> tensor:
    """Toward zero; a float."""
    return _same_type("trunc", lambda v: _operation("trunc", v), x)


@builtin
def llrint(x: Any) -> tensor:
    """To the nearest int64, halves to the even one."""
    value = _wide(x, "llrint")
    return instructions.INSTRUCTIONS["double2ll_rn" if value.dtype == float64 else "float2ll_rn"](value)


@builtin
def llround(x: Any) -> tensor:
    """To the nearest int64, halves away from zero."""
    return convert(round(x), int64)


@builtin
def fmod(x: Any, y: Any) -> tensor:
    """x - y·trunc(x / y), of the sign of x; exact."""
    x, y = operands("fmod", _floats(x, "fmod"), y)
    return mod(x, y)


# ---- Signs and kinds


@builtin
def isnan(x: Any) -> tensor:
    """Whether a float is not a number; int1."""
    value = _floats(x, "isnan")
    return compare("!=", value, value)


@builtin
def isinf(x: Any) -> tensor:
    """Whether a float is infinite; int1."""
    return compare("==", abs(_floats(x, "isinf")), float("inf"))


@builtin
def isfinited(x: Any) -> tensor:
    """Whether a float is finite; int1."""
    return compare("<", abs(_floats(x, "isfinited")), float("inf"))


@builtin
def finitef(x: Any) -> tensor:
    """Whether a float is finite; int1."""
    return isfinited(x)


@builtin
def signbit(x: Any) -> tensor:
    """Whether a float's sign is set, -0's and that of not-a-numbers too; int1."""
    value = _floats(x, "signbit")
    return compare("<", reread(value, get_int_dtype(value.dtype.primitive_bitwidth, True)), 0)


@builtin
def copysign(x: Any, y: Any) -> tensor:
    """x with the sign of y."""
    x, y = operands("copysign", _floats(x, "copysign"), y)
    return _operation("copysign", x, y)


@builtin
def saturatef(x: Any) -> tensor:
    """x held between 0 and 1; 0 of what is not a number."""
    return clamp(_floats(x, "saturatef"), 0.0, 1.0)


@builtin
def fdim(x: Any, y: Any) -> tensor:
    """x - y where it is positive, else 0."""
    x, y = operands("fdim", _floats(x, "fdim"), y)
    return where(compare("<=", x, y), scalar_constant(0.0, x.dtype), sub(x, y))


# ---- Exponentials and logarithms


@builtin
def log1p(x: Any) -> tensor:
    """The natural logarithm of 1 + x, also where x is small."""
    return _same_type("log1p", lambda v: _operation("log1p", v), x)


def _exponential(v: tensor, high: float = 1.4426950216293335, low: float = 1.925963033500011e-08) -> tensor:
    """e to a power of float32, or another base whose logarithm to base 2 is given in two parts: what the product lacks
    of the power of 2 is a factor near 1.
    """
    if v.dtype == float64:
        return exp(v)
    power = mul(v, high)
    found = exp2(power)
    lacking = mul(fma(v, scalar_constant(low, v.dtype), fma(v, scalar_constant(high, v.dtype), -power)), _LN2)
    return where(
        and_(compare("<", abs(v), 1000.0), compare("<", found, float("inf"))), fma(found, lacking, found), found
    )


@builtin
def expm1(x: Any) -> tensor:
    """exp(x) - 1, also where x is small: by its series below 0.35, whose next term is below half a unit in float32."""

    def function(v: tensor) -> tensor:
        series = scalar_constant(1.0 / 5040, v.dtype)
        for factorial in (720, 120, 24, 6, 2, 1):
            series = fma(series, v, scalar_constant(1.0 / factorial, v.dtype))
        return where(compare("<", abs(v), 0.35), mul(series, v), sub(_exponential(v), 1.0))

    return _same_type("expm1", function, x)


@builtin
def exp10(x: Any) -> tensor:
    """10 to the power x."""
    return _same_type("exp10", lambda v: _exponential(v, 3.3219280242919922, 7.059527215199887e-08), x)


@builtin
def log10(x: Any) -> tensor:
    """The logarithm to base 10."""
    return _same_type("log10", lambda v: mul(log(v), _LOG10_E), x)


@builtin
def pow(x: Any, y: Any) -> tensor:
    """x to the power y, within four units of the last place. Negative x have a power where y is an integer. ``y`` may
    be an integer; powers of small ones are products, where all of a block have the same."""
    base, given = _wide(x, "pow"), to_tensor(y, "the exponent of 'pow'")
    known = whole_powers.known_exponent(given, base)
    if known:
        result = whole_powers.by_products(base, known)
    elif given.dtype.is_int() and not given.shape and base.shape and base.dtype == float32 and known is None:
        result = whole_powers.by_branch(base, given, lambda: _power(base, given))
    else:
        result = _power(base, given)
    return convert(result, to_tensor(x).dtype)


def _power(base: tensor, exponent: tensor) -> tensor:
    exponent = convert(exponent, base.dtype)
    of_positive = doubles.pow_positive if base.dtype == float64 else singles.pow_positive
    size = of_positive(*broadcast_pair(abs(base), exponent))
    whole = compare("==", _operation("trunc", exponent), exponent)
    half = mul(exponent, 0.5)
    odd = and_(whole, compare("!=", _operation("trunc", half), half))
    signed = where(odd, _operation("copysign", size, base), size)  # also of -0
    undefined = and_(and_(compare("<", base, 0.0), ~whole), compare(">", base, float("-inf")))
    signed = where(undefined, scalar_constant(float("nan"), base.dtype), signed)
    one = compare("==", exponent, 0.0) | compare("==", base, 1.0)
    return where(one, scalar_constant(1.0, base.dtype), signed)


@builtin
def cbrt(x: Any) -> tensor:
    """The real cube root."""

    def function(v: tensor) -> tensor:
        small = compare("<", abs(v), 1e-30)  # whose squares would lose bits below the range
        size = where(small, mul(abs(v), 2.0**60), abs(v))
        root = exp2(mul(log2(size), 1.0 / 3.0))
        better = sub(root, truediv(fma(mul(root, root), root, -size), mul(mul(root, root), 3.0)))
        usual = and_(compare(">", size, 0.0), compare("<", size, float("inf")))
        root = where(usual, better, size)
        return _operation("copysign", where(small, mul(root, 2.0**-20), root), v)

    return _same_type("cbrt", function, x)


@builtin
def hypot(x: Any, y: Any) -> tensor:
    """sqrt(x² + y²), scaled so that squares neither overflow nor vanish."""
    x, y = operands("hypot", _wide(x, "hypot"), y)
    large, small = maximum(abs(x), abs(y)), minimum(abs(x), abs(y))
    ratio = truediv(small, where(compare("==", large, 0.0), scalar_constant(1.0, large.dtype), large))
    size = mul(large, sqrt(fma(ratio, ratio, scalar_constant(1.0, large.dtype))))
    known = and_(compare("==", x, x), compare("==", y, y))  # the larger and smaller one are those that are numbers
    return where(compare("==", large, float("inf")), large, where(known, size, add(x, y)))


# ---- Angles and hyperbolas


@builtin
def tan(x: Any) -> tensor:
    """The tangent of an angle in radians."""
    return _same_type("tan", lambda v: truediv(sin(v), cos(v)), x)


def _turned(v: tensor, value: Callable[[tensor], tensor]) -> tensor:
    """A function of the distance from the nearest integer, which is exact, negated at odd ones."""
    nearest = _operation("roundeven", v)
    half = mul(nearest, 0.5)
    found = value(sub(v, nearest))
    return where(compare("!=", _operation("trunc", half), half), -found, found)


@builtin
def sinpi(x: Any) -> tensor:
    """sin(π x)."""
    return _same_type("sinpi", lambda v: _turned(v, lambda r: sin(mul(r, 2 * _HALF_PI))), x)


@builtin
def cospi(x: Any) -> tensor:
    """cos(π x)."""
    return _same_type("cospi", lambda v: _turned(v, lambda r: sin(mul(sub(0.5, abs(r)), 2 * _HALF_PI))), x)


def _half_exponential(v: tensor) -> tensor:
    """Half of e to a power, which overflows later than the power does."""
    if v.dtype == float64:
        return doubles.exp(v, halved=True)
    root = _exponential(mul(v, 0.5))
    return mul(mul(root, 0.5), root)


@builtin
def sinh(x: Any) -> tensor:
    """The hyperbolic sine."""

    def function(v: tensor) -> tensor:
        less, half = expm1(abs(v)), _half_exponential(abs(v))
        if v.dtype == float64:  # the larger term is rounded once, and so is what is taken from it
            near = sub(less, truediv(mul(less, less), add(add(less, less), 2.0)))
            size = where(compare("<", abs(v), 0.88), near, sub(half, truediv(0.25, half)))
        else:
            size = mul(0.5, add(less, truediv(less, add(less, 1.0))))
            size = where(compare("<", abs(v), 22.0), size, half)
        return _operation("copysign", size, v)

    return _same_type("sinh", function, x)


@builtin
def cosh(x: Any) -> tensor:
    """The hyperbolic cosine."""

    def function(v: tensor) -> tensor:
        half = _half_exponential(abs(v))
        return add(half, truediv(0.25, half))

    return _same_type("cosh", function, x)


@builtin
def asinh(x: Any) -> tensor:
    """The inverse of the hyperbolic sine."""

    def function(v: tensor) -> tensor:
        size = abs(v)
        square = mul(size, size)
        near = log1p(add(size, truediv(square, add(1.0, sqrt(add(square, 1.0))))))
        far = add(log(size), _LN2)
        return _operation("copysign", where(compare("<", size, 1e8), near, far), v)

    return _same_type("asinh", function, x)


@builtin
def acosh(x: Any) -> tensor:
    """The inverse of the hyperbolic cosine, of x from 1."""

    def function(v: tensor) -> tensor:
        less = sub(v, 1.0)
        near = log1p(add(less, sqrt(mul(less, add(v, 1.0)))))
        return where(compare("<", v, 1e8), near, add(log(v), _LN2))

    return _same_type("acosh", function, x)


@builtin
def atanh(x: Any) -> tensor:
    """The inverse of the hyperbolic tangent, of x between -1 and 1."""

    def function(v: tensor) -> tensor:
        size = abs(v)  # towards -1 the quotient would lose what 1 - v keeps
        return _operation("copysign", mul(0.5, log1p(truediv(mul(2.0, size), sub(1.0, size)))), v)

    return _same_type("atanh", function, x)


# atan(t) / t as a polynomial of t² for |t| <= tan(π/8), by least squares; within 6e-10.
_ATAN = (0.9999999994, -0.3333330749, 0.199982108, -0.1423998292, 0.1057281447, -0.0603324169)


def _arctangent(v: tensor) -> tensor:
    """atan, in float32 by two reductions: to at most 1 by the reciprocal, to tan(π/8) by the difference to π/4."""
    if v.dtype == float64:
        return FLOAT64["atan"](v)
    size = abs(v)
    inverted = compare(">", size, 1.0)
    first = where(inverted, truediv(scalar_constant(1.0, v.dtype), size), size)
    shifted = compare(">", first, 0.41421356237309503)
    second = where(shifted, truediv(sub(first, 1.0), add(first, 1.0)), first)
    square = mul(second, second)
    angle = mul(second, doubles.horner(square, _ATAN))
    angle = where(shifted, add(angle, _HALF_PI / 2), angle)
    angle = where(inverted, sub(_HALF_PI, angle), angle)
    return _operation("copysign", angle, v)


@builtin
def atan(x: Any) -> tensor:
    """The angle whose tangent is x, in radians; within 3e-7 of it."""
    return _same_type("atan", _arctangent, x)


@builtin
def atan2(y: Any, x: Any) -> tensor:
    """The angle of the point (x, y), in radians, from -π to π; within 6e-7 of it."""
    y, x = operands("atan2", _wide(y, "atan2"), x)
    zero = and_(compare("==", x, 0.0), compare("==", y, 0.0))
    both = and_(isinf(x), isinf(y))
    one = scalar_constant(1.0, x.dtype)
    ratio = truediv(abs(y), where(zero, one, abs(x)))
    angle = _arctangent(where(both, one, where(zero, scalar_constant(0.0, x.dtype), ratio)))
    angle = where(signbit(x), sub(2 * _HALF_PI, angle), angle)
    return _operation("copysign", angle, y)


# asin(s) / s - 1 over s² as a polynomial of s² for s <= 1/2, at Chebyshev nodes; within 2e-8 of asin(s) / s.
_ASIN = (0.16666672415, 0.074988550726, 0.04500138007, 0.026554542206, 0.038085023561)
# π/2 in two parts.
_QUARTER = {float32: (1.5707963705062866, -4.371139000186241e-08), float64: coefficients.HALF_PI[:2]}


def _arcsine(v: tensor) -> tuple[tensor, tensor, tensor]:
    """Whether v is more than 1/2 away from 0, and the angle whose sine is its size, or half of that whose cosine it is
    where it is, as its sine and the rest.
    """
    size = abs(v)
    far = compare(">", size, 0.5)
    square = where(far, sub(0.5, mul(0.5, size)), mul(size, size))
    sine = where(far, sqrt(square), size)
    wide = v.dtype == float64
    series = doubles.piecewise(square, coefficients.ASIN) if wide else doubles.horner(square, _ASIN)
    return far, sine, mul(mul(sine, square), series)


@builtin
def asin(x: Any) -> tensor:
    """The angle whose sine is x, in radians; within 2 units of the last place."""

    def function(v: tensor) -> tensor:
        far, sine, rest = _arcsine(v)
        high, low = _QUARTER[v.dtype]
        twice = mul(2.0, sine)
        difference = sub(high, twice)
        lost = sub(sub(high, difference), twice)  # in rounding
        turned = add(difference, sub(lost, sub(mul(2.0, rest), low)))
        return _operation("copysign", where(far, turned, add(sine, rest)), v)

    return _same_type("asin", function, x)


@builtin
def acos(x: Any) -> tensor:
    """The angle whose cosine is x, in radians; within 2 units of the last place."""

    def function(v: tensor) -> tensor:
        far, sine, rest = _arcsine(v)
        angle = add(sine, rest)
        high, low = _QUARTER[v.dtype]
        twice = mul(2.0, angle)
        turned = where(compare("<", v, 0.0), sub(2 * high, sub(twice, 2 * low)), twice)
        return where(far, turned, sub(high, sub(_operation("copysign", angle, v), low)))

    return _same_type("acos", function, x)


# ---- Integers and bits


def _unsigned(x: Any, name: str) -> tensor:
    value = to_tensor(x, f"the argument of '{name}'")
    if not value.dtype.is_int() or value.dtype.primitive_bitwidth < 32:
        raise errors.needs_integers(name, value.dtype, "cast it to a 32-bit or 64-bit integer type")
    return value


@builtin
def popc(x: Any) -> tensor:
    """How many bits are set; int32."""
    return convert(_operation("ctpop", _unsigned(x, "popc")), int32)


@builtin
def clz(x: Any) -> tensor:
    """How many bits above the highest one are clear; int32."""
    return convert(_operation("ctlz", _unsigned(x, "clz")), int32)


@builtin
def ffs(x: Any) -> tensor:
    """The place of the lowest bit that is set, counted from 1; 0 where none is; int32."""
    value = _unsigned(x, "ffs")
    place = add(convert(_operation("cttz", value), int32), 1)
    return where(compare("==", value, 0), 0, place)


@builtin
def mulhi(x: Any, y: Any) -> tensor:
    """The upper half of the product; of signed integers the signed one."""
    x, y = operands("mulhi", _unsigned(x, "mulhi"), y)
    if x.dtype.is_int_unsigned():
        return umulhi(x, y)
    unsigned = uint32 if x.dtype == int32 else uint64
    high = reread(umulhi(reread(x, unsigned), reread(y, unsigned)), x.dtype)
    zero = scalar_constant(0, x.dtype)
    return sub(sub(high, where(compare("<", x, 0), y, zero)), where(compare("<", y, 0), x, zero))


def _same_bits(name: str, source: Any, target: Any, what: str) -> Any:
    def function(x: Any) -> tensor:
        return reread(convert(to_tensor(x), source), target)

    function.__name__, function.__doc__ = name, f"The same bits, of {source}, as {target}{what}."
    return builtin(function)


float_as_int = _same_bits("float_as_int", float32, int32, "")
float_as_uint = _same_bits("float_as_uint", float32, uint32, "")
int_as_float = _same_bits("int_as_float", int32, float32, "")
uint_as_float = _same_bits("uint_as_float", uint32, float32, "")
double_as_longlong = _same_bits("double_as_longlong", float64, int64, "")
longlong_as_double = _same_bits("longlong_as_double", int64, float64, "")


# ---- Under other names


def _as(function: Callable[..., Any], name: str) -> Any:
    def other(*arguments: Any) -> Any:
        return function(*arguments)

    other.__name__, other.__doc__ = name, f"As :func:`{function.__name__}`."
    return builtin(other)


fast_expf, fast_dividef = _as(exp, "fast_expf"), _as(fdiv, "fast_dividef")
_exact = {f.__name__: f for f in (exp10, log, log2, log10, sin, cos, tan, tanh, pow)}
globals().update(fast.functions(_exact))  # fast_exp10f ... fast_powf
rsqrt_rn = _as(rsqrt, "rsqrt_rn")
floor, ceil = _as(maths_floor, "floor"), _as(maths_ceil, "ceil")
globals().update(instructions.INSTRUCTIONS)  # add_rn ... ull2double_ru


@builtin
def rcbrt(x: Any) -> tensor:
    """1 / cbrt(x)."""
    return _same_type("rcbrt", lambda v: fdiv(1.0, cbrt(v)), x)


@builtin
def remainder(x: Any, y: Any) -> tensor:
    """x - y·rint(x / y). Exact where the quotient has fewer bits than the type."""
    x, y = operands("remainder", _floats(x, "remainder"), y)
    return fma(-_operation("roundeven", fdiv(x, y)), y, x)


@builtin
def norm3d(x: Any, y: Any, z: Any) -> tensor:
    """sqrt(x² + y² + z²), whose squares must be in the type's range."""
    return sqrt(add(add(mul(x, x), mul(y, y)), mul(z, z)))


@builtin
def norm4d(x: Any, y: Any, z: Any, w: Any) -> tensor:
    """sqrt(x² + y² + z² + w²), whose squares must be in the type's range."""
    return sqrt(add(add(mul(x, x), mul(y, y)), add(mul(z, z), mul(w, w))))


@builtin
def rnorm3d(x: Any, y: Any, z: Any) -> tensor:
    """1 / norm3d(x, y, z)."""
    return fdiv(1.0, norm3d(x, y, z))


@builtin
def rnorm4d(x: Any, y: Any, z: Any, w: Any) -> tensor:
    """1 / norm4d(x, y, z, w)."""
    return fdiv(1.0, norm4d(x, y, z, w))


@builtin
def ldexp(x: Any, n: Any) -> tensor:
    """x · 2ⁿ, in two steps so that neither factor leaves the type's range."""
    value, power = _wide(x, "ldexp"), convert(to_tensor(n), int32)
    first = shr(power, 1)
    result = mul(mul(value, exp2(convert(first, value.dtype))), exp2(convert(sub(power, first), value.dtype)))
    return convert(result, to_tensor(x).dtype)


scalbn = _as(ldexp, "scalbn")
