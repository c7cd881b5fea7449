# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Launches of instructions.cu, whose references spell out the ISA's definitions."""

import numpy as np

from .arithmetic import join, parts, signed
from .case import Launch, case

M32 = 2**32 - 1


def clamp(v: int, bits: int) -> int:
    return min(max(v, -(2 ** (bits - 1))), 2 ** (bits - 1) - 1)


def bit_fields(a: int, position: int, length: int) -> tuple[int, int]:
    """bfe, unsigned and signed."""
    if length == 0:
        return 0, 0
    field = a >> position & (1 << length) - 1
    sign = a >> min(position + length - 1, 31) & 1
    known = min(length, 32 - position)
    return field, field | (M32 << known & M32 if sign else 0)


def nth_set(mask: int, base: int, n: int) -> int:
    if n == 0:
        return base if mask >> base & 1 else M32
    places = range(base, 32) if n > 0 else range(base, -1, -1)
    found = [at for at in places if mask >> at & 1]
    return found[abs(n) - 1] if len(found) >= abs(n) else M32


def bit_row(a: int, b: int, c: int) -> list[int]:
    sa, sb, sc = signed(a), signed(b), signed(c)
    unsigned_field, signed_field = bit_fields(a, b & 31, c & 31)
    position, length = c & 31, c >> 5 & 31
    mask = ((1 << length) - 1) << position & M32
    table = 0x6A
    lop3 = sum((table >> ((a >> i & 1) * 4 + (b >> i & 1) * 2 + (c >> i & 1)) & 1) << i for i in range(32))
    wide = b << 32 | a
    bytes8 = parts(wide, 8, 8)
    extended = a & (1 << (b & 31)) - 1
    a24, b24 = signed(a, 24), signed(b, 24)
    dot = sum(signed(a >> 16 * i, 16) * (b >> 16 + 8 * i & 255) for i in range(2))
    bits, first = c & 63, b & 63
    return [
        unsigned_field,
        signed_field,
        b & ~mask | a << position & mask,
        lop3,
        (wide << (c & 31)) >> 32 & M32,
        wide >> min(c & 63, 32) & M32,
        join(bytes8[c & 3 : (c & 3) + 4], 8),
        (a >> 16 * (c & 1) & 0xFFFF) * 0x10001,
        ((sa if sa >= 0 else ~sa).bit_length() - 1) & M32,
        (32 - a.bit_length()) if a else M32,
        nth_set(a, b & 31, (c & 7) - 3),
        ((1 << bits) - 1) << first & M32,
        extended | (M32 << (b & 31) & M32 if extended >> max((b & 31) - 1, 0) & 1 else 0),
        int(a & 1 == 0),
        ((a & 0xFFFFFF) * (b & 0xFFFFFF)) >> 16 & M32,
        a24 * b24 + sc & M32,
        clamp((sa * sb >> 32) + sc, 32) & M32,
        clamp(sa + sb, 32) & M32,
        clamp(sa - sb, 32) & M32,
        a if sc >= 0 else b,
        c + dot & M32,
    ]


@case("instructions.cu")
def bit_instructions(rng):
    x = (rng.integers(0, 2**32, 96) >> rng.integers(0, 31, 96)).astype(np.uint32)
    x[:4] = [0, M32, 0x80000000, 0x7FFFFFFF]
    rows = [bit_row(int(x[i]), int(x[(i + 1) % 96]), int(x[(i + 2) % 96])) for i in range(96)]
    want = np.array(rows, np.uint64).T.astype(np.uint32)
    return Launch((1,), (96,), [x, np.zeros((21, 96), np.uint32), np.int32(96)], {1: want})


@case("instructions.cu")
def carry_chains(rng):
    x = rng.integers(0, 2**32, (64, 6), dtype=np.uint32)
    x[:8] |= np.uint32(0xFFFFFFF0)
    want = np.zeros((64, 9), np.uint32)
    for row, words in zip(want, x.tolist(), strict=True):
        a, b = join(words[:3], 32), join(words[3:], 32)
        product = join(words[:2], 32) * words[3]
        row[:] = parts(a + b, 32, 3) + parts(a - b, 32, 3) + parts(product, 32, 3)
    return Launch((1,), (64,), [x, np.zeros((64, 9), np.uint32)], {1: want})


@case("instructions.cu")
def float_instructions(rng):
    x = (rng.standard_normal(64) * 2).astype(np.float32)
    x[:3] = [0.5, -0.0, np.nan]
    a, b = x, np.roll(x, -1)
    wide, other = a.astype(np.float64), b.astype(np.float64)
    total = wide + other
    root = np.sqrt(a * a + np.float32(1), dtype=np.longdouble)
    near = root.astype(np.float32)
    bits = a.view(np.uint32)
    tf32 = np.where(np.isnan(a), a, (bits + 0x1000 & 0xFFFFE000).view(np.float32))
    tiny = np.abs((a * np.float32(1e-38)).astype(np.float64))
    rows = [np.rint(wide), np.ceil(wide), np.where(wide > 0, np.minimum(wide, 1), 0), np.copysign(other, wide)]
    rows += [np.where(total > 0, np.minimum(total, 1), 0), np.minimum(wide, other), np.maximum(wide, other)]
    rows += [np.tanh(wide), np.exp2(wide), wide / other]
    rows += [np.where(near > root, np.nextafter(near, np.float32(0)), near), wide > other, tf32]
    rows += [(tiny > 0) & (tiny < 2.0**-126), ~(wide < other)]
    want = np.stack([row.astype(np.float64) for row in rows])
    return Launch((1,), (64,), [x, np.zeros((15, 64), np.float32), np.int32(64)], {1: want}, rtol=1e-6, atol=1e-7)


def half_toward_zero(values: np.ndarray) -> np.ndarray:
    near = values.astype(np.float16)
    return np.where(np.abs(near.astype(np.float64)) > np.abs(values), np.nextafter(near, np.float16(0)), near)


@case("instructions.cu")
def float_conversions(rng):
    x = (rng.standard_normal(64) * 10.0 ** rng.integers(-2, 4, 64)).astype(np.float32)
    x[0] = 3e9
    wide = x.astype(np.float64)
    words = lambda values: np.asarray(values).astype(np.int64).astype(np.uint32)  # noqa: E731
    whole = np.clip(np.trunc(wide), -(2**31), 2**31 - 1)
    tripled = np.clip(np.trunc((x * np.float32(3)).astype(np.float64)), -(2**31), 2**31 - 1)
    positive = lambda values: np.maximum(values, 0).astype(np.float16).view(np.uint16).astype(np.uint32)  # noqa: E731
    chopped = [v.view(np.uint32) >> 16 for v in (x, x * np.float32(0.3))]
    bytes_ = [np.clip(v, -128, 127).astype(np.int64) & 255 for v in (whole, tripled)]
    with np.errstate(over="ignore"):
        rows = [
            words(whole),
            words(np.clip(np.floor(wide), 0, 2**32 - 1)),
            words(np.clip(np.rint(wide), -128, 127)),
            np.where(np.abs(wide) >= 65536, np.where(wide > 0, 0x7BFF, 0xFBFF), half_toward_zero(wide).view(np.uint16)),
            positive(wide) << 16 | positive(-wide),
            chopped[0] << 16 | chopped[1],
            words(np.clip(whole, -128, 127)),
            np.arange(64) << 16 & M32 | bytes_[0] << 8 | bytes_[1],
        ]
    want = np.stack([np.asarray(row).astype(np.uint32) for row in rows]).view(np.int32)
    return Launch((1,), (64,), [x, np.zeros((8, 64), np.int32), np.int32(64)], {1: want})
