# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""libdevice's names against NumPy in float64: errors in units of the last place of float32."""

import math
import re

import numpy as np
import pytest
import weft
import weft.language as wl
import weft.simulator
from weft.language.extra import libdevice

SEED = int(np.random.default_rng().integers(1 << 30))
rng = np.random.default_rng(SEED)
print(f"seed {SEED}")
N = 512


def spread(low, high, size=N):
    return rng.uniform(low, high, size).astype(np.float32)


def logs(low, high):
    signs = rng.choice([-1, 1], N)
    return (signs * np.exp2(rng.uniform(low, high, N))).astype(np.float32)


vector = np.vectorize
# function: (arguments, reference, units of error allowed)
UNARY = {
    "round": (spread(-9, 9), lambda x: np.copysign(np.floor(np.abs(x) + 0.5), x), 0),
    "rint": (np.round(spread(-9, 9) * 2) / 2, np.rint, 0),
    "trunc": (spread(-9, 9), np.trunc, 0),
    "log1p": (logs(-20, -1), np.log1p, 4),
    "expm1": (logs(-20, 4), np.expm1, 24),
    "exp10": (spread(-8, 8), lambda x: 10.0**x, 40),
    "log10": (np.abs(logs(2, 40)), np.log10, 4),
    "cbrt": (logs(-60, 60), np.cbrt, 4),
    "tan": (spread(-1.5, 1.5), np.tan, 8),
    "sinpi": (spread(-20.4, 20.4), lambda x: np.sin(np.pi * (x - np.rint(x))) * np.where(np.rint(x) % 2, -1, 1), 4),
    "cospi": (
        spread(-20, 20),
        lambda x: np.sin(np.pi * (0.5 - abs(x - np.rint(x)))) * np.where(np.rint(x) % 2, -1, 1),
        4,
    ),
    "sinh": (logs(-12, 6), np.sinh, 120),
    "cosh": (logs(-12, 6), np.cosh, 120),
    "asinh": (logs(-12, 60), np.arcsinh, 8),
    "acosh": (np.abs(logs(0.1, 60)), np.arccosh, 8),
    "atanh": (spread(-0.99, 0.99), np.arctanh, 8),
    "atan": (logs(-20, 20), np.arctan, 6),
    "asin": (spread(-1, 1), np.arcsin, 2),
    "acos": (spread(-1, 0.99), np.arccos, 2),
    "normcdf": (spread(-1, 4), vector(lambda x: 0.5 * (1 + math.erf(x / math.sqrt(2)))), 8),
    "rcp_rn": (logs(-20, 20), lambda x: 1 / x, 1),
}


@weft.jit
def unary(x, y, F: wl.constexpr, N: wl.constexpr):
    at = wl.arange(0, N)
    wl.store(y + at, F(wl.load(x + at)))


@pytest.mark.parametrize("name", UNARY)
def test_functions_of_one_number(name):
    x, reference, units = UNARY[name]
    x = x.astype(np.float32)
    y = np.full(N, np.nan, np.float32)
    unary[1,](x, y, F=getattr(libdevice, name), N=N)
    exact = reference(x.astype(np.float64))
    error = np.abs(y - exact) / np.spacing(np.abs(exact).astype(np.float32))
    assert error.max() <= units + 0.51, (error.max(), x[error.argmax()])


# function: (arguments, reference, error relative to the result, error added to it)
FAST = {
    "exp10": (spread(-30, 30), lambda x: 10.0**x, 2e-5, 0),
    "exp": (spread(-80, 80), np.exp, 2e-5, 0),
    "log": (np.abs(logs(-40, 40)), np.log, 2**-21, 2**-21),
    "log2": (np.abs(logs(-40, 40)), np.log2, 2**-22, 2**-22),
    "log10": (np.abs(logs(-40, 40)), np.log10, 2**-21, 2**-22),
    "sin": (spread(-math.pi, math.pi), np.sin, 0, 2**-20),
    "cos": (spread(-math.pi, math.pi), np.cos, 0, 2**-20),
    "tan": (spread(-1.4, 1.4), np.tan, 2**-17, 2**-19),
    "tanh": (logs(-9, 4), np.tanh, 2**-10.9, 0),
}


@pytest.mark.parametrize("name", FAST)
def test_fast_functions(name):
    """By one or two instructions, within their errors; of float64 as accurate as without ``fast_``."""
    x, reference, relative, absolute = FAST[name]
    y, z = np.full(N, np.nan, np.float32), np.full(N, np.nan)
    kernel = unary[1,](x.astype(np.float32), y, F=getattr(libdevice, f"fast_{name}f"), N=N)
    exact = reference(x.astype(np.float32).astype(np.float64))
    assert (np.abs(y - exact) <= relative * np.abs(exact) + absolute).all()
    if name != "exp":
        assert len(re.findall(r"\b(?:ex2|lg2|sin|cos|tanh)\.approx", kernel.ptx)) == N // 128 * (1 + (name == "tan"))
    unary[1,](x.astype(np.float64), z, F=getattr(libdevice, f"fast_{name}f"), N=N)
    exact = reference(x.astype(np.float64))
    assert (np.abs(z - exact) <= 1e-14 * np.maximum(np.abs(exact), 1)).all()


@weft.jit
def binary(x, y, z, F: wl.constexpr, N: wl.constexpr):
    at = wl.arange(0, N)
    wl.store(z + at, F(wl.load(x + at), wl.load(y + at)))


def test_fast_powers():
    x, y, z = np.abs(logs(-6, 6)), spread(-4, 4), np.full(N, np.nan, np.float32)
    binary[1,](x, y, z, F=libdevice.fast_powf, N=N)
    exact = x.astype(np.float64) ** y.astype(np.float64)
    assert (np.abs(z - exact) <= 1e-5 * exact).all()


BINARY = {
    "pow": (np.abs(logs(-3, 3)), spread(-5, 5), np.power, 60),
    "atan2": (logs(-5, 5), logs(-5, 5), np.arctan2, 8),
    "hypot": (logs(-5, 100), logs(-5, 100), np.hypot, 3),
    "fmod": (spread(-50, 50), logs(-1, 4), np.fmod, 0),
    "copysign": (spread(-1, 1), spread(-1, 1), np.copysign, 0),
    "fdim": (spread(-1, 1), spread(-1, 1), lambda x, y: np.maximum(x - y, 0), 1),
}


@pytest.mark.parametrize("name", BINARY)
def test_functions_of_two_numbers(name):
    x, y, reference, units = BINARY[name]
    z = np.full(N, np.nan, np.float32)
    binary[1,](x, y, z, F=getattr(libdevice, name), N=N)
    exact = reference(x.astype(np.float64), y.astype(np.float64))
    error = np.abs(z - exact) / np.spacing(np.abs(exact).astype(np.float32))
    assert error.max() <= units + 0.51, (error.max(), x[error.argmax()], y[error.argmax()])


@weft.jit
def known_power(x, z, Y: wl.constexpr, N: wl.constexpr):
    at = wl.arange(0, N)
    wl.store(z + at, libdevice.pow(wl.load(x + at), Y))


@weft.jit
def uniform_power(x, z, y, N: wl.constexpr):
    at = wl.arange(0, N)
    wl.store(z + at, libdevice.pow(wl.load(x + at), y))


def powers_off(z, x, y):
    """How far powers are off, in units of the last place."""
    with np.errstate(all="ignore"):
        exact = np.power(x.astype(np.longdouble), y)
        unit = np.spacing(np.abs(exact).astype(z.dtype))
        off = np.where(np.isfinite(unit), np.abs(z - exact) / unit, z != exact.astype(z.dtype))
    return np.where(np.isnan(exact), ~np.isnan(z), off).max()


SMALL_POWERS = [0, 1, 2, 2.0, 3, 4, 5, 6, 7, 8, 9, 2.5, -1, -2]


@pytest.mark.parametrize("kind", [np.float32, np.float64])
@pytest.mark.parametrize("y", SMALL_POWERS)
def test_powers_of_known_exponents(y, kind, seed):
    rng = np.random.default_rng(seed)
    x = (rng.choice([-1, 1], N) * 10.0 ** rng.uniform(-20, 20, N)).astype(kind)
    x[:16] = SPECIAL
    if y < 0 or y != int(y):
        x = np.abs(x) + kind(1e-15)
    z = np.full(N, 5, kind)
    known_power[1,](x, z, Y=y, N=N)
    assert powers_off(z, x, y) <= (2 if kind == np.float64 else 4)


@pytest.mark.parametrize("y", [0, 1, 2, 3, 5, 6, 7, 8, 11, -1, -3])
def test_powers_of_one_exponent(y, seed):
    rng = np.random.default_rng(seed)
    x = (rng.choice([-1, 1], N) * 10.0 ** rng.uniform(-4, 4, N)).astype(np.float32)
    z = np.full(N, 5, np.float32)
    uniform_power[1,](x, z, y, N=N)
    assert powers_off(z, x, y) <= 4


def test_squares_are_products():
    """No power is computed where a product, or for a scalar a few, will do."""
    kernel = known_power.compile(f"x:*fp32:16, z:*fp32:16, Y=2, N={N}", target="sm_80")
    assert not re.search(r"\b(ex2|lg2|div|fma)\b", kernel.ptx)
    assert len(re.findall(r"\bmul\.f32", kernel.ptx)) == N // 128
    uniform = uniform_power.compile(f"x:*fp32:16, z:*fp32:16, y:i32, N={N}", target="sm_80")
    assert re.search(r"\bbra\b", uniform.ptx)


SPECIAL = np.array(
    [0.0, -0.0, np.inf, -np.inf, np.nan, 1, -1, 2, -2, 0.5, -0.5, 3, -3, 1e-30, -1e-30, 1e30], np.float32
)


def test_powers_of_special_numbers():
    x, y = (each.ravel().copy() for each in np.meshgrid(SPECIAL, SPECIAL))
    z = np.full(256, 5, np.float32)
    binary[1,](x, y, z, F=libdevice.pow, N=256)
    with np.errstate(all="ignore"):
        exact = np.power(x.astype(np.float64), y.astype(np.float64)).astype(np.float32)
    np.testing.assert_allclose(z, exact, rtol=1e-4)
    numbers = ~np.isnan(exact)
    np.testing.assert_array_equal(np.signbit(z)[numbers], np.signbit(exact)[numbers])


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_rounding_to_integers(kind, seed):
    """Halves, numbers beside them by single bits, those that have no bits behind the point, any bits at all."""
    halves = np.arange(-8, 8.5, 0.5).astype(kind)
    large = kind(2.0 ** np.finfo(kind).nmant) * np.array([-2, -1, -0.5, 0.5, 1, 2], kind)
    near = np.concatenate([halves, large, large + 1, large - kind(0.5)])
    near = np.concatenate([near, np.nextafter(near, kind(np.inf)), np.nextafter(near, kind(-np.inf))])
    width = np.dtype(kind).itemsize
    any_bits = (
        np.random.default_rng(seed).integers(0, 2 ** (8 * width), N, dtype=np.uint64).astype(f"u{width}").view(kind)
    )
    x = np.resize(np.concatenate([near, [np.nan, np.inf, -np.inf, -0.0], any_bits]), N).astype(kind)
    y, nearest, away = np.full(N, np.nan, kind), np.zeros(N, np.int64), np.zeros(N, np.int64)
    unary[1,](x, y, F=libdevice.round, N=N)
    finite = np.where(np.isfinite(x), x, kind(0))
    whole = np.trunc(finite)
    exact = whole + np.where(np.abs(finite - whole) >= 0.5, np.copysign(kind(1), x), kind(0)).astype(kind)
    np.testing.assert_array_equal(y, np.where(np.isfinite(x), exact, x))
    known = ~np.isnan(x)
    assert np.array_equal(np.signbit(y)[known], np.signbit(x)[known])
    unary[1,](x, nearest, F=libdevice.llrint, N=N)
    unary[1,](x, away, F=libdevice.llround, N=N)
    fits = np.abs(x) < 2.0**62
    np.testing.assert_array_equal(nearest[fits], np.rint(x[fits]).astype(np.int64))
    np.testing.assert_array_equal(away[fits], y[fits].astype(np.int64))


@weft.jit
def remainder(x, y, z, N: wl.constexpr):
    at = wl.program_id(0) * N + wl.arange(0, N)
    wl.store(z + at, wl.load(x + at) % wl.load(y + at))


@pytest.mark.parametrize("kind", [np.float16, np.float32, np.float64])
def test_remainders_are_exact(kind, seed):
    """Of any two numbers, also where the quotient has more bits than the type, and of quotients just below integers."""
    random, bits = np.random.default_rng(seed), np.dtype(kind).itemsize * 8
    any_bits = random.integers(0, 2**bits, 2 * N - 256, dtype=np.uint64).astype(f"u{bits // 8}").view(kind)
    with np.errstate(all="ignore"):
        pairs = np.array(np.meshgrid(SPECIAL, SPECIAL)).reshape(2, -1).astype(kind)
    below = 3 * np.arange(N).astype(kind), np.full(N, np.nextafter(kind(3), kind(4)))
    x = np.concatenate([any_bits, pairs[0], below[0]])
    y = np.concatenate([random.permutation(any_bits), pairs[1], below[1]])
    with np.errstate(all="ignore"):
        exact = np.fmod(x, y)
    for function in (remainder, None):
        z = np.full(len(x), 5, kind)
        if function is None and kind is np.float16:
            continue
        for start in range(0, len(x), N):
            part = slice(start, start + N)
            kernel, given = (remainder, {}) if function else (binary, {"F": libdevice.fmod})
            kernel[1,](x[part], y[part], z[part], N=N, **given)
        np.testing.assert_array_equal(z, exact)
        known = ~np.isnan(exact)
        assert np.array_equal(np.signbit(z)[known], np.signbit(exact)[known])


def test_angles_of_many_turns():
    x = np.float32(np.concatenate([np.logspace(8, 38.5, N - 4), [-(2.0**30), 2.0**30, 3.4e38, -1e30]]))
    y = np.full(N, np.nan, np.float32)
    for function, reference in ((wl.sin, np.sin), (wl.cos, np.cos)):
        unary[1,](x, y, F=function, N=N)
        exact = reference(x.astype(np.float64))
        assert (np.abs(y - exact) / np.spacing(np.abs(exact).astype(np.float32))).max() <= 2.51


@weft.jit
def sine(value):
    return wl.sin(value)


@weft.jit
def angles(x, y, N: wl.constexpr, TOGETHER: wl.constexpr):
    if TOGETHER:
        at = wl.arange(0, N)
        v = wl.load(x + at)
        wl.store(y + at, wl.sin(v))
        wl.store(y + N + at, wl.cos(v))
        wl.store(y + 2 * N + at, wl.map_elementwise(sine, v))
    else:
        for i in range(N):
            wl.store(y + i, wl.sin(wl.load(x + i)))
            wl.store(y + N + i, wl.cos(wl.load(x + i)))
            wl.store(y + 2 * N + i, sine(wl.load(x + i)))


@pytest.mark.parametrize(("together", "n"), [(True, 256), (True, 72), (False, 40)])
def test_wide_angles_near_and_far(together, n):
    """Of float64: those of one warp whose digits of 2/\N{GREEK SMALL LETTER PI} are few and those that need all."""
    far = rng.choice([-1, 1], n) * np.exp2(rng.uniform(49, 1023, n))
    x = np.where(rng.random(n) < 0.5, rng.uniform(-100, 100, n), far)
    x[:6] = [2.0**50, np.nextafter(2.0**50, 0), -(2.0**50), np.inf, np.nan, -0.0]
    y = np.full(3 * n, 7.0)
    angles[1,](x, y, N=n, TOGETHER=together)
    finite = np.isfinite(x)
    for part, function in zip(y.reshape(3, n), (math.sin, math.cos, math.sin), strict=True):
        exact = np.array([function(value) for value in x[finite]])
        assert (np.abs(part[finite] - exact) / np.spacing(np.abs(exact))).max() <= 2
        assert np.isnan(part[~finite]).all()
    assert np.signbit(y[5]) and y[5] == 0


def test_near_angles_do_not_pay_for_far_ones():
    """The digits of 2/\N{GREEK SMALL LETTER PI} are looked for behind a branch."""
    compiled = angles.compile("x:*fp64, y:*fp64, N=32, TOGETHER=True", target="sm_80", num_warps=1)
    x, y = rng.uniform(-9, 9, 32), np.zeros(96)
    report = weft.simulator.launch(compiled.ptx, compiled.name, 1, 32, [x, y], shared=compiled.shared_bytes)
    y = y[:32]
    np.testing.assert_allclose(y, np.sin(x), rtol=1e-15)
    assert report.counters["warp_instructions"] <= 320


def test_angles_of_special_points():
    x, y = (each.ravel().copy() for each in np.meshgrid(SPECIAL, SPECIAL))
    z = np.full(256, 5, np.float32)
    binary[1,](y, x, z, F=libdevice.atan2, N=256)
    np.testing.assert_allclose(z, np.arctan2(y.astype(np.float64), x.astype(np.float64)), rtol=1e-6, atol=1e-44)


@weft.jit
def kinds(x, out, N: wl.constexpr):
    at = wl.arange(0, N)
    v = wl.load(x + at)
    wl.store(out + at, libdevice.isnan(v).to(wl.int32))
    wl.store(out + N + at, libdevice.isinf(v).to(wl.int32))
    wl.store(out + 2 * N + at, libdevice.finitef(v).to(wl.int32))
    wl.store(out + 3 * N + at, libdevice.signbit(v).to(wl.int32))
    wl.store(out + 4 * N + at, libdevice.float_as_int(v))


def test_kinds_of_numbers():
    out = np.zeros((5, 16), np.int32)
    kinds[1,](SPECIAL, out, N=16)
    expected = [np.isnan(SPECIAL), np.isinf(SPECIAL), np.isfinite(SPECIAL), np.signbit(SPECIAL), SPECIAL.view(np.int32)]
    np.testing.assert_array_equal(out, np.array([each.astype(np.int32) for each in expected]))


@weft.jit
def bits(x, y, out, N: wl.constexpr):
    at = wl.arange(0, N)
    v, w = wl.load(x + at), wl.load(y + at)
    wl.store(out + at, libdevice.popc(v))
    wl.store(out + N + at, libdevice.clz(v))
    wl.store(out + 2 * N + at, libdevice.ffs(v))
    wl.store(out + 3 * N + at, libdevice.mulhi(v, w))


def test_bits():
    x, y = (rng.integers(-(2**31), 2**31, 64).astype(np.int32) >> rng.integers(0, 31, 64) for _ in range(2))
    x, y = x.astype(np.int32), y.astype(np.int32)
    x[0] = 0
    out = np.zeros((4, 64), np.int32)
    bits[1,](x, y, out, N=64)
    unsigned = [int(v) & 0xFFFFFFFF for v in x]
    assert out[0].tolist() == [v.bit_count() for v in unsigned]
    assert out[1].tolist() == [32 - v.bit_length() for v in unsigned]
    assert out[2].tolist() == [(v & -v).bit_length() for v in unsigned]
    assert out[3].tolist() == [(int(a) * int(b)) >> 32 for a, b in zip(x, y, strict=True)]
