# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Soft-capping: scores stay within ±20, smoothly. Run it: python examples/patterns/soft_cap.py"""

import torch
import weft
from weft.testing import Domain, attention, demonstrate, masks


@weft.program
def soft_cap(q, k, v, *, cap=20.0):
    return weft.softmax(q, k, weft.causal(), score_mod=lambda score, b, h, n, m: cap * weft.tanh(score / cap)) @ v


def inputs(randn):
    return {"q": 4 * randn(1, 2, 200, 64), "k": 4 * randn(1, 2, 200, 64), "v": randn(1, 2, 200, 64)}


def expected(q, k, v, form):
    domain = Domain(k, v, masks.causal(200, 200))
    return attention(q, [domain], score_mod=lambda s, b, h, n, m: 20 * torch.tanh(s / 20), form=form)[0]


if __name__ == "__main__":
    demonstrate(soft_cap, expected, inputs, title="soft-capping")
