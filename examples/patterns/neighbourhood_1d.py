# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""1-D neighbourhood attention: always 31 keys, the window moved inwards at the ends, dilated by 2.
Run it: python examples/patterns/neighbourhood_1d.py
"""

import weft
from weft.testing import Domain, attention, demonstrate, masks


@weft.program
def neighbourhood_1d(q, k, v):
    return weft.softmax(q, k, weft.neighbourhood((200,), (31,), dilation=2)) @ v


def inputs(randn):
    return {name: randn(1, 2, 200, 64) for name in ("q", "k", "v")}


def expected(q, k, v, form):
    return attention(q, [Domain(k, v, masks.neighbourhood(200, 200, (200,), (31,), (2,)))], form=form)[0]


if __name__ == "__main__":
    demonstrate(neighbourhood_1d, expected, inputs, title="neighbourhood, 1-D")
