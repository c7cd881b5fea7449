# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""SAS, simulated attention score: few narrow heads are expanded, by convolutions over heads and linear maps over
channels, into many wide ones; PEAA projects their groups by one matrix. Run it: python examples/08_sas.py
"""

import math

import torch
import weft
from weft.testing import demonstrate
from weft.testing import sas as formulas

H, MANY, D, WIDE, OUT, KERNEL = 4, 12, 32, 48, 96, 3


@weft.program
def expand(x, w):
    x1 = weft.head_conv(x, w["conv1.weight"], w["conv1.bias"])
    x2 = weft.head_conv(weft.relu(x1), w["conv2.weight"], w["conv2.bias"]) + x1
    if "linear1.weight" not in w:
        return x2
    x3 = weft.linear(x2, w["linear1.weight"], w["linear1.bias"])
    return weft.linear(weft.relu(x3), w["linear2.weight"], w["linear2.bias"]) + x3


@weft.program
def sas(q, k, v, q_expand, k_expand, v_expand, weight, bias):
    q, k, v = expand(q, q_expand), expand(k, k_expand), expand(v, v_expand)
    y = weft.softmax(q, k, weft.causal()) @ v
    return weft.mean_heads(weft.linear(y, weight, bias, heads=H))  # the compiler takes the mean first


def expected(q, k, v, q_expand, k_expand, v_expand, weight, bias, form):
    y = formulas.sas(q, k, v, q_expand, k_expand, v_expand, form=form)
    return formulas.peaa(y, weight, bias, H)


def inputs(randn):
    tensors = {name: randn(1, H, 100, D) for name in "qkv"}
    for name in "qkv":
        shapes = formulas.expansion_shapes(H, MANY, D, None if name == "v" else WIDE, KERNEL)
        tensors |= {f"{name} {key}": x for key, x in formulas.drawn_weights(randn, shapes).items()}
    return tensors | {"weight": randn(OUT, H * D) / math.sqrt(H * D), "bias": randn(OUT)}


if __name__ == "__main__":
    names = list(inputs(torch.randn))
    title = f"SAS, {MANY} heads made of {H}, {weft.device()}"
    program, formula = (formulas.with_dicts(function, names) for function in (sas, expected))
    demonstrate(program, formula, inputs, title=title, products_as_given=False)
