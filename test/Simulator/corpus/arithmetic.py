# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Launches of arithmetic.cu."""

import math

import numpy as np

from .case import Launch, case, from_bfloat, to_bfloat

erf = np.vectorize(math.erf)
M32, M64 = 2**32 - 1, 2**64 - 1


@case("arithmetic.cu")
def elementary(rng):
    x = (rng.standard_normal(128) * 20).astype(np.float32)
    x[:6] = [150000.0, -2e5, 1e6, -3e7, 0.0, 1e-3]  # past the fast range reduction
    v = x.astype(np.float64)
    with np.errstate(over="ignore"):
        rows = [
            np.sin(v),
            np.cos(v),
            np.exp(v * np.float32(0.01)),
            np.log(np.abs(v) + 1e-30),
            np.tanh(v * np.float32(0.1)),
        ]
        rows += [np.abs(v) ** np.float64(np.float32(0.37)), erf(v * np.float32(0.05)), np.arctan2(v, 3), np.cbrt(v)]
        want = np.stack([*rows, np.fmod(v, np.float64(np.float32(1.7)))]).astype(np.float32)
    return Launch((2,), (64,), [x, np.zeros((10, 128), np.float32), np.int32(128)], {1: want}, rtol=2e-5, atol=1e-6)


@case("arithmetic.cu")
def elementary_fast(rng):
    x = rng.uniform(-3, 3, 64).astype(np.float32)
    v = x.astype(np.float64)
    rows = [np.sin(v), np.exp(v), np.log(np.abs(v) + 0.5), v / np.float32(3.3), (np.abs(v) + np.float32(0.1)) ** -0.5]
    want = np.stack([*rows, (np.abs(v) + 0.1) ** 1.3])
    return Launch((1,), (64,), [x, np.zeros((6, 64), np.float32), np.int32(64)], {1: want}, rtol=1e-5, atol=3e-6)


@case("arithmetic.cu")
def doubles(rng):
    v = rng.standard_normal(100) * 3
    rows = [np.sqrt(np.abs(v)) / (1 + v * v), np.exp(-np.abs(v)) * np.sin(v)]
    rows += [(np.abs(v) + 0.5) ** -0.5 + np.log(np.abs(v) + 0.25), v * v - 1 + np.rint(v * 3) + np.floor(v)]
    return Launch((2,), (64,), [v, np.zeros((4, 100)), np.int32(100)], {1: np.stack(rows)}, rtol=1e-12, atol=1e-13)


def directed(exact: np.ndarray, upward) -> np.ndarray:
    """An 80-bit value rounded to f32 up where `upward`, else down."""
    near = exact.astype(np.float32)
    up = np.where(near < exact, np.nextafter(near, np.float32(np.inf)), near)
    down = np.where(near > exact, np.nextafter(near, np.float32(-np.inf)), near)
    return np.where(upward, up, down)


@case("arithmetic.cu")
def rounded(rng):
    x = rng.standard_normal(64).astype(np.float32)
    a, b = x.astype(np.longdouble), x[::-1].astype(np.longdouble)
    product, sum_ = a * b, a * b + 1
    rows = [directed(a + b, False) - directed(a + b, True), directed(product, product < 0), directed(a / b, True)]
    want = np.stack([*rows, directed(np.sqrt(np.abs(a)), False), directed(sum_, sum_ < 0)])
    return Launch((1,), (64,), [x, np.zeros((5, 64), np.float32), np.int32(64)], {1: want})


def signed(v: int, bits: int = 32) -> int:
    v &= (1 << bits) - 1
    return v - (1 << bits) if v >> (bits - 1) else v


def quotient(a: int, b: int) -> int:
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def reverse(v: int, bits: int) -> int:
    return int(f"{v & ((1 << bits) - 1):0{bits}b}"[::-1], 2)


def parts(v: int, bits: int, count: int | None = None) -> list[int]:
    return [v >> i * bits & ((1 << bits) - 1) for i in range(count or 32 // bits)]


def join(values: list[int], bits: int) -> int:
    return sum((v & ((1 << bits) - 1)) << i * bits for i, v in enumerate(values))


def integer_row(a: int, b: int, p: int, q: int) -> list[int]:
    wide = a * b - q * 7
    count = lambda v: bin(v).count("1")  # noqa: E731
    first = lambda v: (v & -v).bit_length()  # noqa: E731
    permuted = join([parts(q << 32 | p, 8, 8)[i] for i in (7, 3, 6, 2)], 8)
    dp2a = 3 + sum(signed(x, 16) * signed(y, 8) for x, y in zip(parts(a & M32, 16), parts(b & M32, 8), strict=False))
    w = wide & M64
    return [
        quotient(a, b),
        a - quotient(a, b) * b,
        p // 10 << 8 | q % 10,
        quotient(wide, b * 3),
        (p << 32 | q) % 1000003,
        (a * b >> 32) + (p * q >> 32) + (wide * wide >> 64),
        count(p) | (32 - p.bit_length()) << 8 | first(p) << 16 | reverse(p, 32) << 32,
        permuted + ((q << 32 | p) >> 11 & M32) + p,
        (abs(a - b) + p & M32) + (abs(p - q) + 5 & M32),
        signed(dp2a),
        (p >> q % 32) + (a >> 31) + (q << p % 64) + min(a, b) + max(p, q),
        64 - w.bit_length() + count(w) + first(w) + (reverse(w, 64) >> 3),
    ]


@case("arithmetic.cu")
def integers(rng):
    x = (rng.integers(-(2**31), 2**31, 96) >> rng.integers(0, 31, 96)).astype(np.int32)
    u = (rng.integers(0, 2**32, 96) >> rng.integers(0, 31, 96)).astype(np.uint32)
    x[:3] = [-(2**31), 2**31 - 1, -1]
    rows = [integer_row(int(a), int(b) | 1, int(p), int(q)) for a, b, p, q in zip(x, x[::-1], u, u[::-1], strict=True)]
    want = np.array([[signed(v, 64) for v in row] for row in rows], np.int64).T
    return Launch((2,), (64,), [x, u, np.zeros((12, 96), np.int64), np.int32(96)], {2: want})


@case("arithmetic.cu")
def wide_integers(rng):
    x = rng.integers(0, 2**64, 20, dtype=np.uint64)
    want = []
    for i in range(20):
        a, b = int(x[i]) << 64 | int(x[19 - i]), (int(x[i * 7 % 20]) << 20) + 12345
        for result in (a + b, a - b, a * b):
            want += [result & M64, result >> 64 & M64]
    return Launch((1,), (32,), [x, np.zeros(120, np.uint64), np.int32(20)], {1: np.array(want, np.uint64)})


@case("arithmetic.cu")
def wide_quotients(rng):
    """Of numbers of all lengths, with runs of ones and zeros, where estimates of digits are off by one or two."""
    n, pairs, want = 160, [], []
    word = lambda: int(rng.choice([0, 1, M64, 1 << 63, M64 >> 1, M32, int(rng.integers(0, 2**64, dtype=np.uint64))]))  # noqa: E731
    for _ in range(n):
        a, b = (((word() << 64 | word()) >> int(rng.integers(0, 128))) for _ in range(2))
        pairs.append((a, b or 1))
    pairs[0] = (1 << 127, M64 << 64 | M64)  # the most negative number by -1 wraps
    for a, b in pairs:
        x, y = signed(a, 128), signed(b, 128)
        q = quotient(x, y)
        for value in (a // b, a % b, q, x - q * y):
            want += [value & M64, value >> 64 & M64]
    words = [v >> s & M64 for pair in pairs for v in pair for s in (0, 64)]
    args = [np.array(words, np.uint64), np.zeros(8 * n, np.uint64), np.int32(n)]
    return Launch((3,), (64,), args, {1: np.array(want, np.uint64)})


@case("arithmetic.cu")
def halves(rng):
    x = rng.standard_normal((60, 2)).astype(np.float16)
    a, b = x.astype(np.float64), x[::-1].astype(np.float64)
    last = np.stack([np.where(a[:, 0] > b[:, 0], a[:, 0], 1.0), np.arange(60) - 30], 1)
    mixed = np.stack([a[:, 0] * 3, b[:, 1] / 3], 1)
    want = np.stack([a * b + 0.5, a * b + np.maximum(a, b), np.minimum(np.abs(a), -b), np.exp2(a * 0.25), mixed, last])
    return Launch((1,), (64,), [x, np.zeros((6, 60, 2), np.float16), np.int32(60)], {1: want}, rtol=1e-3, atol=1e-3)


@case("arithmetic.cu")
def bfloats(rng):
    x = to_bfloat(rng.standard_normal((60, 2)))
    a = from_bfloat(x).astype(np.float64)
    b = a[::-1]
    want = np.stack([a * b + a, a + b, np.maximum(a, -b), np.stack([a[:, 0] * 1.7, b[:, 1] + 0.01], 1)])
    return Launch((1,), (64,), [x, np.zeros((4, 60, 2), np.uint16), np.int32(60)], {1: want}, rtol=4e-3, atol=1e-5)


@case("arithmetic.cu")
def atomics_mixed(rng):
    args = [np.ones(1, np.float32), np.ones(1), np.zeros(2, np.float16), np.array([-1, 0, 0, 0, 0], np.int32)]
    args.append(np.array([M64 - 999, 1], np.uint64))
    want = {0: np.array([33.0]), 1: np.array([1 + 0.5 * 8128]), 2: np.array([128.0, -128.0])}
    want[3] = np.array([0, 127, 0, -8128, 36])
    want[4] = np.array([127, 3**128 & M64], np.uint64)
    return Launch((2,), (64,), args, want)


def byte_float(values: np.ndarray, exponent_bits: int, fraction_bits: int, largest: int) -> np.ndarray:
    """Bits of the nearest 8-bit floats, too large ones clamped."""
    bits = np.arange(largest + 1)
    bias = (1 << exponent_bits - 1) - 1
    exponent, fraction = bits >> fraction_bits, (bits & (1 << fraction_bits) - 1) / (1 << fraction_bits)
    table = np.where(exponent > 0, (1 + fraction) * 2.0 ** (exponent - bias), fraction * 2.0 ** (1 - bias))
    distance = np.abs(np.abs(values)[:, None] - table[None, :])
    near = distance.min(1)[:, None] == distance
    index = np.where(near & (bits % 2 == 0), bits, np.where(near, bits + 1000, 10**6)).min(1) % 1000
    return (index | np.where(np.signbit(values), 128, 0)).astype(np.uint8), np.copysign(table[index], values)


@case("arithmetic.cu")
def bytes_of_floats(rng):
    x = (rng.standard_normal(64) * 10.0 ** rng.integers(-4, 6, 64)).astype(np.float32)
    narrow = [byte_float(x.astype(np.float64), 4, 3, 0x7E), byte_float(x.astype(np.float64), 5, 2, 0x7B)]
    args = [x, np.zeros((2, 64), np.uint8), np.zeros((2, 64), np.float32), np.int32(64)]
    return Launch((1,), (64,), args, {1: np.stack([n[0] for n in narrow]), 2: np.stack([n[1] for n in narrow])})
