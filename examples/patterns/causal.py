# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Causal attention, aligned at the end: the last query sees every key. Run it: python examples/patterns/causal.py"""

import weft
from weft.testing import Domain, attention, demonstrate, masks


@weft.program
def causal(q, k, v):
    return weft.softmax(q, k, weft.causal()) @ v


def inputs(randn):
    return {"q": randn(1, 2, 113, 64), "k": randn(1, 2, 203, 64), "v": randn(1, 2, 203, 64)}


def expected(q, k, v, form):
    return attention(q, [Domain(k, v, masks.causal(113, 203))], form=form)[0]


if __name__ == "__main__":
    demonstrate(causal, expected, inputs, title="causal")
