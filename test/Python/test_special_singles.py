# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""libdevice's special functions of float32, beside those of float64 over dense samples: errors in units of the last
place, the values at the ends, and what the kernels are made of.
"""

import math
import os
import re

import numpy as np
import pytest
import torch
import weft
import weft.language as wl
from weft.language.extra import libdevice

BLOCK = 512
SUBNORMAL = 2.0**-149


@weft.jit
def unary(x, y, F: wl.constexpr, N: wl.constexpr):
    at = wl.program_id(0) * N + wl.arange(0, N)
    wl.store(y + at, F(wl.load(x + at)))


@weft.jit
def binary(x, y, z, F: wl.constexpr, N: wl.constexpr):
    at = wl.program_id(0) * N + wl.arange(0, N)
    wl.store(z + at, F(wl.load(x + at), wl.load(y + at)))


def applied(name, x):
    """The function of an array of any length, and the kernel."""
    blocks = -(-len(x) // BLOCK)
    found = np.full(blocks * BLOCK, 77, x.dtype)
    kernel = unary[blocks,](np.resize(x, blocks * BLOCK), found, F=getattr(libdevice, name), N=BLOCK)
    return found[: len(x)], kernel


class Spread:
    """Random arguments in float32."""

    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)

    def over(self, low, high, count=8192):
        return self.rng.uniform(low, high, count).astype(np.float32)

    def sizes(self, low, high, count=4096):
        """Positive numbers by their logarithm to base 2."""
        return np.exp2(self.rng.uniform(low, high, count)).astype(np.float32)

    def signed(self, low, high, count=4096):
        return self.sizes(low, high, count) * self.rng.choice([-1, 1], count).astype(np.float32)


def of_torch(name):
    return lambda x: getattr(torch.special, name)(torch.from_numpy(x)).numpy()


def in_float64(name):
    """Ours of float64, which test_special_functions.py holds against mpmath: PyTorch's are off by 1e-6."""
    return lambda x: applied(name, x)[0]


def normcdf(x):
    return of_torch("erfc")(x / -math.sqrt(2)) / 2


def erfcinv(z):
    return of_torch("ndtri")(z / 2) / -math.sqrt(2)


def around(*points):
    """The numbers of float32 that are nearest to each."""
    points = np.float32(points)[:, None]
    return (points + np.arange(-128, 129, dtype=np.float32) * np.spacing(points)).ravel()


FIRST_ZEROS = around(2.404825557695773, 5.520078110286311, 3.831705970207512, 7.015586669815619)
SECOND_ZEROS = around(0.8935769662791675, 3.957678419314858, 7.086051060301773, 2.197141326031017, 5.429681040794135)


def gamma(x):
    try:
        return math.gamma(x)
    except OverflowError:  # of float64: near 0
        return math.copysign(math.inf, x)
    except ValueError:  # at a pole, which a sample may hit
        return math.nan


# Units where approximations are as far off as PTX allows: the errors of a logarithm and a root come to those.
LOOSE = os.environ.get("WEFT_SIMULATOR_APPROXIMATIONS") == "loose"
AT_WORST = {"erfinv": 5, "erfcinv": 5, "normcdfinv": 6}

# name: (arguments, reference, units of the last place allowed, instructions for an element)
CASES = {
    "erfc": (lambda s: np.r_[s.over(-6, 10.1), s.signed(-149, 4)], of_torch("erfc"), 4, 55),
    "erfcx": (lambda s: np.r_[s.over(-9.4, 20), s.signed(-149, 3), s.sizes(3, 128)], of_torch("erfcx"), 3, 53),
    "normcdf": (lambda s: np.r_[s.over(-14.2, 6), s.signed(-149, 4)], normcdf, 4, 64),
    "erfinv": (
        lambda s: np.r_[s.over(-1, 1), 1 - s.sizes(-24, -1), s.sizes(-24, -1) - 1, s.signed(-149, -1)],
        of_torch("erfinv"), 2, 28,
    ),
    "erfcinv": (
        lambda s: np.r_[s.over(0, 2), 1 + s.signed(-24, -1), 2 - s.sizes(-23, -1), s.sizes(-149, -1)], erfcinv, 3, 32
    ),
    "normcdfinv": (
        lambda s: np.r_[s.over(0, 1), 1 - s.sizes(-24, -1), s.sizes(-149, -1)], of_torch("ndtri"), 3, 33
    ),
    "tgamma": (
        lambda s: np.r_[s.over(-43, 35.1, 16384), s.over(-3, 3), s.signed(-149, 0)], np.vectorize(gamma, "d"), 5, 98
    ),
    "lgamma": (
        lambda s: np.r_[
            s.over(-2.264, 14), 1 + s.signed(-23, -2), 2 + s.signed(-22, -2), s.signed(-149, 0), s.sizes(0, 128),
            -s.over(11, 200),
        ],
        of_torch("gammaln"), 4, 87,
    ),
    "j0": (lambda s: np.r_[s.over(-8, 8), s.signed(-149, 3), FIRST_ZEROS], in_float64("j0"), 6, 47),
    "j1": (lambda s: np.r_[s.over(-8, 8), s.signed(-149, 3), FIRST_ZEROS], in_float64("j1"), 6, 50),
    "y0": (lambda s: np.r_[s.over(0, 8), s.sizes(-149, 3), SECOND_ZEROS], in_float64("y0"), 5, 95),
    "y1": (lambda s: np.r_[s.over(0, 8), s.sizes(-149, 3), SECOND_ZEROS], in_float64("y1"), 5, 97),
    "cyl_bessel_i0": (lambda s: np.r_[s.over(-92, 92), s.over(-10, 10), s.signed(-149, 3)], of_torch("i0"), 5, 36),
    "cyl_bessel_i1": (lambda s: np.r_[s.over(-92, 92), s.over(-10, 10), s.signed(-149, 3)], of_torch("i1"), 5, 40),
}  # fmt: skip
INF, NAN = math.inf, math.nan
ENDS = np.float32([0.0, -0.0, INF, -INF, NAN, 1, -1, 2, -2, SUBNORMAL, 3e38, -3e38])
AT_ENDS = {
    "erfc": [1, 1, 0, 2, NAN, None, None, None, None, 1, 0, 2],
    "erfcx": [1, 1, 0, INF, NAN, None, None, None, None, 1, None, INF],
    "erfinv": [0.0, -0.0, NAN, NAN, NAN, INF, -INF, NAN, NAN, SUBNORMAL, NAN, NAN],
    "erfcinv": [INF, INF, NAN, NAN, NAN, 0, NAN, -INF, NAN, None, NAN, NAN],
    "normcdf": [0.5, 0.5, 1, 0, NAN, None, None, None, None, 0.5, 1, 0],
    "tgamma": [INF, -INF, INF, NAN, NAN, 1, NAN, 1, NAN, INF, INF, NAN],
    "lgamma": [INF, INF, INF, INF, NAN, 0.0, INF, 0.0, INF, None, INF, INF],
    "j0": [1, 1, 0.0, 0.0, NAN, None, None, None, None, 1, None, None],
    "j1": [0.0, -0.0, 0.0, -0.0, NAN, None, None, None, None, None, None, None],
    "y0": [-INF, -INF, 0.0, NAN, NAN, None, NAN, None, NAN, None, None, NAN],
    "y1": [-INF, -INF, 0.0, NAN, NAN, None, NAN, None, NAN, -INF, None, NAN],
    "cyl_bessel_i0": [1, 1, INF, INF, NAN, None, None, None, None, 1, INF, INF],
    "cyl_bessel_i1": [0.0, -0.0, INF, -INF, NAN, None, None, None, None, None, INF, -INF],
    "normcdfinv": [-INF, -INF, NAN, NAN, NAN, INF, NAN, NAN, NAN, None, NAN, NAN],
}


def units_off(found, exact):
    """In units of the last place, that of the least number below the normal range; 0 where both are infinite."""
    with np.errstate(over="ignore", invalid="ignore"):
        nearest = exact.astype(np.float32)
        unit = np.spacing(np.minimum(np.abs(nearest), np.finfo(np.float32).max)).astype(np.float64)
        off = np.abs(found.astype(np.float64) - exact) / unit
    same = (found == nearest) | (np.isnan(found) & np.isnan(nearest))
    return np.where(same, np.where(np.isfinite(off), off, 0), np.where(np.isnan(off), INF, off))


@pytest.mark.parametrize("name", CASES)
def test_dense(name, seed):
    arguments, reference, units, _ = CASES[name]
    units = AT_WORST.get(name, units) if LOOSE else units
    x = arguments(Spread(seed))
    found, _ = applied(name, x)
    exact = reference(x.astype(np.float64))
    off = units_off(found, exact)
    worst = int(np.argmax(off))
    assert off[worst] <= units, f"{name}({x[worst]!r}) = {found[worst]!r}, not {exact[worst]!r}: {off[worst]:.2f}"


def test_the_zeros_of_lgamma(seed):
    x = -Spread(seed).over(2.264, 11)
    found, _ = applied("lgamma", x)
    exact = of_torch("gammaln")(x.astype(np.float64))
    poles = x == np.round(x)
    assert np.isposinf(found[poles]).all() and np.isposinf(exact[poles]).all()
    assert np.abs(found[~poles] - exact[~poles]).max() < 3e-6


@pytest.mark.parametrize("name", ["j0", "j1", "y0", "y1"])
def test_bessel_functions_far_out(name, seed):
    """Also where x in turns has no digits behind the point, and the function is small. A sine that is as far off as PTX
    allows, 2^-20.5, is 1.9e-7 of an amplitude of sqrt(2 / 8π).
    """
    allowed = 3.5e-7 if LOOSE else 2e-7
    spread = Spread(seed)
    x = np.r_[spread.over(8, 100), spread.sizes(3, 26), spread.sizes(26, 46)]
    exact = in_float64(name)(x.astype(np.float64))
    assert np.abs(applied(name, x)[0] - exact).max() < allowed
    assert np.abs(applied(name, spread.sizes(46, 128))[0]).max() < allowed


def test_the_gamma_function_of_integers():
    x = np.arange(1, 36, dtype=np.float32)
    exact = np.array([float(math.factorial(n - 1)) for n in range(1, 36)])
    assert units_off(applied("tgamma", x)[0], exact).max() <= 4
    assert np.isnan(applied("tgamma", -np.arange(1, 2**25, 8191, dtype=np.float32))[0]).all()


@pytest.mark.parametrize("name", ["logb", "ilogb"])
def test_exponents(name, seed):
    x = Spread(seed).signed(-149, 128)
    exact = np.frexp(x)[1] - 1
    found = np.zeros_like(x, np.float32 if name == "logb" else np.int32)
    kernel = unary[len(x) // BLOCK,](x, found, F=getattr(libdevice, name), N=BLOCK)
    np.testing.assert_array_equal(found, exact)
    assert ".f64" not in kernel.ptx


def test_one_over_lengths(seed):
    spread = Spread(seed)
    x, y = spread.signed(-149, 128), spread.signed(-149, 128)
    x[::2], y[::2] = spread.signed(-9, 9, len(x) // 2), spread.signed(-9, 9, len(x) // 2)
    ends = np.float32([0, INF, INF, NAN, 1, -INF, 3e38, SUBNORMAL])
    x, y = np.r_[x[:-8], ends], np.r_[y[:-8], np.float32([0, 1, NAN, 1, 0, INF, 3e38, 0])]
    found = np.zeros_like(x)
    kernel = binary[len(x) // BLOCK,](x, y, found, F=libdevice.rhypot, N=BLOCK)
    with np.errstate(divide="ignore"):
        exact = 1 / np.hypot(x.astype(np.float64), y.astype(np.float64))
    assert units_off(found[:-8], exact[:-8]).max() <= 1
    np.testing.assert_array_equal(found[-8:-2], np.float32([INF, 0, 0, NAN, 1, 0]))
    assert units_off(found[-2:], exact[-2:]).max() <= 1
    assert ".f64" not in kernel.ptx


@pytest.mark.parametrize("name", CASES)
def test_made_of_float32(name):
    """No instruction of float64, and no more instructions than the table says, which are few beside its loads."""
    _, kernel = applied(name, np.ones(BLOCK, np.float32))
    body = kernel.ptx[kernel.ptx.index(".reqntid") :]
    assert ".f64" not in body
    instructions = [line for line in body.splitlines() if re.match(r"\s+(@!?%p\d+ )?[a-z][\w.:]+\s.*;", line)]
    assert 4 * 20 < len(instructions) <= 4 * CASES[name][3] + 16


@pytest.mark.parametrize("name", AT_ENDS)
def test_values_at_the_ends(name):
    found, _ = applied(name, ENDS)
    for x, got, wanted in zip(ENDS, found, AT_ENDS[name], strict=True):
        if wanted is not None:
            got = abs(got) if np.isinf(x) and got == 0 else got  # a zero's sign says nothing there
            np.testing.assert_equal(got, abs(np.float32(wanted)) if got == 0 and np.isinf(x) else np.float32(wanted))


@pytest.mark.parametrize("name", CASES)
def test_float16_is_computed_in_float32(name, seed):
    with np.errstate(over="ignore"):
        x = CASES[name][0](Spread(seed))[::8].astype(np.float16)
        wanted = applied(name, x.astype(np.float32))[0].astype(np.float16)
    np.testing.assert_array_equal(applied(name, x)[0], wanted)
