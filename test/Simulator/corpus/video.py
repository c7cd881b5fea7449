# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Launches of video.cu."""

import numpy as np

from .arithmetic import join, parts, signed
from .case import Launch, case


def packed_row(p: int, q: int) -> list[int]:
    pairs = list(zip(parts(p, 8), parts(q, 8), strict=True))
    halves = [(signed(x, 16), signed(y, 16)) for x, y in zip(parts(p, 16), parts(q, 16), strict=True)]
    differences = [abs(x - y) for x, y in pairs]
    return [
        join(differences, 8),
        sum(differences),
        join([x + y for x, y in pairs], 8),
        join([max(x, y) for x, y in halves], 16),
        join([255 * (x > y) for x, y in pairs], 8),
        join([(x + y + 1) // 2 for x, y in pairs], 8),
        join([min(max(x + y, -32768), 32767) for x, y in halves], 16),
        join([max(x - y, 0) for x, y in pairs], 8),
    ]


@case("video.cu")
def packed_bytes(rng):
    x = rng.integers(0, 2**32, 100, dtype=np.uint32)
    want = np.array([packed_row(int(p), int(q)) for p, q in zip(x, x[::-1], strict=True)], np.uint32).T
    return Launch((2,), (64,), [x, np.zeros((8, 100), np.uint32), np.int32(100)], {1: want})
