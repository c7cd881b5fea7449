# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Launches of sort.cu."""

import numpy as np

from .case import Launch, case


@case("sort.cu")
def bitonic_sort(rng):
    keys = rng.integers(0, 2**32, (2, 256), dtype=np.uint32)
    return Launch((2,), (256,), [keys.copy(), np.int32(256)], {0: np.sort(keys, 1)}, shared=1024)


@case("sort.cu")
def rank_sort(rng):
    x = rng.integers(0, 40, 150).astype(np.float32)
    return Launch((2,), (96,), [x, np.zeros_like(x), np.int32(150)], {1: np.sort(x)})


@case("sort.cu")
def radix_sort_bits(rng):
    keys = rng.integers(0, 2**12, 256, dtype=np.uint32)
    return Launch((1,), (256,), [keys.copy(), np.int32(12)], {0: np.sort(keys)})


@case("sort.cu")
def histogram_shared(rng):
    x = rng.integers(0, 256, 3000).astype(np.uint8)
    want = np.bincount(x, minlength=256)
    return Launch((3,), (128,), [x, np.zeros(256, np.uint32), np.int32(3000)], {1: want})


@case("sort.cu")
def histogram_match(rng):
    keys = rng.integers(0, 5, 500).astype(np.int32)
    return Launch((4,), (128,), [keys, np.zeros(5, np.uint32), np.int32(500)], {1: np.bincount(keys, minlength=5)})
