# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Every query attends to every key. Run it: python examples/patterns/full.py"""

import weft
from weft.testing import Domain, attention, demonstrate


@weft.program
def full(q, k, v):
    return weft.softmax(q, k) @ v


def inputs(randn):
    return {"q": randn(2, 2, 113, 64), "k": randn(2, 2, 203, 64), "v": randn(2, 2, 203, 64)}


def expected(q, k, v, form):
    return attention(q, [Domain(k, v)], form=form)[0]


if __name__ == "__main__":
    demonstrate(full, expected, inputs, title="full")
