# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""weft.nn.Attention: softmax attention over a pattern, as a module."""

from __future__ import annotations

from typing import Any

import torch

from weft import attention
from weft.nn import checks
from weft.nn.projections import Projections, join_heads
from weft.patterns import Pattern
from weft.programs import functions
from weft.programs.program import program


@program
def _attention(q: Any, k: Any, v: Any, starts: Any, *, pattern: Any, rope: bool, scale: float | None) -> Any:
    if rope:
        q, k = functions.rope(q, k)
    return attention.attend(q, k, v, pattern, scale=scale, cu_seqlens_q=starts, cu_seqlens_k=starts)


class Attention(Projections):
    """Multi-head softmax self-attention, concat_h(softmax(scale · q kᵀ) v) W_O over a pattern: x [B, N, dim] to
    [B, N, dim].

    ``pattern``    which pairs attend: weft.causal(), weft.window(64, 0), ...; None is every pair
    ``kv_heads``   fewer key and value heads than query heads: each serves a group
    ``head_size``  dim / heads unless given; a multiple of 8
    ``rope``       turn queries and keys by their positions
    ``scale``      of the scores, 1/√head_size unless given

    ``forward(x, cu_seqlens=None)``: with cu_seqlens int32 [S+1], x is [1, total, dim], S sequences one after another,
    and no token sees another sequence.

    Parameters: the linear maps q_proj, k_proj, v_proj, out_proj, initialised as torch.nn.Linear is.

    >>> attention = weft.nn.Attention(64, 4, kv_heads=2, pattern=weft.causal(), rope=True)
    >>> attention(torch.randn(2, 50, 64)).shape
    torch.Size([2, 50, 64])
    """

    def __init__(
        self,
        dim: int,
        heads: int,
        *,
        pattern: Pattern | None = None,
        kv_heads: int | None = None,
        head_size: int | None = None,
        rope: bool = False,
        scale: float | None = None,
        bias: bool = True,
        device: Any = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__(dim, heads, kv_heads, head_size, bias, device, dtype)
        checks.pattern("Attention", pattern)
        self.pattern, self.rope, self.scale = pattern, rope, scale

    def forward(self, x: torch.Tensor, cu_seqlens: torch.Tensor | None = None) -> torch.Tensor:
        """See the class."""
        q, k, v = checks.cast(*self.split(x))
        checks.starts("Attention", cu_seqlens, x)
        out = _attention(q, k, v, cu_seqlens, pattern=self.pattern, rope=self.rope, scale=self.scale)
        return self.out_proj(join_heads(out))

    def extra_repr(self) -> str:
        """The sizes and the pattern, for printing."""
        return f"{super().extra_repr()}, pattern={self.pattern}, rope={self.rope}"
