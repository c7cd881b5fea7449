# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""A dilated window: every third key, at most 20 of them on each side. Run it: python examples/patterns/dilated.py"""

import weft
from weft.testing import Domain, attention, demonstrate, masks


@weft.program
def dilated(q, k, v):
    return weft.softmax(q, k, weft.dilated(step=3, width=20)) @ v


def inputs(randn):
    return {name: randn(1, 2, 200, 64) for name in ("q", "k", "v")}


def expected(q, k, v, form):
    return attention(q, [Domain(k, v, masks.dilated(200, 200, 3, 20))], form=form)[0]


if __name__ == "__main__":
    demonstrate(dilated, expected, inputs, title="dilated")
