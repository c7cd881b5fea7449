# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""A sliding window: each query sees itself and the 40 keys before it.
Run it: python examples/patterns/sliding_window.py
"""

import weft
from weft.testing import Domain, attention, demonstrate, masks


@weft.program
def sliding_window(q, k, v, *, left=40, right=0):
    return weft.softmax(q, k, weft.window(left, right)) @ v


def inputs(randn):
    return {name: randn(1, 2, 300, 64) for name in ("q", "k", "v")}


def expected(q, k, v, form):
    return attention(q, [Domain(k, v, masks.window(300, 300, 40, 0))], form=form)[0]


if __name__ == "__main__":
    demonstrate(sliding_window, expected, inputs, title="sliding window")
