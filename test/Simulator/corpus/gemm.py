# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Launches of gemm.cu."""

import numpy as np

from .case import Launch, case, from_bfloat, to_bfloat


@case("gemm.cu")
def gemm_tiled(rng):
    a, b = rng.standard_normal((32, 48)).astype(np.float32), rng.standard_normal((48, 64)).astype(np.float32)
    args = [a, b, np.zeros((32, 64), np.float32), np.int32(64), np.int32(48)]
    return Launch((4, 2), (16, 16), args, {2: a.astype(np.float64) @ b}, atol=1e-4)


@case("gemm.cu")
def gemm_dp4a(rng):
    a, b = rng.integers(-128, 128, (16, 32)).astype(np.int8), rng.integers(-128, 128, (32, 32)).astype(np.int8)
    args = [a, b, np.zeros((16, 32), np.int32), np.int32(32), np.int32(8)]
    return Launch((4, 2), (8, 8), args, {2: a.astype(np.int32) @ b.T.astype(np.int32)})


@case("gemm.cu")
def gemm_mma_ldmatrix(rng):
    a, b = to_bfloat(rng.standard_normal((16, 64))), to_bfloat(rng.standard_normal((64, 8)))
    want = from_bfloat(a).astype(np.float64) @ from_bfloat(b)
    return Launch((1,), (32,), [a, b, np.zeros((16, 8), np.float32), np.int32(64)], {2: want}, atol=1e-4)


@case("gemm.cu")
def gemm_mma_s8(rng):
    a, b = rng.integers(-128, 128, (16, 32)).astype(np.int8), rng.integers(0, 256, (8, 32)).astype(np.uint8)
    want = np.clip(a.astype(np.int64) @ b.T.astype(np.int64) + 2147400000, -(2**31), 2**31 - 1)
    return Launch((1,), (32,), [a, b, np.zeros((16, 8), np.int32)], {2: want})
