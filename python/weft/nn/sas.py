# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""weft.nn.SAS: attention over simulated heads and features, as a module."""

from __future__ import annotations

from typing import Any

import torch

from weft import attention
from weft.integers import cdiv
from weft.nn import checks, parts
from weft.nn.peaa import PEAA
from weft.nn.projections import Projections

KINDS = ("weight", "bias")


class Expansion(torch.nn.Module):
    """The weights that expand one operand of SAS: conv1 and conv2 along the heads, and linear1 and linear2 along the
    features where ``expanded_size`` is given. Initialised as torch.nn.Conv1d and Linear are."""

    def __init__(
        self, heads: int, expanded_heads: int, kernel: int, size: int, expanded_size: int | None, **place: Any
    ) -> None:
        super().__init__()
        self.conv1 = parts.Conv1d(heads, expanded_heads, kernel, padding=kernel // 2, **place)
        self.conv2 = parts.Conv1d(expanded_heads, expanded_heads, kernel, padding=kernel // 2, **place)
        if expanded_size is not None:
            self.linear1 = parts.Linear(size, expanded_size, **place)
            self.linear2 = parts.Linear(expanded_size, expanded_size, **place)

    def weights(self) -> dict[str, torch.Tensor]:
        """As weft.attention.sas takes them, cast under autocast."""
        found = {name: checks.cast(*parts.weights(self, name)) for name, _ in self.named_children()}
        return {f"{name}.{kind}": each for name, pair in found.items() for kind, each in zip(KINDS, pair, strict=True)}


class SAS(Projections):
    """Simulated attention score (SAS, equations 5 to 12, appendix L): x [B, N, dim] to [B, N, dim].

    Queries, keys and values of few heads are expanded to many by two convolutions, the heads being the channels;
    queries and keys also to larger features by two linear maps; each with ReLU and a residual. Then softmax attention
    over all expanded heads, and PEAA.

    ``expanded_heads``  Ĥ, 3 · heads unless given; a multiple of heads
    ``expanded_size``   D̂ of queries and keys, a multiple of 8; unless given the least that is 3/2 · head_size or more
    ``kernel``          κ of the convolutions, odd; 1 is the perceptron form (equations 2 to 4)
    ``kv_heads``        keys and values are expanded from fewer heads (grouped and multi-query forms)
    ``head_size``       dim / heads unless given; a multiple of 8
    ``causal``          whether a token sees none after it
    ``scale``           of the scores, 1/√D̂ unless given

    ``forward(x, cu_seqlens=None)``: with cu_seqlens int32 [S+1], x is [1, total, dim], S sequences one after another,
    and no token sees another sequence.

    Parameters: the linear maps q_proj, k_proj, v_proj, the expansions q_expand, k_expand, v_expand of conv1, conv2,
    linear1, linear2, and PEAA's out_proj: initialised as torch.nn.Linear and Conv1d are, as in the paper's own code.

    >>> sas = weft.nn.SAS(32, 2, kernel=3)
    >>> sas(torch.randn(2, 50, 32)).shape
    torch.Size([2, 50, 32])
    """

    def __init__(
        self,
        dim: int,
        heads: int,
        *,
        expanded_heads: int | None = None,
        expanded_size: int | None = None,
        kernel: int = 5,
        kv_heads: int | None = None,
        head_size: int | None = None,
        causal: bool = True,
        scale: float | None = None,
        bias: bool = True,
        device: Any = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__(dim, heads, kv_heads, head_size, bias, device, dtype)
        checks.odd("SAS", kernel=kernel)
        many = 3 * heads if expanded_heads is None else expanded_heads
        checks.positive("SAS", expanded_heads=many)
        checks.divides("SAS", expanded_heads=many, heads=heads)
        wide = 8 * cdiv(3 * self.head_size, 16) if expanded_size is None else expanded_size
        checks.head_size("SAS", "expanded_size", wide)
        self.expanded_heads, self.expanded_size, self.kernel = many, wide, kernel
        self.causal, self.scale = causal, scale
        place: dict[str, Any] = {"device": device, "dtype": dtype}
        self.q_expand = Expansion(heads, many, kernel, self.head_size, wide, **place)
        self.k_expand = Expansion(self.kv_heads, many, kernel, self.head_size, wide, **place)
        self.v_expand = Expansion(self.kv_heads, many, kernel, self.head_size, None, **place)
        self.out_proj = PEAA(heads, self.head_size, dim, bias=bias, **place)

    def forward(self, x: torch.Tensor, cu_seqlens: torch.Tensor | None = None) -> torch.Tensor:
        """See the class."""
        q, k, v = checks.cast(*self.split(x))
        checks.starts("SAS", cu_seqlens, x)
        expansions = (self.q_expand.weights(), self.k_expand.weights(), self.v_expand.weights())
        options: dict[str, Any] = {"kernel": self.kernel, "causal": self.causal, "scale": self.scale}
        y = attention.sas(q, k, v, *expansions, cu_seqlens=cu_seqlens, **options)
        return self.out_proj(y)

    def extra_repr(self) -> str:
        """The sizes, for printing."""
        more = f"expanded_heads={self.expanded_heads}, expanded_size={self.expanded_size}, kernel={self.kernel}"
        return f"{super().extra_repr()}, {more}, causal={self.causal}"
