# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Launches of reduce.cu."""

import numpy as np

from .case import Launch, case


@case("reduce.cu")
def sum_tree(rng):
    x = rng.standard_normal(5000).astype(np.float32)
    owner = np.arange(5000) // 256 % 4
    sums = np.array([x[owner == b].astype(np.float64).sum() for b in range(4)])
    return Launch((4,), (256,), [x, np.zeros(4, np.float32), np.int32(5000)], {1: sums}, atol=1e-3)


@case("reduce.cu")
def row_sum_shuffle(rng):
    x = rng.standard_normal((6, 333)).astype(np.float32)
    return Launch(
        (6,), (128,), [x, np.zeros(6, np.float32), np.int32(333)], {1: x.astype(np.float64).sum(1)}, atol=1e-4
    )


@case("reduce.cu")
def extremes_atomic(rng):
    x = rng.integers(-(10**6), 10**6, 1000).astype(np.int32)
    args = [x, np.array([2**31 - 1], np.int32), np.array([-(2**31)], np.int32), np.zeros(1, np.int64), np.int32(1000)]
    return Launch((8,), (128,), args, {1: x.min()[None], 2: x.max()[None], 3: x.sum(dtype=np.int64)[None]})


@case("reduce.cu")
def sum_last_block(rng):
    x = rng.standard_normal(1500).astype(np.float32)
    args = [x, np.zeros(12, np.float32), np.zeros(1, np.uint32), np.zeros(1, np.float32), np.int32(1500)]
    return Launch((12,), (128,), args, {2: np.zeros(1, np.uint32), 3: x.astype(np.float64).sum()[None]}, atol=1e-3)


@case("reduce.cu")
def tile_reduce(rng):
    x = rng.integers(-1000, 1000, 256).astype(np.int32)
    tiles = x.reshape(32, 8)
    lane = np.arange(256) % 64
    return Launch(
        (4,),
        (64,),
        [x, np.zeros(64, np.int32), np.zeros(256, np.int32)],
        {1: np.stack([tiles.sum(1), tiles.max(1)], 1).ravel(), 2: lane // 8 * 100 + lane % 8},
    )


@case("reduce.cu")
def redux_part(rng):
    x = rng.integers(0, 2**32, 64, dtype=np.uint32)
    want = np.zeros((64, 4), np.uint32)
    members = np.array([bool(0x0FF0F00F >> i & 1) for i in range(32)])
    for warp in range(2):
        values = x[warp * 32 : warp * 32 + 32][members]
        results = [
            values.sum(dtype=np.uint32),
            values.max(),
            np.bitwise_xor.reduce(values),
            values.view(np.int32).min().view(np.uint32),
        ]
        want[warp * 32 : warp * 32 + 32][members] = results
    return Launch((1,), (64,), [x, np.zeros(256, np.uint32)], {1: want.ravel()})
