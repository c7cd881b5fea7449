# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Launches of functions.cu."""

import numpy as np

from .case import Launch, case


@case("functions.cu")
def call_functions(rng):
    c = rng.standard_normal(4).astype(np.float32)
    x = (rng.uniform(1, 2, (24, 2)) * rng.choice([-1, 1], (24, 2))).astype(np.float32)
    numbers = x[:, 0].astype(np.float64) + 1j * x[:, 1]
    q = numbers / numbers[::-1]
    want = np.stack(
        [np.polyval(c[::-1].astype(np.float64), q.real), np.polyval(c[:0:-1].astype(np.float64), q.imag)], 1
    )
    return Launch((1,), (32,), [c, x, np.zeros_like(x), np.int32(24)], {2: want}, rtol=1e-4, atol=1e-4)


@case("functions.cu")
def call_table(rng):
    which = rng.integers(0, 4, 64).astype(np.int32)
    a, b = rng.integers(-1000, 1000, (2, 64)).astype(np.int32)
    return Launch(
        (1,),
        (64,),
        [which, a, b, np.zeros(64, np.int32)],
        {3: np.choose(which, [a + b, a - b, a * b, np.maximum(a, b)])},
    )


@case("functions.cu")
def allocate_on_stack(rng):
    n = 512
    x = rng.integers(-1000, 1000, n + 4).astype(np.int32)

    def reversed_sum(values: list[int]) -> int:
        total = 0
        for value in reversed(values):
            total = 3 * total + value & 0xFFFFFFFF
        return total

    want = []
    for i in range(40):
        sums = [reversed_sum([int(v) for v in x[start : start + n - i % 8]]) for start in range(4)]
        want.append(10 * sum(sums) + int(x[i // 2]) + i & 0xFFFFFFFF)
    return Launch((1,), (40,), [x, np.zeros(40, np.int32), np.int32(n)], {1: np.array(want, np.uint32).view(np.int32)})


@case("functions.cu")
def recurse(rng):
    n, threads = 29, 48
    x = rng.integers(-50, 50, (threads, n)).astype(np.int32)

    def fibonacci(k: int) -> int:
        return k if k < 2 else fibonacci(k - 1) + fibonacci(k - 2)

    def chain(values: list[int], depth: int, k: int) -> int:
        own = [depth * depth + k, *values]
        if depth < k:
            return chain(own, depth + 1, k) - own[0]
        total = 0
        for value in own:
            total = 3 * total + value
        return total

    want = [[fibonacci(i % 11), 1 - i % 2, chain([], 0, i % 9)] for i in range(threads)]
    args = [x, np.int32(n), np.zeros((threads, 3), np.int32)]
    return Launch((1,), (threads,), args, {0: np.sort(x, 1), 2: np.array(want, np.int32)})
