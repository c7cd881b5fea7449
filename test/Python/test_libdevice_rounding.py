# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""libdevice's functions by a mode of rounding, against exact fractions; bits of integers."""

import math
from fractions import Fraction

import numpy as np
import pytest
import weft
import weft.language as wl
from weft.language.extra import cuda, libdevice

SEED = int(np.random.default_rng().integers(1 << 30))
rng = np.random.default_rng(SEED)
print(f"seed {SEED}")
N = 64
MODES = ("rn", "rz", "rd", "ru")


@weft.jit
def apply(x, y, z, out, F: wl.constexpr, COUNT: wl.constexpr, N: wl.constexpr):
    at = wl.arange(0, N)
    if COUNT == 1:
        r = F(wl.load(x + at))
    elif COUNT == 2:
        r = F(wl.load(x + at), wl.load(y + at))
    else:
        r = F(wl.load(x + at), wl.load(y + at), wl.load(z + at))
    wl.store(out + at, r)


def run(name, arguments, kind):
    out = np.zeros(N, kind)
    given = [*arguments, *([arguments[0]] * (3 - len(arguments)))]
    apply[(1,)](*given, out, F=getattr(libdevice, name), COUNT=len(arguments), N=N, num_warps=1)
    return out


def rounded(exact, kind, mode):
    """A fraction as a float, by Python's own conversion and its neighbours."""
    nearest = kind(float(exact)) if kind is np.float64 else _nearest32(exact)
    value = Fraction(float(nearest))
    if mode == "rn" or value == exact:
        return nearest
    down = {"rd": True, "ru": False, "rz": exact > 0}[mode]
    if down and value > exact:
        return np.nextafter(nearest, kind(-np.inf))
    if not down and value < exact:
        return np.nextafter(nearest, kind(np.inf))
    return nearest


def _nearest32(exact):
    guess = np.float32(float(exact))
    around = [np.nextafter(guess, np.float32(-np.inf)), guess, np.nextafter(guess, np.float32(np.inf))]
    return min(around, key=lambda f: (abs(Fraction(float(f)) - exact), int(f.view(np.uint32)) & 1))


ARITHMETIC = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "div": lambda a, b: a / b,
    "rcp": lambda a: 1 / a,
    "fma": lambda a, b, c: a * b + c,
}


@pytest.mark.parametrize("kind", [np.float32, np.float64])
@pytest.mark.parametrize("operation", ARITHMETIC)
def test_arithmetic_is_rounded_as_asked(operation, kind):
    exact = ARITHMETIC[operation]
    count = exact.__code__.co_argcount
    arguments = [(rng.standard_normal(N) * np.exp2(rng.integers(-9, 9, N))).astype(kind) for _ in range(count)]
    for mode in MODES:
        wanted = [rounded(exact(*map(Fraction, map(float, row))), kind, mode) for row in zip(*arguments, strict=True)]
        np.testing.assert_array_equal(run(f"{operation}_{mode}", arguments, kind), np.array(wanted, kind), mode)


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_roots_are_rounded_as_asked(kind):
    x = np.abs(rng.standard_normal(N)).astype(kind)
    found = {mode: run(f"sqrt_{mode}", [x], kind) for mode in MODES}
    for i in range(N):
        exact, down = Fraction(float(x[i])), Fraction(float(found["rd"][i]))
        above = Fraction(float(np.nextafter(found["rd"][i], kind(np.inf))))
        assert down**2 <= exact < above**2
        assert found["rz"][i] == found["rd"][i]
        assert Fraction(float(found["ru"][i])) == (down if down**2 == exact else above)
        middle = (down + above) / 2
        assert Fraction(float(found["rn"][i])) == (down if middle**2 > exact else above)


INTEGERS = {"int": np.int32, "uint": np.uint32, "ll": np.int64, "ull": np.uint64}
ROUND = {"rn": lambda v: round(v), "rz": math.trunc, "rd": math.floor, "ru": math.ceil}


@pytest.mark.parametrize("integer", INTEGERS)
@pytest.mark.parametrize(("source", "kind"), [("float", np.float32), ("double", np.float64)])
def test_floats_as_integers_and_back(source, kind, integer):
    x = (rng.uniform(-1000, 1000, N) if integer in ("int", "ll") else rng.uniform(0, 1000, N)).astype(kind)
    x[:8] = np.arange(8) + 0.5
    limits = np.iinfo(INTEGERS[integer])
    n = rng.integers(limits.min, limits.max, N, dtype=INTEGERS[integer])
    for mode in MODES:
        wanted = [ROUND[mode](Fraction(float(v))) for v in x]
        np.testing.assert_array_equal(run(f"{source}2{integer}_{mode}", [x], INTEGERS[integer]), wanted)
        name = f"{integer}2{source}_{mode}"
        if hasattr(libdevice, name):
            wanted = [rounded(Fraction(int(v)), kind, mode) for v in n]
            np.testing.assert_array_equal(run(name, [n], kind), np.array(wanted, kind))


def test_doubles_as_floats():
    x = rng.standard_normal(N)
    for mode in MODES:
        wanted = [rounded(Fraction(v), np.float32, mode) for v in x.tolist()]
        np.testing.assert_array_equal(run(f"double2float_{mode}", [x], np.float32), np.array(wanted, np.float32))


def test_bits():
    x, y, s = (rng.integers(-(2**31), 2**31, N).astype(np.int32) for _ in range(3))
    bits = [int(v) & 0xFFFFFFFF for v in x]
    wanted = np.array([int(f"{v:032b}"[::-1], 2) for v in bits], np.uint32)
    np.testing.assert_array_equal(run("brev", [x], np.int32).view(np.uint32), wanted)
    whole = x.astype(np.int64), y.astype(np.int64)
    np.testing.assert_array_equal(run("hadd", [x, y], np.int32), (whole[0] + whole[1]) >> 1)
    np.testing.assert_array_equal(run("rhadd", [x, y], np.int32), (whole[0] + whole[1] + 1) >> 1)
    small, other = x >> 8, y >> 8
    low = (small.astype(np.int64) * other) & 0xFFFFFFFF
    np.testing.assert_array_equal(run("mul24", [small, other], np.int32).view(np.uint32), low.astype(np.uint32))
    near, far = x >> 2, y >> 2
    wanted = np.abs(near.astype(np.int64) - far) + (s >> 2)
    np.testing.assert_array_equal(run("sad", [near, far, s >> 2], np.int32), wanted.astype(np.int64).astype(np.int32))
    joined = (x.view(np.uint32).astype(np.uint64) | (y.view(np.uint32).astype(np.uint64) << np.uint64(32))).view(
        np.uint8
    )
    nibbles = s & 0x7777
    wanted = [[joined.reshape(N, 8)[i][(int(nibbles[i]) >> (4 * b)) & 7] for b in range(4)] for i in range(N)]
    np.testing.assert_array_equal(run("byte_perm", [x, y, nibbles], np.int32).view(np.uint8).reshape(N, 4), wanted)


def test_halves_of_doubles():
    d = rng.standard_normal(N)
    bits = d.view(np.int64)
    high, low = run("double2hiint", [d], np.int32), run("double2loint", [d], np.int32)
    np.testing.assert_array_equal(high, (bits >> 32).astype(np.int32))
    np.testing.assert_array_equal(low, bits.astype(np.int32))
    np.testing.assert_array_equal(run("hiloint2double", [high, low], np.float64), d)


@weft.jit
def machine(out):
    start = cuda.globaltimer()
    cuda.gdc_wait()
    wl.store(out, cuda.num_threads() + cuda.num_warps())
    wl.store(out + 1, cuda.smid())
    wl.store(out + 2, (cuda.globaltimer() >= start).to(wl.int32))


def test_the_machine():
    out = np.full(3, -9, np.int32)
    machine[(1,)](out, num_warps=2)
    assert out[0] == 66
    assert out[1] >= 0
    assert out[2] == 1


@weft.jit
def fused_or_not(x, out):
    a = wl.load(x)
    wl.store(out, libdevice.add_rn(libdevice.mul_rn(a, a), -1.0))


def test_nothing_is_fused():
    x, out = np.array([1 + 2.0**-13], np.float32), np.zeros(1, np.float32)
    fused_or_not[(1,)](x, out)
    assert out[0] == np.float32(x[0] * x[0]) - np.float32(1)
    assert "fma.rn" not in fused_or_not.compile("x:*fp32, out:*fp32").ptx


@weft.jit
def to_nearest(x, y, quotients, roots, N: wl.constexpr, IEEE: wl.constexpr):
    at = wl.arange(0, N)
    u, v = wl.load(x + at), wl.load(y + at)
    wl.store(quotients + at, wl.fdiv(u, v, ieee_rounding=True) if IEEE else wl.div_rn(u, v))
    wl.store(roots + at, wl.sqrt_rn(u))


@pytest.mark.parametrize("ieee", [False, True])
@pytest.mark.parametrize("kind", [np.float16, np.float32, np.float64])
def test_the_languages_own_quotients_and_roots(kind, ieee):
    """The machine's division and root of float32 are approximations, which the simulator computes exactly: PTX says
    which it is."""
    x, y = ((rng.random(N) * 9 + 0.1).astype(kind) for _ in range(2))
    quotients, roots = np.zeros(N, kind), np.zeros(N, kind)
    to_nearest[(1,)](x, y, quotients, roots, N=N, IEEE=ieee)
    wide = np.float64  # of which numpy's division and root are to nearest; longdouble's would be rounded twice
    np.testing.assert_array_equal(quotients, (x.astype(wide) / y.astype(wide)).astype(kind))
    np.testing.assert_array_equal(roots, np.sqrt(x.astype(wide)).astype(kind))
    name = {np.float16: "fp16", np.float32: "fp32", np.float64: "fp64"}[kind]
    arrays = ", ".join(f"{each}: *{name}" for each in ("x", "y", "quotients", "roots"))
    ptx = to_nearest.compile(f"{arrays}, N={N}, IEEE={ieee}", target="sm_80").ptx
    bits = 64 if kind is np.float64 else 32
    assert f"div.rn.f{bits}" in ptx and f"sqrt.rn.f{bits}" in ptx and "div.full" not in ptx and "sqrt.approx" not in ptx
