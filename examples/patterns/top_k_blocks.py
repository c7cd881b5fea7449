# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Blocks chosen on the device, as NSA and MoBA do: kernels rank the key blocks for each row of query blocks, attention
reads their list. Run it: python examples/patterns/top_k_blocks.py
"""

import weft
from weft.testing import Domain, attention, demonstrate, masks

BLOCK = (32, 32)


@weft.program
def top_k_blocks(q, k, v, index, count):
    return weft.softmax(q, k, weft.blocks(index, count, block=BLOCK) & weft.causal()) @ v


def inputs(randn):
    q, k, v = randn(1, 4, 250, 64), randn(1, 2, 250, 64), randn(1, 2, 250, 64)
    index, count = weft.select_blocks(q, k, block=BLOCK, top=3)
    return {"q": q, "k": k, "v": v, "index": index, "count": count}


def expected(q, k, v, index, count, form):
    allowed = masks.blocks(250, 250, index, count, BLOCK) & masks.causal(250, 250)
    return attention(q, [Domain(k, v, allowed)], form=form)[0]


if __name__ == "__main__":
    demonstrate(top_k_blocks, expected, inputs, title="top-k blocks")
