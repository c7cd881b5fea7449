# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""2-D neighbourhood attention: 7×7 keys around each token of a grid, moved inwards at its borders.
Run it: python examples/patterns/neighbourhood_2d.py
"""

import weft
from weft.testing import Domain, attention, demonstrate, masks

GRID = (14, 18)


@weft.program
def neighbourhood_2d(q, k, v):
    return weft.softmax(q, k, weft.neighbourhood(GRID, (7, 7))) @ v


def inputs(randn):
    return {name: randn(1, 2, GRID[0] * GRID[1], 32) for name in ("q", "k", "v")}


def expected(q, k, v, form):
    tokens = GRID[0] * GRID[1]
    return attention(q, [Domain(k, v, masks.neighbourhood(tokens, tokens, GRID, (7, 7)))], form=form)[0]


if __name__ == "__main__":
    demonstrate(neighbourhood_2d, expected, inputs, title="neighbourhood, 2-D")
