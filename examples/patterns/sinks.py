# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Attention sinks: a learned logit for each head that takes weight and gives no value.
Run it: python examples/patterns/sinks.py
"""

import torch
import weft
from weft.testing import Domain, attention, demonstrate, masks


@weft.program
def sinks(q, k, v, sink):
    return weft.softmax(q, k, weft.window(64, 0), sink=sink) @ v


def inputs(randn):
    tensors = {name: randn(1, 4, 200, 64) for name in ("q", "k", "v")}
    return tensors | {"sink": randn(4, dtype=torch.float32)}


def expected(q, k, v, sink, form):
    return attention(q, [Domain(k, v, masks.window(200, 200, 64, 0))], sink=sink, form=form)[0]


if __name__ == "__main__":
    demonstrate(sinks, expected, inputs, title="sinks")
