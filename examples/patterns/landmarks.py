# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Landmarks: a window of near keys, and every 16 keys pooled to one, under one softmax.
Run it: python examples/patterns/landmarks.py
"""

import weft
from weft.testing import Domain, attention, demonstrate, masks

STEP = 16


def passed(b, h, n, m):
    """Whether all keys of landmark m lie before query n."""
    return (m + 1) * STEP <= n


@weft.program
def two_domains(q, k, v, pooled_k, pooled_v):
    near, far = weft.domain(k, weft.window(32, 0)), weft.domain(pooled_k, weft.mask(passed))
    return weft.softmax(q, near, far) @ (v, pooled_v)


def pool(x):
    return x.unflatten(2, (-1, STEP)).mean(3)


def landmarks(q, k, v):
    return two_domains(q, k, v, pool(k), pool(v))


def inputs(randn):
    return {name: randn(1, 2, 208, 64) for name in ("q", "k", "v")}


def expected(q, k, v, form):
    far = Domain(pool(k), pool(v), masks.mask(208, 13, passed))
    return attention(q, [Domain(k, v, masks.window(208, 208, 32, 0)), far], form=form)[0]


if __name__ == "__main__":
    demonstrate(landmarks, expected, inputs, title="landmarks")
