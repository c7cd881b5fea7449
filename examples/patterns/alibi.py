# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""ALiBi: scores fall with distance, by a slope for each head; here the slopes are learned.
Run it: python examples/patterns/alibi.py
"""

import torch
import weft
from weft.testing import Domain, attention, demonstrate, masks


@weft.program
def alibi(q, k, v, slopes):
    def fall(score, b, h, n, m):
        return score - slopes[h] * (n - m)

    return weft.softmax(q, k, weft.causal(), score_mod=fall) @ v


def inputs(randn):
    tensors = {name: randn(1, 4, 200, 64) for name in ("q", "k", "v")}
    return tensors | {"slopes": torch.tensor([2.0 ** -(2 * h + 2) for h in range(4)])}


def expected(q, k, v, slopes, form):
    domain = Domain(k, v, masks.causal(200, 200))
    return attention(q, [domain], score_mod=lambda s, b, h, n, m: s - slopes[h] * (n - m), form=form)[0]


if __name__ == "__main__":
    demonstrate(alibi, expected, inputs, title="ALiBi")
