# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Launches of collectives.cu."""

import numpy as np

from .case import Launch, case


@case("collectives.cu")
def cub_block_reduce(rng):
    x = rng.standard_normal((3, 128)).astype(np.float32)
    want = np.stack([x.astype(np.float64).sum(1), x.max(1)], 1)
    return Launch((3,), (128,), [x, np.zeros((3, 2), np.float32)], {1: want}, atol=1e-4)


@case("collectives.cu")
def cub_block_scan(rng):
    x = rng.integers(-100, 100, 512).astype(np.int32)
    want = np.concatenate([[0], x.cumsum()[:-1]])
    return Launch((1,), (256,), [x, np.zeros_like(x), np.zeros(1, np.int32)], {1: want, 2: x.sum()[None]})


@case("collectives.cu")
def cub_block_sort(rng):
    keys = rng.integers(0, 300, 512, dtype=np.uint32)
    order = np.argsort(keys, kind="stable")
    args = [keys.copy(), np.arange(512, dtype=np.int32)]
    return Launch((1,), (128,), args, {0: keys[order], 1: order})


@case("collectives.cu")
def cub_warp(rng):
    x = rng.integers(-100, 100, 128).astype(np.int32)
    args = [x, np.zeros(4, np.int32), np.zeros(128, np.int32)]
    return Launch((1,), (128,), args, {1: x.reshape(4, 32).sum(1), 2: x.reshape(8, 16).cumsum(1).ravel()})


@case("collectives.cu")
def cub_exchange(rng):
    x = rng.integers(-100, 100, 256).astype(np.int32)
    return Launch((1,), (64,), [x, np.zeros_like(x)], {1: x * 10 + np.arange(256) % 4})
