# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""SFA, semantic foundation attention: runs of adjacent tokens, alike or orthogonal, are merged head by head and serve
as one key. Run it: python examples/07_sfa.py
"""

import functools

import torch
import weft
from weft.testing import demonstrate
from weft.testing import sfa as formula


@weft.program
def sfa(q, k, v, q_gain, k_gain, *, max_joins=20):
    joins = weft.merge_decide(k, k_gain)
    q = weft.rms_norm(q.to("fp32"), q_gain)
    k = weft.rms_norm(k.to("fp32"), k_gain)
    units = weft.merge_units(joins, k, v, max_joins=max_joins, to=v.dtype)
    keys, values = units.merged
    itself = weft.domain(k.to(v.dtype), weft.window(0, 0))
    before = weft.domain(keys, units.seen)
    return weft.softmax(q.to(v.dtype), itself, before) @ (v, values)


def inputs(randn, *, length, heads, head, share):
    """A share of the tokens is like the one before, and some are orthogonal to it."""
    q, k, v = (randn(1, heads, length, head) for _ in range(3))
    for i in range(1, length):
        if torch.rand(()) < share:
            k[:, :, i] = k[:, :, i - 1]
        elif torch.rand(()) < share:
            k[:, :, i, 0::2], k[:, :, i, 1::2] = -k[:, :, i - 1, 1::2], k[:, :, i - 1, 0::2]
    return {"q": q, "k": k, "v": v} | {name: randn(heads, head) * 0.1 + 1 for name in ("q_gain", "k_gain")}


def main():
    for share in (0.0, 0.5, 0.9):
        demonstrate(
            sfa,
            formula,
            functools.partial(inputs, length=200, heads=2, head=64, share=share),
            title=f"SFA, {share:.0%} of the tokens like the one before, {weft.device()}",
            dtypes=(torch.float16,),
            products_as_given=False,
        )


if __name__ == "__main__":
    main()
