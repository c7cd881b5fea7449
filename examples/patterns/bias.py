# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""An additive bias [H, N, M] with its gradient, as T5 and AlphaFold have. Run it: python examples/patterns/bias.py"""

import weft
from weft.testing import Domain, attention, demonstrate


@weft.program
def bias(q, k, v, table):
    return weft.softmax(q, k, score_mod=lambda score, b, h, n, m: score + table[h, n, m]) @ v


def inputs(randn):
    return {name: randn(2, 2, 120, 64) for name in ("q", "k", "v")} | {"table": randn(2, 120, 120)}


def expected(q, k, v, table, form):
    return attention(q, [Domain(k, v)], bias=table, form=form)[0]


if __name__ == "__main__":
    demonstrate(bias, expected, inputs, title="bias")
