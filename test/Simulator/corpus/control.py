# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Launches of control.cu."""

import numpy as np

from .case import Launch, case


def chosen(v: int) -> int:
    match v % 9:
        case 0:
            return v * 3 + 1
        case 1:
            return v ^ 0x55
        case 2:
            return 100 - v
        case 3:
            return v + 100
        case 4:
            return v << (v & 7)
        case 5:
            return v // 7
        case 6:
            return ~v
        case 7:
            while v > 10:
                v = v // 2 + v % 3
            return v
    return 0


@case("control.cu")
def many_cases(rng):
    x = rng.integers(0, 5000, 300).astype(np.int32)
    want = np.array([chosen(int(v)) for v in x])
    return Launch((3,), (128,), [x, np.zeros_like(x), np.int32(300)], {1: want})


@case("control.cu")
def spin_lock(rng):
    args = [np.zeros(1, np.int32), np.zeros(1, np.int32), np.int32(2)]
    return Launch((2,), (64,), args, {0: np.zeros(1, np.int32), 1: np.array([256])})


@case("control.cu")
def grid_barrier(rng):
    start = rng.integers(0, 100, 6).astype(np.int32)
    values = np.concatenate([start, np.zeros(6, np.int32)])
    want = np.concatenate([np.roll(start, 4) + 4, np.roll(start, 5) + 5])
    return Launch((6,), (64,), [values, np.zeros(1, np.uint32), np.int32(5)], {0: want, 1: np.array([30])})


@case("control.cu")
def named_barriers(rng):
    x = rng.integers(-100, 100, 64).astype(np.int32)
    return Launch((1,), (128,), [x, np.zeros_like(x)], {1: x[np.arange(64) ^ 5] * 2})


@case("control.cu")
def count_votes(rng):
    x = rng.integers(-60, 100, 128).astype(np.int32)
    x[:32] = np.abs(x[:32]) + 1
    x[50] = 7
    warps = x.reshape(4, 32)
    bits = (warps > -50).all(1) | (warps > 95).any(1) << 1 | (((warps > 0).all(1)) | (~(warps > 0)).all(1)) << 2
    masks = np.stack([np.repeat(bits, 32), x % 2], 1).ravel()
    args = [x, np.zeros(3, np.int32), np.zeros(256, np.uint32)]
    return Launch((1,), (128,), args, {1: np.array([(x > 0).sum(), 1, 1]), 2: masks})


@case("control.cu")
def print_lines(rng):
    lines = [
        f"thread {t} of block {b}: {7 * 0.5:5.2f} done {0x123456789AB + 7:x}|fie   |  c|7"
        for t in range(2)
        for b in range(2)
    ]
    return Launch((2,), (32,), [np.int32(7)], output=lines)
