# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""The gated attention unit (composite attention, equations 8 to 14), and the same with convolutions before its scores
and its gate (equations 19 and 20). u, v and g are what the unit's linear maps give.
"""

import weft


@weft.program
def gau(
    u: "fp16[B,1,N,128]:16", v: "fp16[B,1,N,256]:16", g: "fp16[B,1,N,256]:16",
    kappa_q: "fp16[128]", mu_q: "fp16[128]", kappa_k: "fp16[128]", mu_k: "fp16[128]",
):  # fmt: skip
    """y = g ⊙ softmax(q kᵀ / √d) v: a gate of as many heads as channels makes one head's attention many-headed."""
    q = kappa_q * u + mu_q
    k = kappa_k * u + mu_k
    return weft.diag(g) @ weft.softmax(q, k, weft.causal()) @ v


@weft.program
def large_gau(
    u: "fp16[B,1,N,128]:16", v: "fp16[B,1,N,1536]:16", g: "fp16[B,1,N,1536]:16",
    kappa_q: "fp16[128]", mu_q: "fp16[128]", kappa_k: "fp16[128]", mu_k: "fp16[128]",
):  # fmt: skip
    """The same with values as wide as the paper's large models have them: no program holds all of their channels."""
    q = kappa_q * u + mu_q
    k = kappa_k * u + mu_k
    return weft.diag(g) @ weft.softmax(q, k, weft.causal()) @ v


@weft.program
def convolution_equipped(
    x_u: "fp16[B,1,N,128]:16", x_v: "fp16[B,1,N,256]:16", x_g: "fp16[B,1,N,256]:16",
    taps_0: "fp16[3,128]:16", taps_1: "fp16[3,256]:16",
    kappa_q: "fp16[128]", mu_q: "fp16[128]", kappa_k: "fp16[128]", mu_k: "fp16[128]",
):  # fmt: skip
    """y = f_G(T₁ x) · f_A(T₀ x) · v, the convolutions causal and depthwise: taps [K, channels]."""
    u = weft.silu(weft.toeplitz(taps_0) @ x_u)
    g = weft.silu(weft.toeplitz(taps_1) @ x_g)
    q, k = kappa_q * u + mu_q, kappa_k * u + mu_k
    return weft.diag(g) @ weft.softmax(q, k, weft.causal()) @ weft.silu(x_v)
