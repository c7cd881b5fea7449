# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Launches of barrier.cu."""

import numpy as np

from .case import Launch, case


@case("barrier.cu")
def stages_pipeline(rng):
    x = rng.integers(-100, 100, (5, 64)).astype(np.int32)
    return Launch((1,), (64,), [x, np.zeros_like(x), np.int32(5)], {1: x[:, ::-1] + np.arange(5)[:, None]})


@case("barrier.cu")
def producer_consumer(rng):
    x = rng.integers(-100, 100, (6, 32)).astype(np.int32)
    return Launch((1,), (64,), [x, np.zeros_like(x), np.int32(6)], {1: x[:, ::-1] * 3 + np.arange(6)[:, None]})


@case("barrier.cu")
def copy_by_barrier(rng):
    x = rng.standard_normal((3, 256))
    return Launch((3,), (64,), [x, np.zeros_like(x)], {1: x[:, np.arange(256) ^ 1] * 0.5})
