# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Causal softmax attention; each key and value head serves four query heads."""

import weft


@weft.program
def attention(q: "fp16[B,4*Hkv,N,64]:16", k: "fp16[B,Hkv,N,64]:16", v: "fp16[B,Hkv,N,64]:16"):
    return weft.softmax(q, k, weft.causal()) @ v
