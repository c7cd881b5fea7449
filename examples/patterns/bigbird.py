# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""BigBird: random blocks, a window of blocks, and global tokens. Run it: python examples/patterns/bigbird.py"""

import torch
import weft
from weft.testing import Domain, attention, demonstrate, masks

BLOCK = 32
RANDOM = weft.random_blocks(seed=7, per_row=2, block=BLOCK)


@weft.program
def bigbird(q, k, v):
    return weft.softmax(q, k, RANDOM | weft.window(BLOCK, BLOCK) | weft.global_tokens(BLOCK)) @ v


def inputs(randn):
    return {name: randn(1, 2, 256, 64) for name in ("q", "k", "v")}


def expected(q, k, v, form):
    chance = torch.as_tensor(RANDOM.matrix(256, 256))
    allowed = chance | masks.window(256, 256, BLOCK, BLOCK) | masks.global_tokens(256, 256, BLOCK)
    return attention(q, [Domain(k, v, allowed)], form=form)[0]


if __name__ == "__main__":
    demonstrate(bigbird, expected, inputs, title="BigBird")
