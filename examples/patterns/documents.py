# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Documents side by side in one sequence: causal, and only among tokens of the same document.
Run it: python examples/patterns/documents.py
"""

import torch
import weft
from weft.testing import Domain, attention, demonstrate, masks


@weft.program
def documents(q, k, v, ids):
    return weft.softmax(q, k, weft.document(ids, ids) & weft.causal()) @ v


def inputs(randn):
    tensors = {name: randn(2, 2, 200, 64) for name in ("q", "k", "v")}
    starts = torch.rand(2, 200) < 0.02
    return tensors | {"ids": starts.cumsum(1).to(torch.int32)}


def expected(q, k, v, ids, form):
    allowed = masks.document(ids, ids) & masks.causal(200, 200)
    return attention(q, [Domain(k, v, allowed)], form=form)[0]


if __name__ == "__main__":
    demonstrate(documents, expected, inputs, title="documents")
