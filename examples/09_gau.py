# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""The gated attention unit, and the same with convolutions before queries, keys and gate (composite attention);
their programs are mechanisms/gau.py. Run it: python examples/09_gau.py
"""

import functools

import weft
from mechanisms.gau import convolution_equipped, gau
from weft.testing import Demonstration, convolved_gau, masks
from weft.testing import gau as formula


def inputs(randn, *, tokens=150, head=128, values=192, taps=None):
    wide = {"u": randn(1, 1, tokens, head), "v": randn(1, 1, tokens, values), "g": randn(1, 1, tokens, values)}
    filters = {"taps_0": randn(taps, head), "taps_1": randn(taps, values)} if taps else {}
    scales = {name: randn(head) / 8 + ("kappa" in name) for name in ("kappa_q", "mu_q", "kappa_k", "mu_k")}
    return wide | filters | scales


def demonstrations():
    mask = masks.causal(150, 150)
    for title, program, expected, taps in (
        ("GAU", gau, formula, None),
        ("convolution-equipped GAU", convolution_equipped, convolved_gau, 3),
    ):
        yield Demonstration(
            title,
            program,
            functools.partial(expected, mask=mask),
            functools.partial(inputs, taps=taps),
            {"parameters": ("taps_0", "taps_1"), "products_as_given": False},
        )


if __name__ == "__main__":
    print(weft.device())
    for each in demonstrations():
        each.show()
