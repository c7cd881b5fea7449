# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Launches of scan.cu."""

import numpy as np

from .case import Launch, case


@case("scan.cu")
def scan_double_buffer(rng):
    x = rng.integers(-100, 100, (3, 128)).astype(np.int32)
    args = [x, np.zeros_like(x), np.int32(128)]
    return Launch((3,), (128,), args, {1: x.cumsum(1, dtype=np.int32)}, shared=2 * 128 * 4)


@case("scan.cu")
def scan_shuffle(rng):
    x = rng.integers(-100, 100, 700).astype(np.int32)
    want = np.concatenate([x[i : i + 256].cumsum(dtype=np.int32) for i in range(0, 700, 256)])
    return Launch((3,), (256,), [x, np.zeros_like(x), np.int32(700)], {1: want})


@case("scan.cu")
def scan_look_back(rng):
    x = rng.integers(-100, 100, 2000).astype(np.int32)
    args = [x, np.zeros_like(x), np.zeros(16, np.uint64), np.zeros(1, np.uint32), np.int32(2000)]
    return Launch((16,), (128,), args, {1: x.cumsum(dtype=np.int32)})


@case("scan.cu")
def compact_positive(rng):
    x = rng.standard_normal(256).astype(np.float32)
    kept = x[x > 0]
    want = np.concatenate([kept, np.zeros(256 - len(kept), np.float32)])
    return Launch((1,), (256,), [x, np.zeros_like(x), np.zeros(1, np.int32)], {1: want, 2: np.array([len(kept)])})
