# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Heads of tokens, and tokens of heads."""

from __future__ import annotations

from typing import Any

import torch

from weft.nn import checks


class Projections(torch.nn.Module):
    """What multi-head modules share: the linear maps to queries, keys and values and back, named ``q_proj``,
    ``k_proj``, ``v_proj`` and ``out_proj``."""

    def __init__(
        self, dim: int, heads: int, kv_heads: int | None, head_size: int | None, bias: bool, device: Any, dtype: Any
    ) -> None:
        super().__init__()
        name = type(self).__name__
        checks.given(name, dim=dim, heads=heads)
        checks.positive(name, kv_heads=kv_heads)
        checks.truth(name, bias=bias)
        if head_size is None:
            checks.divides(name, dim=dim, heads=heads)
        self.dim, self.heads = dim, heads
        self.kv_heads = heads if kv_heads is None else kv_heads
        checks.divides(name, heads=heads, kv_heads=self.kv_heads)
        self.head_size = dim // heads if head_size is None else head_size
        checks.head_size(name, "head_size", self.head_size)
        place: dict[str, Any] = {"bias": bias, "device": device, "dtype": dtype}
        self.q_proj = torch.nn.Linear(dim, heads * self.head_size, **place)
        self.k_proj = torch.nn.Linear(dim, self.kv_heads * self.head_size, **place)
        self.v_proj = torch.nn.Linear(dim, self.kv_heads * self.head_size, **place)
        self.out_proj = torch.nn.Linear(heads * self.head_size, dim, **place)

    def split(self, x: torch.Tensor, tokens: int | None = None) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Queries [B, H, N, D], keys and values [B, Hkv, N, D] of x [B, N, dim], which is checked."""
        length = "N" if tokens is None else str(tokens)
        shape = f"[B, {length}, {self.dim}]"
        checks.tensor(type(self).__name__, "x", x, shape, (None, tokens, self.dim), self.q_proj)
        return (
            split_heads(self.q_proj(x), self.heads),
            split_heads(self.k_proj(x), self.kv_heads),
            split_heads(self.v_proj(x), self.kv_heads),
        )

    def extra_repr(self) -> str:
        """The sizes, for printing."""
        grouped = "" if self.kv_heads == self.heads else f", kv_heads={self.kv_heads}"
        return f"{self.dim}, heads={self.heads}{grouped}, head_size={self.head_size}"


def split_heads(x: torch.Tensor, heads: int) -> torch.Tensor:
    """[B, N, H·D] as [B, H, N, D], without a copy."""
    return x.unflatten(-1, (heads, -1)).transpose(1, 2)


def join_heads(x: torch.Tensor) -> torch.Tensor:
    """[B, H, N, D] as [B, N, H·D]."""
    return x.transpose(1, 2).flatten(2)
