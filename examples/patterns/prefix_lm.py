# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Prefix-LM: the first 70 tokens are seen by all, the rest causally. Run it: python examples/patterns/prefix_lm.py"""

import weft
from weft.testing import Domain, attention, demonstrate, masks


@weft.program
def prefix_lm(q, k, v):
    return weft.softmax(q, k, weft.prefix(70) | weft.causal()) @ v


def inputs(randn):
    return {name: randn(1, 2, 200, 64) for name in ("q", "k", "v")}


def expected(q, k, v, form):
    allowed = masks.prefix(200, 200, 70) | masks.causal(200, 200)
    return attention(q, [Domain(k, v, allowed)], form=form)[0]


if __name__ == "__main__":
    demonstrate(prefix_lm, expected, inputs, title="prefix-LM")
