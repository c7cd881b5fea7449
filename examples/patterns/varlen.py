# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Sequences of different lengths packed after one another, one of them empty.
Run it: python examples/patterns/varlen.py
"""

import torch
import weft
from weft.testing import Domain, attention, demonstrate, masks


def varlen(q, k, v, starts):
    return weft.attention.attend(q, k, v, weft.causal(), cu_seqlens_q=starts, cu_seqlens_k=starts)


def inputs(randn):
    tensors = {name: randn(1, 2, 260, 64) for name in ("q", "k", "v")}
    return tensors | {"starts": torch.tensor([0, 100, 100, 117, 260], dtype=torch.int32)}


def expected(q, k, v, starts, form):
    return attention(q, [Domain(k, v, masks.packed(starts, starts, masks.causal))], form=form)[0]


if __name__ == "__main__":
    demonstrate(varlen, expected, inputs, title="varlen")
