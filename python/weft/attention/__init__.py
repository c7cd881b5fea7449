# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Mechanisms as one call each, on torch tensors (differentiable) or NumPy arrays, and within programs.

weft.attention.attend(q, k, v, pattern)   softmax attention, with bias, sink, score_mod, packed sequences
weft.attention.append(k_cache, v_cache, k_new, v_new, seqused_k=...)   new tokens written into a cache
weft.attention.decode(q, k_cache, v_cache, pattern, block_table=..., seqused_k=...)   over a cache, paged or not
weft.attention.flex_attention(q, k, v, score_mod, block_mask)   the same, called as torch's flex_attention
weft.attention.gau(u, v, g, kappa_q, mu_q, kappa_k, mu_k)   the gated attention unit
weft.attention.sas(q, k, v, q_expand, k_expand, v_expand, kernel=3)   attention over heads made of those given
weft.attention.peaa(y, weight, bias, heads)   its output projection
weft.attention.sema(q, k, v, lepe_weight, window=64)   window attention + mean + LePE
weft.attention.sfa(q, k, v, q_gain, k_gain)   causal attention to runs of tokens merged by what they say
"""

from __future__ import annotations

from weft.attention.append import append
from weft.attention.attend import attend
from weft.attention.decode import decode
from weft.attention.flex import flex_attention
from weft.attention.gau import gau
from weft.attention.sas import peaa, sas
from weft.attention.sema import sema
from weft.attention.sfa import sfa

__all__ = ["append", "attend", "decode", "flex_attention", "gau", "peaa", "sas", "sema", "sfa"]
