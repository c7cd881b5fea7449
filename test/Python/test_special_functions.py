# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""libdevice's functions in float64 and its special functions in float32, against mpmath: errors in units of the last
place, within what CUDA's documentation states of its own; values at the ends.
"""

import math
import re

import mpmath
import numpy as np
import pytest
import weft
import weft.language as wl
from mpmath import mp, mpf
from weft.language.extra import libdevice

BLOCK = 256
MACHINE = np.finfo(np.float64)


@weft.jit
def unary(x, y, F: wl.constexpr, N: wl.constexpr):
    at = wl.program_id(0) * N + wl.arange(0, N)
    wl.store(y + at, F(wl.load(x + at)))


@weft.jit
def binary(x, y, z, F: wl.constexpr, N: wl.constexpr):
    at = wl.program_id(0) * N + wl.arange(0, N)
    wl.store(z + at, F(wl.load(x + at), wl.load(y + at)))


def applied(function, *arguments, result=None):
    """The function of arrays, of any length."""
    length = len(arguments[-1])
    blocks = -(-length // BLOCK)
    given = [np.resize(each, blocks * BLOCK) for each in arguments]
    found = np.full(blocks * BLOCK, 77, result or arguments[-1].dtype)
    (unary if len(given) == 1 else binary)[blocks,](*given, found, F=function, N=BLOCK)
    return found[:length]


def unit(exact, dtype):
    """The unit of a number's last place, that of the least number below the normal range."""
    exponent = mpmath.frexp(exact)[1] - 1 if exact else -10000
    return mpf(2) ** (max(exponent, int(np.finfo(dtype).minexp)) - np.finfo(dtype).nmant)


def error(found, exact):
    """In units of the last place; 0 where a result out of the range is infinite."""
    if not np.isfinite(found) or abs(exact) > mpf(float(np.finfo(found.dtype).max)):
        big = abs(exact) > mpf(float(np.finfo(found.dtype).max)) * (1 - mpf(2) ** -20)
        return 0.0 if np.isinf(found) and big and (found > 0) == (exact > 0) else math.inf
    return float(abs(mpf(float(found)) - exact) / unit(exact, found.dtype))


def inverse(function, slope):
    """The reference of an inverse: one step of Newton's from what was found, which squares its relative error."""

    def reference(x, found):
        return found - (function(found) - x) / slope(found)

    return reference


def gaussian(x):
    return 2 / mp.sqrt(mp.pi) * mp.exp(-x * x)


def erfcx(x):
    if x > 1e9:
        return (1 - 1 / (2 * x * x)) / (x * mp.sqrt(mp.pi))
    return mp.exp(x * x) * mp.erfc(x)


def lgamma(x):
    return mp.re(mp.loggamma(x)) if x > 0 else mp.log(abs(mp.gamma(x)))


def cbrt(x):
    return mp.sign(x) * mp.cbrt(abs(x))


def near(*points):
    """Numbers beside points, where a function is 0."""
    return np.array([p + d for p in points for d in (0, 1e-15, -1e-15, 1e-9, -1e-6)])


FIRST_ZEROS = near(2.404825557695773, 5.520078110286311, 3.831705970207512, 7.015586669815619)
SECOND_ZEROS = near(0.8935769662791675, 3.957678419314858, 7.086051060301773, 2.197141326031017, 5.429681040794135)


class Spread:
    """Random arguments."""

    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)

    def over(self, low, high, count=128):
        return self.rng.uniform(low, high, count)

    def sizes(self, low, high, count=128):
        """Positive numbers by their logarithm to base 2."""
        return np.exp2(self.rng.uniform(low, high, count))

    def signed(self, low, high, count=128):
        return self.rng.choice([-1.0, 1.0], count) * self.sizes(low, high, count)


# name: (arguments, reference, units allowed in float64, and in float32 where it is not the machine's)
SPECIAL = {
    "erfc": (lambda s: np.r_[s.signed(-60, 3), s.over(-6, 26.5)], mp.erfc, 5, 4),
    "erfcx": (lambda s: np.r_[s.signed(-60, 2), s.over(-26, 40), s.sizes(4, 1000, 64)], erfcx, 4, 4),
    "erfinv": (
        lambda s: np.r_[s.over(-1, 1), 1 - s.sizes(-23, -1, 64), s.signed(-1000, -1, 64)],
        inverse(mp.erf, gaussian), 5, 2,
    ),
    "erfcinv": (
        lambda s: np.r_[s.over(0, 2), 2 - s.sizes(-22, -1, 64), s.sizes(-1000, -1)],
        inverse(mp.erfc, lambda x: -gaussian(x)), 6, 4,
    ),
    "normcdf": (lambda s: np.r_[s.signed(-60, 3), s.over(-38, 9)], lambda x: mp.erfc(-x / mp.sqrt(2)) / 2, 5, 5),
    "normcdfinv": (
        lambda s: np.r_[s.over(0, 1), 1 - s.sizes(-23, -2, 64), s.sizes(-1000, -2)],
        inverse(lambda x: mp.erfc(-x / mp.sqrt(2)) / 2, lambda x: gaussian(x / mp.sqrt(2)) / mp.sqrt(8)), 8, 5,
    ),
    "tgamma": (lambda s: np.r_[s.over(-185, 172), s.over(-12, 12), s.signed(-1000, 0)], mp.gamma, 10, 5),
    "lgamma": (
        lambda s: np.r_[s.over(-2.26, 12), s.signed(-1000, 0), s.sizes(0, 1000, 64), -s.over(11.01, 300)],
        lgamma, 4, 6,
    ),
    "j0": (lambda s: np.r_[s.over(-8, 8, 256), FIRST_ZEROS], lambda x: mp.besselj(0, x), 7, 9),
    "j1": (lambda s: np.r_[s.over(-8, 8, 256), FIRST_ZEROS], lambda x: mp.besselj(1, x), 7, 9),
    "y0": (lambda s: np.r_[s.over(0, 8, 64), s.sizes(-1000, 3, 32), SECOND_ZEROS], lambda x: mp.bessely(0, x), 7, 9),
    "y1": (lambda s: np.r_[s.over(0, 8, 64), s.sizes(-1000, 3, 32), SECOND_ZEROS], lambda x: mp.bessely(1, x), 7, 9),
    "cyl_bessel_i0": (lambda s: np.r_[s.over(-713, 713), s.over(-20, 20)], lambda x: mp.besseli(0, x), 6, 6),
    "cyl_bessel_i1": (lambda s: np.r_[s.over(-713, 713), s.over(-20, 20)], lambda x: mp.besseli(1, x), 6, 6),
}  # fmt: skip
ELEMENTARY = {
    "exp": (lambda s: np.r_[s.over(-745, 709), s.signed(-60, 3)], mp.exp, 1),
    "exp2": (lambda s: np.r_[s.over(-1074, 1023), s.signed(-60, 3)], lambda x: mpf(2) ** x, 1),
    "exp10": (lambda s: np.r_[s.over(-323, 308), s.signed(-60, 3)], lambda x: mpf(10) ** x, 1),
    "expm1": (lambda s: np.r_[s.over(-50, 709), s.signed(-60, 3)], mp.expm1, 1),
    "log": (lambda s: np.r_[s.sizes(-1074, 1023), s.over(0.6, 1.5), 1 + s.signed(-50, -2)], mp.log, 1),
    "log2": (lambda s: np.r_[s.sizes(-1074, 1023), s.over(0.6, 1.5)], lambda x: mp.log(x) / mp.log(2), 1),
    "log10": (lambda s: np.r_[s.sizes(-1074, 1023), s.over(0.6, 1.5)], mp.log10, 1),
    "log1p": (lambda s: np.r_[s.sizes(-1074, 1023), s.over(-1, 1), s.signed(-60, -1)], mp.log1p, 1),
    "sin": (lambda s: np.r_[s.signed(-1000, 1000), s.signed(-5, 60), turns(s)], mp.sin, 2),
    "cos": (lambda s: np.r_[s.signed(-1000, 1000), s.signed(-5, 60), turns(s)], mp.cos, 2),
    "tan": (lambda s: np.r_[s.signed(-1000, 1000), s.signed(-5, 60), turns(s)], mp.tan, 2),
    "sinpi": (lambda s: s.signed(-30, 40), mp.sinpi, 2),
    "cospi": (lambda s: s.signed(-30, 40), mp.cospi, 2),
    "atan": (lambda s: np.r_[s.signed(-1000, 1000), s.signed(-5, 5)], mp.atan, 2),
    "asin": (lambda s: s.over(-1, 1), mp.asin, 2),
    "acos": (lambda s: s.over(-1, 1), mp.acos, 2),
    "sinh": (lambda s: s.signed(-60, 9.4), mp.sinh, 2),
    "cosh": (lambda s: s.signed(-60, 9.4), mp.cosh, 2),
    "tanh": (lambda s: s.signed(-60, 6), mp.tanh, 2.5),
    "asinh": (lambda s: s.signed(-60, 1000), mp.asinh, 3),
    "acosh": (lambda s: 1 + s.sizes(-50, 900), mp.acosh, 3),
    "atanh": (lambda s: s.over(-1, 1), mp.atanh, 2),
    "erf": (lambda s: np.r_[s.signed(-1000, 3), s.over(-6, 6)], mp.erf, 2),
    "cbrt": (lambda s: s.signed(-1070, 1000), cbrt, 1),
    "rcbrt": (lambda s: s.signed(-1000, 1000), lambda x: 1 / cbrt(x), 2),
}  # fmt: skip


def turns(spread):
    """Beside multiples of a quarter turn."""
    return spread.rng.integers(1, 1 << 40, 64) * (np.pi / 2)


def worst(function, reference, x):
    found = applied(function, x)
    with mp.workprec(1400 if reference in (mp.sin, mp.cos, mp.tan) else 200):
        two = reference.__name__ == "reference"
        exact = [reference(mpf(float(a)), *([mpf(float(b))] if two else [])) for a, b in zip(x, found, strict=True)]
        errors = [error(b, e) for b, e in zip(found, exact, strict=True)]
    at = int(np.argmax(errors))
    return errors[at], f"{x[at]!r} gives {found[at]!r}, {mpmath.nstr(exact[at], 18)} is right"


@pytest.mark.parametrize("name", SPECIAL)
def test_special_functions(name, seed):
    arguments, reference, units, narrow_units = SPECIAL[name]
    x = arguments(Spread(seed))
    off, where = worst(getattr(libdevice, name), reference, x)
    assert off <= units, where
    narrow = x[np.abs(x) < 1e38].astype(np.float32)
    narrow = narrow[np.isfinite(narrow) & (narrow != 0) & ~((np.abs(narrow) >= 1) & (narrow == np.round(narrow)))]
    narrow = narrow[np.abs(narrow) < 8] if name[0] in "jy" else narrow
    off, where = worst(getattr(libdevice, name), reference, narrow)
    assert off <= narrow_units, where


@pytest.mark.parametrize("name", ELEMENTARY)
def test_functions_of_float64(name, seed):
    arguments, reference, units = ELEMENTARY[name]
    off, where = worst(getattr(libdevice, name), reference, arguments(Spread(seed)))
    assert off <= units, where


@pytest.mark.parametrize(
    ("name", "instructions"),
    [("exp", 42), ("exp2", 41), ("exp10", 47), ("log", 47), ("log2", 56), ("log10", 58), ("erf", 81)],
)
def test_few_instructions_of_float64(name, instructions):
    """With the addresses, the load and the store. Pairs are kept only where a unit of the last place asks for them."""
    x, y = np.linspace(0.5, 2, 32), np.zeros(32)
    kernel = unary[1,](x, y, F=getattr(libdevice, name), N=32, num_warps=1)
    report = weft.simulator.launch(kernel.ptx, kernel.name, 1, 32, [x, y], shared=kernel.shared_bytes)
    assert report.counters["warp_instructions"] <= instructions


def test_the_zeros_of_lgamma(seed):
    x = Spread(seed).over(-11, -2.26, BLOCK)
    found = applied(libdevice.lgamma, x)
    assert max(abs(float(lgamma(mpf(a)) - mpf(b))) for a, b in zip(x, found, strict=True)) < 1e-14


@pytest.mark.parametrize("name", ["j0", "j1", "y0", "y1"])
def test_bessel_functions_far_out(name, seed):
    spread = Spread(seed)
    x = np.r_[spread.over(8, 100, 24), spread.sizes(3, 40, 16)]
    reference = mp.besselj if name[0] == "j" else mp.bessely
    found = applied(getattr(libdevice, name), x)
    with mp.workprec(160):
        exact = [float(reference(int(name[1]), mpf(a))) for a in x]
    assert np.abs(found - exact).max() < 1e-15
    narrow = applied(getattr(libdevice, name), x.astype(np.float32))
    with mp.workprec(160):
        exact = [float(reference(int(name[1]), mpf(float(np.float32(a))))) for a in x]
    assert np.abs(narrow - exact).max() < 3e-7


@pytest.mark.parametrize("name", ["jn", "yn"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_bessel_functions_of_whole_orders(name, dtype, seed):
    spread = Spread(seed)
    n = spread.rng.integers(0, 129, 128).astype(np.int32)
    n[:32] = spread.rng.integers(0, 4, 32)
    x = np.r_[spread.over(0, 180, 64), spread.over(0, 20, 32), spread.sizes(-90, 7, 32)].astype(dtype)
    if name == "jn":
        x *= spread.rng.choice([-1, 1], 128).astype(dtype)
    found = applied(getattr(libdevice, name), n, x)
    reference = mp.besselj if name == "jn" else mp.bessely
    allowed = 5e-12 if dtype == np.float64 else 2.2e-6
    for order, a, b in zip(n, x, found, strict=True):
        exact = reference(int(order), mpf(float(a)))
        if abs(exact) > float(np.finfo(dtype).max):
            assert np.isinf(b) and (b > 0) == (exact > 0)
        else:
            assert abs(mpf(float(b)) - exact) <= allowed * max(1, abs(exact)), (order, a, b, exact)
    odd = applied(getattr(libdevice, name), np.int32([0, 1, -1, 2, 3]), np.array([0, 0, 1, np.nan, np.inf], dtype))
    np.testing.assert_array_equal(
        odd, [1, 0, np.nan, np.nan, 0] if name == "jn" else [-np.inf] * 2 + [np.nan] * 2 + [0]
    )


INF, NAN = math.inf, math.nan
ENDS = np.array([0.0, -0.0, INF, -INF, NAN, 1, -1, 2, -2, 5e-324, 1e308, -1e308])
AT_ENDS = {
    "erfc": [1, 1, 0, 2, NAN, None, None, None, None, 1, 0, 2],
    "erfcx": [1, 1, 0, INF, NAN, None, None, None, None, 1, 5.641895835477563e-309, INF],
    "erfinv": [0.0, -0.0, NAN, NAN, NAN, INF, -INF, NAN, NAN, 5e-324, NAN, NAN],
    "erfcinv": [INF, INF, NAN, NAN, NAN, 0, NAN, -INF, NAN, None, NAN, NAN],
    "normcdf": [0.5, 0.5, 1, 0, NAN, None, None, None, None, 0.5, 1, 0],
    "normcdfinv": [-INF, -INF, NAN, NAN, NAN, INF, NAN, NAN, NAN, None, NAN, NAN],
    "tgamma": [INF, -INF, INF, NAN, NAN, 1, NAN, 1, NAN, INF, INF, NAN],
    "lgamma": [INF, INF, INF, INF, NAN, 0, INF, 0, INF, None, None, INF],
    "j0": [1, 1, 0, 0, NAN, None, None, None, None, 1, None, None],
    "j1": [0.0, -0.0, 0.0, -0.0, NAN, None, None, None, None, None, None, None],
    "y0": [-INF, -INF, 0, NAN, NAN, None, NAN, None, NAN, None, None, NAN],
    "y1": [-INF, -INF, 0, NAN, NAN, None, NAN, None, NAN, -INF, None, NAN],
    "cyl_bessel_i0": [1, 1, INF, INF, NAN, None, None, None, None, 1, INF, INF],
    "cyl_bessel_i1": [0.0, -0.0, INF, -INF, NAN, None, None, None, None, None, INF, -INF],
    "logb": [-INF, -INF, INF, INF, NAN, 0, 0, 1, 1, -1074, 1023, 1023],
    "rcp64h": [INF, -INF, 0.0, -0.0, NAN, 1, -1, 0.5, -0.5, INF, 0.0, -0.0],
    "exp": [1, 1, INF, 0, NAN, None, None, None, None, 1, INF, 0],
    "log": [-INF, -INF, INF, NAN, NAN, 0, NAN, None, NAN, None, None, NAN],
    "log1p": [0.0, -0.0, INF, NAN, NAN, None, -INF, None, NAN, 5e-324, None, NAN],
    "expm1": [0.0, -0.0, INF, -1, NAN, None, None, None, None, 5e-324, INF, -1],
    "sin": [0.0, -0.0, NAN, NAN, NAN, None, None, None, None, 5e-324, None, None],
    "cos": [1, 1, NAN, NAN, NAN, None, None, None, None, 1, None, None],
    "tanh": [0.0, -0.0, 1, -1, NAN, None, None, None, None, 5e-324, 1, -1],
    "atan": [0.0, -0.0, np.pi / 2, -np.pi / 2, NAN, None, None, None, None, 5e-324, np.pi / 2, -np.pi / 2],
}  # fmt: skip


@pytest.mark.parametrize("name", AT_ENDS)
def test_values_at_the_ends(name):
    found = applied(getattr(libdevice, name), ENDS)
    for x, got, wanted in zip(ENDS, found, AT_ENDS[name], strict=True):
        if wanted is not None:
            np.testing.assert_equal(got, np.float64(wanted), err_msg=f"{name}({x})")


def test_exponents():
    x = np.r_[ENDS, 0.75, 3.9, -2.2250738585072014e-308]
    least, greatest = -(2**31), 2**31 - 1
    wanted = [least, least, greatest, greatest, least, 0, 0, 1, 1, -1074, 1023, 1023, -1, 1, -1022]
    assert applied(libdevice.ilogb, x, result=np.int32).tolist() == wanted
    narrow = np.float32([1e-45, 3e38, 0.3])
    assert applied(libdevice.ilogb, narrow, result=np.int32).tolist() == [-149, 127, -2]


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_neighbours(dtype, seed):
    with np.errstate(all="ignore"):
        points = np.r_[ENDS, np.finfo(dtype).max, np.finfo(dtype).tiny, Spread(seed).signed(-10, 10, 2)].astype(dtype)
        x, y = (each.ravel().copy() for each in np.meshgrid(points, points))
        wanted = np.nextafter(x, y)
    np.testing.assert_array_equal(applied(libdevice.nextafter, x, y), wanted)


def test_upper_halves_of_reciprocals(seed):
    x = Spread(seed).signed(-1000, 1000)
    found = applied(libdevice.rcp64h, x)
    assert (found.view(np.int64) & 0xFFFFFFFF == 0).all()
    assert np.abs(found * x - 1).max() < 2.0**-20


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    ("name", "reference", "units"),
    [
        ("rhypot", lambda a, b: 1 / mp.sqrt(a * a + b * b), 1),
        ("hypot", lambda a, b: mp.sqrt(a * a + b * b), 3),
        ("atan2", mp.atan2, 8),
        ("pow", lambda a, b: abs(a) ** b, 4),
    ],
)
def test_functions_of_two(name, reference, units, dtype, seed):
    spread, double = Spread(seed), dtype == np.float64
    if name == "pow":
        x, y = spread.sizes(-9, 9, 256), spread.over(-100, 100, 256) if double else spread.over(-9, 9, 256)
    else:
        far = 500 if double else 60
        x, y = (
            np.r_[spread.signed(-far, far), spread.signed(-5, 5)],
            np.r_[spread.signed(-far, far), spread.signed(-5, 5)],
        )
    x, y = x.astype(dtype), y.astype(dtype)
    found = applied(getattr(libdevice, name), x, y)
    exact = [reference(mpf(float(a)), mpf(float(b))) for a, b in zip(x, y, strict=True)]
    errors = [error(b, e) for b, e in zip(found, exact, strict=True)]
    assert max(errors) <= (2 if double else units), (x[np.argmax(errors)], y[np.argmax(errors)])


#: functions that have a number for one that is none: the other one, a sign, a bound, an integer, bits
OF_NO_NUMBER = {
    "copysign", "ldexp", "scalbn", "maximum", "minimum", "fmax", "fmin", "fmaxf", "fminf", "saturatef", "ilogb",
    "isinf", "isnan", "isfinited", "finitef", "signbit", "llrint", "llround",
}  # fmt: skip
CONVERTS = re.compile("2(int|uint|ll|ull|hiint|loint|float|double)|_as_")


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_what_is_no_number_stays_none(dtype):
    """Of every function of one or two floats, but for pow(1, NaN) and what the list names."""
    wrong = []
    for name, function in vars(libdevice).items():
        if name.startswith("_") or not callable(function) or name in OF_NO_NUMBER or CONVERTS.search(name):
            continue
        for arguments in ([[np.nan]], [[np.nan, 2, np.nan], [2, np.nan, np.nan]]):
            try:
                found = applied(function, *(np.array(each, dtype) for each in arguments))
            except (weft.Error, TypeError):  # of another number of arguments, or of other types
                continue
            wrong += [name] if not np.isnan(found).all() else []
    assert not wrong


def test_narrow_floats_are_computed_wider():
    x = np.float16([0.5, 1.5, 3.25, 4.5])
    np.testing.assert_array_equal(applied(libdevice.tgamma, x), [np.float16(math.gamma(float(a))) for a in x])


def test_every_name_of_libdevice_is_there():
    theirs = pytest.importorskip("triton.language.extra.cuda.libdevice")
    names = {name for name, value in vars(theirs).items() if callable(value) and not name.startswith("_")}
    assert len(names) > 150
    assert sorted(name for name in names - {"core"} if not hasattr(libdevice, name)) == []
