# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Launches of pipeline.cu."""

import numpy as np

from .case import Launch, case


@case("pipeline.cu")
def stages_primitives(rng):
    x = rng.integers(-50, 50, (7, 128)).astype(np.float32)
    want = (x[:, ::-1] * np.arange(1, 8)[:, None]).sum(0)
    return Launch((1,), (128,), [x, np.zeros(128, np.float32), np.int32(7)], {1: want})


@case("pipeline.cu")
def zero_fill(rng):
    x = rng.integers(1, 100, 201).astype(np.int32)
    want = np.concatenate([x, np.zeros(55, np.int32)])[::-1]
    return Launch((1,), (64,), [x, np.zeros(256, np.int32), np.int32(201)], {1: want})


@case("pipeline.cu")
def copy_by_group(rng):
    x = rng.integers(-1000, 1000, 400).astype(np.int16)
    return Launch((1,), (96,), [x, np.zeros_like(x), np.int32(400)], {1: x[::-1]})
