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

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from weft.nn.attention import Attention as Attention
    from weft.nn.gau import GAU as GAU
    from weft.nn.peaa import PEAA as PEAA
    from weft.nn.sas import SAS as SAS
    from weft.nn.sema import SEMA as SEMA
    from weft.nn.sfa import SFA as SFA

# Public name: the module that defines it.
_NAMES = {
    "GAU": "weft.nn.gau",
    "PEAA": "weft.nn.peaa",
    "SAS": "weft.nn.sas",
    "SEMA": "weft.nn.sema",
    "SFA": "weft.nn.sfa",
    "Attention": "weft.nn.attention",
}

__all__ = ["GAU", "PEAA", "SAS", "SEMA", "SFA", "Attention"]


def __getattr__(name: str) -> Any:
    if name not in _NAMES:
        raise AttributeError(f"module 'weft.nn' has no attribute '{name}'")
    value = getattr(importlib.import_module(_NAMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_NAMES})
