# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Launches of groups.cu."""

import numpy as np

from .case import Launch, case


def integers(rng, *shape):
    return rng.integers(-99, 99, shape).astype(np.int32)


@case("groups.cu")
def grid_phases(rng):
    x = integers(rng, 1500)
    y = x[::-1] * 2 + 9
    args = [x, np.zeros_like(x), np.zeros_like(x), np.int32(1500)]
    return Launch((9,), (64,), args, {1: np.roll(y, -100), 2: y})


@case("groups.cu")
def label_groups(rng):
    x = integers(rng, 64)
    want = np.zeros(64, np.int32)
    for i, value in enumerate(x):
        warp = x[i // 32 * 32 :][:32]
        same, half = np.flatnonzero(warp & 3 == value & 3), np.flatnonzero((warp > 0) == (value > 0))
        rank = list(same).index(i % 32)
        want[i] = warp[same].sum() * 3 + warp[half].min() + warp[same[:rank]].sum() * 5 + rank + len(half)
    return Launch((1,), (64,), [x, np.zeros_like(x)], {1: want})


@case("groups.cu")
def wide_tiles(rng):
    x = integers(rng, 2, 64)
    return Launch((1,), (128,), [x, np.zeros_like(x)], {1: x.sum(1, keepdims=True) * 3 + x.cumsum(1)})


@case("groups.cu")
def tile_copies(rng):
    x = integers(rng, 5, 4, 32)
    return Launch((1,), (128,), [x, np.zeros_like(x), np.int32(5)], {1: x[:, :, ::-1] * 2})
