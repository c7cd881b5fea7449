# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Grouped heads: six query heads share two heads of keys and values. One such head is multi-query attention.
Run it: python examples/patterns/grouped_heads.py
"""

import weft
from weft.testing import Domain, attention, demonstrate, masks


@weft.program
def grouped_heads(q, k, v):
    return weft.softmax(q, k, weft.causal()) @ v


def inputs(randn, groups=2):
    return {"q": randn(2, 6, 150, 64), "k": randn(2, groups, 150, 64), "v": randn(2, groups, 150, 64)}


def expected(q, k, v, form):
    return attention(q, [Domain(k, v, masks.causal(150, 150))], form=form)[0]


if __name__ == "__main__":
    demonstrate(grouped_heads, expected, inputs, title="grouped heads")
    demonstrate(grouped_heads, expected, lambda randn: inputs(randn, 1), title="one key head")
