# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Strided sparse attention (Child et al.): one head sees the last 32 keys, the other every 32nd before.
Run it: python examples/patterns/strided.py
"""

import weft
from weft.testing import Domain, attention, demonstrate, masks

STEP = 32


@weft.program
def strided(q, k, v):
    local = weft.window(STEP, 0)
    columns = weft.strided(STEP) & weft.causal()
    return weft.softmax(q, k, weft.per_head([local, columns])) @ v


def inputs(randn):
    return {name: randn(1, 2, 200, 64) for name in ("q", "k", "v")}


def expected(q, k, v, form):
    local = masks.window(200, 200, STEP, 0)
    columns = masks.strided(200, 200, STEP) & masks.causal(200, 200)
    return attention(q, [Domain(k, v, masks.per_head([local, columns]))], form=form)[0]


if __name__ == "__main__":
    demonstrate(strided, expected, inputs, title="strided")
