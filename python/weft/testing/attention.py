# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Softmax attention in float64, and in plain operations of the storage type. q, k, v are [B, H, N|M, D]."""

from __future__ import annotations

import math

import torch


def _allowed(n: int, m: int, causal: bool) -> torch.Tensor:
    """bool [N, M]: causal attention is aligned at the end, query n sits at position n + (M - N)."""
    position = torch.arange(n)[:, None] + (m - n)
    keys = torch.arange(m)[None, :]
    return keys <= position if causal else torch.ones(n, m, dtype=torch.bool)


def reference_attention(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, *, causal: bool = False, scale: float | None = None
) -> tuple[torch.Tensor, torch.Tensor]:
    """Output [B, H, N, Dv] and natural-log LSE [B, H, N], both float64.

    A row with nothing to attend to gives 0 and -inf.
    """
    scale = 1 / math.sqrt(q.shape[-1]) if scale is None else scale
    scores = scale * q.double() @ k.double().transpose(-1, -2)
    scores = scores.masked_fill(~_allowed(q.shape[-2], k.shape[-2], causal), -math.inf)
    lse = torch.logsumexp(scores, -1)
    weights = torch.exp(scores - torch.where(lse == -math.inf, 0.0, lse)[..., None])
    return weights @ v.double(), lse


def plain_attention(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, *, causal: bool = False, scale: float | None = None
) -> list[torch.Tensor]:
    """The plain forms (q·scale)kᵀ and (q kᵀ)·scale: the softmax in float32, all else rounded to the storage type."""
    scale = 1 / math.sqrt(q.shape[-1]) if scale is None else scale
    allowed = _allowed(q.shape[-2], k.shape[-2], causal)

    def finish(scores: torch.Tensor) -> torch.Tensor:
        weights = torch.softmax(scores.float().masked_fill(~allowed, -math.inf), -1)
        return torch.nan_to_num(weights).to(v.dtype) @ v

    return [finish((q * scale) @ k.transpose(-1, -2)), finish((q @ k.transpose(-1, -2)) * scale)]
