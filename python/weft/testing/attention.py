# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Softmax attention by its formula, whole matrices at once, in the precision of its operands.

On float64 operands the formula is the reference. On operands of a storage type it is what plain framework operations
reach: softmax and score_mod in float32, all else rounded. It has three ``form``s that round differently:

    "scaled query"    (q·scale)kᵀ
    "scaled scores"   (q kᵀ)·scale
    "delta"           the same, and its backward is P ⊙ (dP - delta) with delta from the rounded output

Gradients come from PyTorch's autograd over these operations. q, k, v are [B, H, N|M, D].
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from weft.testing import masks

FORMS = ("scaled query", "scaled scores", "delta")

#: score_mod(score, b, h, n, m): index tensors broadcast, so bias[b, h, n, m] reads what a scalar would
ScoreMod = Callable[..., torch.Tensor]


@dataclass(frozen=True)
class Domain:
    """One source of keys and values. ``mask`` is bool, broadcastable to [B, H, N, M]; None is every pair. ``count``
    [B, Hkv] says how many of the keys there are."""

    k: torch.Tensor
    v: torch.Tensor
    mask: torch.Tensor | None = None
    count: torch.Tensor | None = None


def wide(x: torch.Tensor) -> torch.Tensor:
    """x in the precision of softmax, rope and norms: float32, or float64 where x is that."""
    return x if x.dtype == torch.float64 else x.float()


def repeat_heads(x: torch.Tensor, heads: int) -> torch.Tensor:
    """[B, Hkv, ...] as [B, heads, ...]: query head h uses h // (heads / Hkv)."""
    return x.repeat_interleave(heads // x.shape[1], 1)


def attention(
    q: torch.Tensor,
    domains: Sequence[Domain],
    *,
    scale: float | None = None,
    score_mod: ScoreMod | None = None,
    bias: torch.Tensor | None = None,
    sink: torch.Tensor | None = None,
    form: str = "scaled scores",
) -> tuple[torch.Tensor, torch.Tensor]:
    """Output [B, H, N, Dv] and natural-log LSE [B, H, N] under one softmax over all domains.

    s = score_mod(scale·q·k) + bias, then the masks; ``sink`` [H] is a logit without a value. A row with nothing to
    attend to gives 0 and -inf, and no gradient.
    """
    B, H, N, D = q.shape
    scale = 1 / math.sqrt(D) if scale is None else scale
    scores, values = [], []
    for domain in domains:
        k, v = repeat_heads(domain.k, H), repeat_heads(domain.v, H)
        M = k.shape[2]
        raw = (q * scale) @ k.mT if form == "scaled query" else (q @ k.mT) * scale
        score = wide(raw)
        if score_mod is not None:
            b, h = torch.arange(B)[:, None, None, None], torch.arange(H)[:, None, None]
            score = score_mod(score, b, h, torch.arange(N)[:, None], torch.arange(M))
        if bias is not None:
            score = score + wide(bias)
        allowed = masks.full(N, M) if domain.mask is None else domain.mask
        if domain.count is not None:
            present = torch.arange(M) < repeat_heads(domain.count, H)[:, :, None, None]
            allowed = allowed & present
        scores.append(score.masked_fill(~allowed, -math.inf))
        values.append(v)
    score, v = torch.cat(scores, -1), torch.cat(values, 2)
    sinks = None if sink is None else wide(sink)[None, :, None, None].expand(B, H, N, 1)
    if form == "delta":
        return _DeltaSoftmax.apply(score, v, sinks)
    weights, lse = _softmax(score, sinks)
    return weights.to(v.dtype) @ v, lse


def _softmax(score: torch.Tensor, sinks: torch.Tensor | None) -> tuple[torch.Tensor, torch.Tensor]:
    """Row softmax of [B, H, N, M] and its normaliser's logarithm, in which the sinks count too."""
    logits = score if sinks is None else torch.cat([score, sinks], -1)
    if logits.shape[-1] == 0:
        return logits, logits.new_full(logits.shape[:-1], -math.inf)
    # The maximum moves nothing but the range, so it takes no part in the gradient.
    highest = logits.detach().amax(-1, keepdim=True)
    highest = torch.where(highest == -math.inf, 0.0, highest)
    weights = torch.exp(logits - highest)
    total = weights.sum(-1, keepdim=True)
    seen = total > 0
    total = torch.where(seen, total, 1.0)
    lse = torch.where(seen, torch.log(total) + highest, -math.inf)[..., 0]
    return (weights / total)[..., : score.shape[-1]], lse


class _DeltaSoftmax(torch.autograd.Function):
    """softmax(score) v whose backward recomputes P from the LSE and takes delta from the rounded output."""

    @staticmethod
    def forward(ctx: Any, score: torch.Tensor, v: torch.Tensor, sinks: torch.Tensor | None) -> Any:
        weights, lse = _softmax(score, sinks)
        out = weights.to(v.dtype) @ v
        ctx.save_for_backward(score, v, sinks, out, lse)
        return out, lse

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> Any:
        d_out, d_lse = gradients
        score, v, sinks, out, lse = ctx.saved_tensors
        shift = torch.where(lse == -math.inf, 0.0, lse)[..., None]
        weights = torch.exp(score - shift)
        # The mixed derivative through the LSE joins delta: ds = P (dP - delta + dLSE).
        delta = (wide(d_out) * wide(out)).sum(-1, keepdim=True) - wide(d_lse)[..., None]
        d_weights = wide(d_out @ v.mT)
        d_score = (weights * (d_weights - delta)).to(v.dtype)
        d_v = weights.to(v.dtype).mT @ d_out
        d_sinks = None if sinks is None else -torch.exp(sinks - shift) * delta
        return d_score.to(score.dtype), d_v, d_sinks


def reference_attention(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, *, causal: bool = False, scale: float | None = None
) -> tuple[torch.Tensor, torch.Tensor]:
    """Output [B, H, N, Dv] and natural-log LSE [B, H, N] in float64."""
    allowed = masks.causal(q.shape[2], k.shape[2]) if causal else None
    return attention(q.double(), [Domain(k.double(), v.double(), allowed)], scale=scale)


def plain_attention(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, *, causal: bool = False, scale: float | None = None
) -> list[torch.Tensor]:
    """The outputs of the plain forms, in the storage type."""
    allowed = masks.causal(q.shape[2], k.shape[2]) if causal else None
    return [attention(q, [Domain(k, v, allowed)], scale=scale, form=form)[0] for form in FORMS[:2]]
