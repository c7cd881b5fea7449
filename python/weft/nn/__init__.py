# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Mechanisms as torch.nn.Modules: parameters of their own around the functions of weft.attention.

weft.nn.Attention(dim, heads, pattern=weft.causal())   softmax attention over any pattern
weft.nn.SEMA(dim, heads, window=64)                    attention inside windows + mean + LePE
weft.nn.SFA(dim, heads)                                causal attention over merged runs of tokens
weft.nn.SAS(dim, heads)                                attention over simulated heads and features
weft.nn.PEAA(heads, head_size, out)                    its output map alone, [B, Ĥ, N, D] to [B, N, out]
weft.nn.GAU(dim, pattern=weft.causal())                gated attention unit, plain or convolution-equipped

All but PEAA take x [B, N, dim] and give [B, N, dim] in the type of x. They hold float32, bfloat16 or float16
parameters, run on the CPU (by the simulator) and on CUDA, and under torch.autocast compute in its type. PyTorch is
imported when the first of them is used.
"""

from __future__ import annotations

from weft import lazy

__getattr__, __dir__, __all__ = lazy.attach(__name__, __file__)
