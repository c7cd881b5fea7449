# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""SFA, semantic foundation attention: runs of adjacent tokens, alike or orthogonal, are merged head by head and serve
as one key; its program is mechanisms/sfa.py. Run it: python examples/07_sfa.py
"""

import functools

import torch
import weft
from mechanisms.sfa import sfa
from weft.testing import Demonstration
from weft.testing import sfa as formula


def inputs(randn, *, length, heads, head, share):
    """A share of the tokens is like the one before, and some are orthogonal to it."""
    q, k, v = (randn(1, heads, length, head) for _ in range(3))
    for i in range(1, length):
        if torch.rand(()) < share:
            k[:, :, i] = k[:, :, i - 1]
        elif torch.rand(()) < share:
            k[:, :, i, 0::2], k[:, :, i, 1::2] = -k[:, :, i - 1, 1::2], k[:, :, i - 1, 0::2]
    return {"q": q, "k": k, "v": v} | {name: randn(heads, head) * 0.1 + 1 for name in ("q_gain", "k_gain")}


def demonstrations():
    for share in (0.0, 0.5, 0.9):
        yield Demonstration(
            f"SFA, {share:.0%} of the tokens like the one before",
            sfa,
            formula,
            functools.partial(inputs, length=200, heads=2, head=64, share=share),
            {"products_as_given": False},
        )


if __name__ == "__main__":
    print(weft.device())
    for each in demonstrations():
        each.show()
