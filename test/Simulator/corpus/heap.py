# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Launches of heap.cu."""

import numpy as np

from .case import Launch, case


@case("heap.cu")
def heap_list(rng):
    x = rng.integers(-100, 100, (40, 6)).astype(np.int32)
    want = (x[:, ::-1] * np.arange(1, 7)).sum(1)
    return Launch((1,), (40,), [x, np.zeros(40, np.int32), np.int32(6)], {1: want})
