# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""SAS, simulated attention score: few narrow heads are expanded, by convolutions over heads and linear maps over
channels, into many wide ones; PEAA projects their groups by one matrix. The program is mechanisms/sas.py.
Run it: python examples/08_sas.py
"""

import math

import torch
import weft
from mechanisms.sas import KERNEL, MANY, H, sas
from weft.testing import Demonstration
from weft.testing import sas as formulas

D, WIDE, OUT = 32, 48, 96


def expected(q, k, v, q_expand, k_expand, v_expand, weight, bias, form):
    y = formulas.sas(q, k, v, q_expand, k_expand, v_expand, form=form)
    return formulas.peaa(y, weight, bias, H)


def inputs(randn):
    tensors = {name: randn(1, H, 100, D) for name in "qkv"}
    for name in "qkv":
        shapes = formulas.expansion_shapes(H, MANY, D, None if name == "v" else WIDE, KERNEL)
        tensors |= {f"{name} {key}": x for key, x in formulas.drawn_weights(randn, shapes).items()}
    return tensors | {"weight": randn(OUT, H * D) / math.sqrt(H * D), "bias": randn(OUT)}


def demonstrations():
    names = list(inputs(torch.randn))
    program, formula = (formulas.with_dicts(function, names) for function in (sas, expected))
    weights = [name for name in names if name not in "qkv"]
    rule = {"parameters": weights, "unseen": formulas.unseen(names), "products_as_given": False}
    yield Demonstration(f"SAS, {MANY} heads made of {H}", program, formula, inputs, rule)


if __name__ == "__main__":
    print(weft.device())
    for each in demonstrations():
        each.show((torch.float16, torch.bfloat16))
