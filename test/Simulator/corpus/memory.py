# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Launches of memory.cu."""

import numpy as np

from .case import Launch, case


@case("memory.cu")
def transpose_padded(rng):
    x = rng.standard_normal((50, 70)).astype(np.float32)
    return Launch((3, 2), (32, 8), [x, np.zeros((70, 50), np.float32), np.int32(50), np.int32(70)], {1: x.T})


@case("memory.cu")
def scale_vectors(rng):
    x = rng.standard_normal((100, 4)).astype(np.float32)
    f = np.float32(1.75)
    want = np.stack([x[:, 0] * f, x[:, 1] + f, x[:, 2] - f, x[:, 3] * np.float64(f) + 1], 1)
    return Launch((2,), (64,), [x, np.zeros_like(x), f, np.int32(100)], {1: want}, rtol=1e-6, atol=1e-6)


@case("memory.cu")
def blur3x3(rng):
    x = rng.standard_normal((20, 33)).astype(np.float32)
    padded = np.pad(x.astype(np.float64), 1, mode="edge")
    taps = [[1, 2, 1], [2, 4, 2], [1, 2, 1]]
    want = sum(taps[i][j] * padded[i : i + 20, j : j + 33] for i in range(3) for j in range(3)) / 16
    return Launch((3, 3), (16, 8), [x, np.zeros_like(x), np.int32(20), np.int32(33)], {1: want}, atol=1e-6)


@case("memory.cu")
def digits_reversed(rng):
    x = rng.integers(0, 10**9, 70, dtype=np.uint32) // 10 ** rng.integers(0, 9, 70).astype(np.uint32)
    want = np.array([int(str(v)[::-1]) % 2**32 for v in x], np.uint32)
    return Launch((3,), (32,), [x, np.zeros_like(x), np.int32(70)], {1: want})


@case("memory.cu")
def apply_affine(rng):
    layout = np.dtype([("matrix", "f4", (2, 2)), ("shift", "f8", 2), ("count", "i2"), ("flag", "i1")], align=True)
    map = np.zeros((), layout)
    map["matrix"], map["shift"], map["count"], map["flag"] = [[1.5, -2], [0.25, 3]], [10, -20], 20, 1
    x = rng.standard_normal((32, 2)).astype(np.float32)
    want = np.zeros((32, 2))
    want[:20] = (x[:20].astype(np.float64) @ map["matrix"].T.astype(np.float64) + map["shift"])[:, ::-1]
    return Launch((1,), (32,), [np.void(map.tobytes()), x, np.zeros((32, 2))], {2: want}, atol=1e-5)


@case("memory.cu")
def generic_pointer(rng):
    x = rng.integers(-100, 100, 128).astype(np.int32)
    mirror = np.arange(128)[::-1]
    return Launch((1,), (128,), [x, np.zeros_like(x)], {1: np.where(x & 1, 1000 + mirror, x[mirror])})


@case("memory.cu")
def narrow_widths(rng):
    data = rng.integers(0, 256, 100).astype(np.uint8)
    signed = data.view(np.int8).astype(np.int64)
    args = [data, np.zeros(100, np.int16), np.zeros(100, np.int64), np.int32(100)]
    return Launch((2,), (64,), args, {1: (signed * 3 - data[::-1]).astype(np.int16), 2: signed << 33 | data})


@case("memory.cu")
def stencil_3d(rng):
    x = rng.standard_normal((9, 9, 9)).astype(np.float32)
    p = np.pad(x.astype(np.float64), 1)
    inner = slice(1, -1)
    near = p[2:, inner, inner] + p[:-2, inner, inner] + p[inner, 2:, inner] + p[inner, :-2, inner]
    want = 6 * x - near - p[inner, inner, 2:] - p[inner, inner, :-2]
    return Launch((2, 3, 3), (8, 4, 4), [x, np.zeros_like(x), np.int32(9)], {1: want}, atol=1e-5)
