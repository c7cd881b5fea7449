# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Longformer: a window around each token, and four global tokens that see and are seen by all.
Run it: python examples/patterns/longformer.py
"""

import weft
from weft.testing import Domain, attention, demonstrate, masks


@weft.program
def longformer(q, k, v):
    return weft.softmax(q, k, weft.window(32, 32) | weft.global_tokens(4)) @ v


def inputs(randn):
    return {name: randn(1, 2, 300, 64) for name in ("q", "k", "v")}


def expected(q, k, v, form):
    allowed = masks.window(300, 300, 32, 32) | masks.global_tokens(300, 300, 4)
    return attention(q, [Domain(k, v, allowed)], form=form)[0]


if __name__ == "__main__":
    demonstrate(longformer, expected, inputs, title="Longformer")
