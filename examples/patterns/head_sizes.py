# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Keys of 192 channels and values of 128, as multi-head latent attention has them.
Run it: python examples/patterns/head_sizes.py
"""

import weft
from weft.testing import Domain, attention, demonstrate, masks


@weft.program
def head_sizes(q, k, v):
    return weft.softmax(q, k, weft.causal()) @ v


def inputs(randn):
    return {"q": randn(1, 2, 140, 192), "k": randn(1, 2, 140, 192), "v": randn(1, 2, 140, 128)}


def expected(q, k, v, form):
    return attention(q, [Domain(k, v, masks.causal(140, 140))], form=form)[0]


if __name__ == "__main__":
    demonstrate(head_sizes, expected, inputs, title="head sizes 192 and 128")
