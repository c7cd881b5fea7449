# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Launches of video.cu."""

import numpy as np

from .arithmetic import join, parts, signed
from .case import Launch, case


def packed_row(p: int, q: int) -> list[int]:
    pairs = list(zip(parts(p, 8), parts(q, 8), strict=True))
    halves = [(signed(x, 16), signed(y, 16)) for x, y in zip(parts(p, 16), parts(q, 16), strict=True)]
    differences = [abs(x - y) for x, y in pairs]
    return [
        join(differences, 8),
        sum(differences),
        join([x + y for x, y in pairs], 8),
        join([max(x, y) for x, y in halves], 16),
        join([255 * (x > y) for x, y in pairs], 8),
        join([(x + y + 1) // 2 for x, y in pairs], 8),
        join([min(max(x + y, -32768), 32767) for x, y in halves], 16),
        join([max(x - y, 0) for x, y in pairs], 8),
    ]


@case("video.cu")
def packed_bytes(rng):
    x = rng.integers(0, 2**32, 100, dtype=np.uint32)
    want = np.array([packed_row(int(p), int(q)) for p, q in zip(x, x[::-1], strict=True)], np.uint32).T
    return Launch((2,), (64,), [x, np.zeros((8, 100), np.uint32), np.int32(100)], {1: want})


def limit(value: int, bits: int, is_signed: bool) -> int:
    low, high = (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if is_signed else (0, 2**bits - 1)
    return min(max(value, low), high)


def put(value: int, shift: int, bits: int, c: int) -> int:
    field = (2**bits - 1) << shift
    return (c & ~field) | (value << shift & field)


def scalar_row(p: int, q: int, c: int) -> list[int]:
    half, byte = (lambda x, i: x >> 16 * i & 0xFFFF), (lambda x, i: x >> 8 * i & 0xFF)
    sp, sq, sc = (signed(x, 32) for x in (p, q, c))
    shift = min(byte(q, 0), 32)
    product = -sp * half(q, 0) + sc
    return [
        limit(sp + sq, 32, True),
        limit(byte(p, 3) - signed(half(q, 1), 16), 32, False) + c,
        put(limit(abs(signed(half(p, 0), 16) - byte(q, 2)), 8, False), 8, 8, c),
        max(min(signed(half(p, 1), 16), byte(q, 0)), sc),
        put(limit(max(p, sq), 16, True), 16, 16, c),
        limit(signed(half(p, 0), 16) << shift, 32, True),
        min((sp >> (q & 31)) & 0xFFFFFFFF, c),
        (signed(half(p, 0), 16) < half(q, 1)) + c,
        limit(product >> 7, 32, True),
        (p * q + c + 1) >> 15,
        signed(byte(p, 1), 8) * half(q, 1) - sc,
    ]


def selected_row(p: int, q: int, c: int) -> list[int]:
    halves = [*parts(p, 16), *parts(q, 16)]
    bytes_ = [*parts(p, 8), *parts(q, 8)]
    # h23 and h01 name the high element first; only the high one is written.
    high = halves[2] + halves[0]
    a, b = [bytes_[i] for i in (1, 5, 3, 7)], [bytes_[i] for i in (6, 4, 2, 0)]
    sums = [max(signed(a[i], 8), b[i]) for i in (0, 2)]
    return [put(high, 16, 16, c), c + sum(sums)]


def video_launch(rng, row, count: int) -> Launch:
    x = rng.integers(0, 2**32, 100, dtype=np.uint32)
    x[::7] &= 0xFF  # small ones, for what is not clamped
    rows = [row(int(x[i]), int(x[99 - i]), int(x[(i + 7) % 100])) for i in range(100)]
    want = np.array([[value & 0xFFFFFFFF for value in each] for each in rows], np.uint32).T
    return Launch((2,), (64,), [x, np.zeros((count, 100), np.uint32), np.int32(100)], {1: want})


@case("video.cu")
def scalar_video(rng):
    return video_launch(rng, scalar_row, 11)


@case("video.cu")
def selected_elements(rng):
    return video_launch(rng, selected_row, 2)
