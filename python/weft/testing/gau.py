# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""The gated attention unit by its formula, in the precision of its operands; float64 is the reference."""

from __future__ import annotations

import torch

from weft.testing import mixers
from weft.testing.attention import Domain, attention, wide


def silu(x: torch.Tensor) -> torch.Tensor:
    """x · sigmoid(x), rounded once."""
    return (wide(x) * torch.sigmoid(wide(x))).to(x.dtype)


def gau(
    u: torch.Tensor,
    v: torch.Tensor,
    g: torch.Tensor,
    kappa_q: torch.Tensor,
    mu_q: torch.Tensor,
    kappa_k: torch.Tensor,
    mu_k: torch.Tensor,
    *,
    mask: torch.Tensor | None = None,
    scale: float | None = None,
    form: str = "scaled scores",
) -> torch.Tensor:
    """y = g ⊙ softmax(scale · q kᵀ) v with q = κ_q ⊙ u + μ_q, k = κ_k ⊙ u + μ_k; ``mask`` bool [N, N], or all pairs."""
    q = (kappa_q * u + mu_q).to(u.dtype)
    k = (kappa_k * u + mu_k).to(u.dtype)
    attended, _ = attention(q, [Domain(k, v, mask)], scale=scale, form=form)
    return g * attended


def convolved_gau(
    x_u: torch.Tensor,
    x_v: torch.Tensor,
    x_g: torch.Tensor,
    taps_u: torch.Tensor,
    taps_g: torch.Tensor,
    kappa_q: torch.Tensor,
    mu_q: torch.Tensor,
    kappa_k: torch.Tensor,
    mu_k: torch.Tensor,
    *,
    mask: torch.Tensor | None = None,
    form: str = "scaled scores",
) -> torch.Tensor:
    """Equations 19 and 20: the scores from T_0 x, the gate from T_1 x, the value from x, each after SiLU."""
    u = silu(mixers.toeplitz(x_u, taps_u))
    g = silu(mixers.toeplitz(x_g, taps_g))
    return gau(u, silu(x_v), g, kappa_q, mu_q, kappa_k, mu_k, mask=mask, form=form)
