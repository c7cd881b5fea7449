# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Launches of wmma.cu."""

import numpy as np

from .case import Launch, case


@case("wmma.cu")
def gemm_wmma_f16(rng):
    a, b = rng.standard_normal((32, 48)).astype(np.float16), rng.standard_normal((32, 48)).astype(np.float16)
    want = (a.astype(np.float64) @ b.T.astype(np.float64) + 0.5) * 2
    return Launch(
        (2, 2), (32,), [a, b, np.zeros((32, 32), np.float32), np.int32(32), np.int32(48)], {2: want}, atol=1e-3
    )


@case("wmma.cu")
def gemm_wmma_32x8(rng):
    a, b = rng.standard_normal((32, 32)).astype(np.float16), rng.standard_normal((32, 8)).astype(np.float16)
    want = (a.T.astype(np.float64) @ b.astype(np.float64)).T  # a and the result are column-major
    return Launch((1,), (32,), [a, b, np.zeros((8, 32), np.float16), np.int32(32)], {2: want}, rtol=2e-3, atol=2e-2)


@case("wmma.cu")
def gemm_wmma_s8(rng):
    a, b = rng.integers(-128, 128, (16, 16)).astype(np.int8), rng.integers(-128, 128, (16, 16)).astype(np.int8)
    return Launch((1,), (32,), [a, b, np.zeros((16, 16), np.int32)], {2: a.astype(np.int32) @ b.T.astype(np.int32) - 7})


@case("wmma.cu")
def gemm_wmma_tf32(rng):
    a, b = rng.standard_normal((16, 8)).astype(np.float32), rng.standard_normal((8, 16)).astype(np.float32)
    return Launch((1,), (32,), [a, b, np.zeros((16, 16), np.float32)], {2: a.astype(np.float64) @ b}, atol=1e-2)


@case("wmma.cu")
def gemm_wmma_f64(rng):
    a, b, c = rng.standard_normal((8, 4)), rng.standard_normal((8, 4)), rng.standard_normal((8, 8))
    return Launch((1,), (32,), [a, b, c.copy()], {2: a @ b.T + c}, atol=1e-12)
