# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""weft.nn.GAU: the gated attention unit, plain or with convolutions before its scores and its gate, as a module."""

from __future__ import annotations

from typing import Any

import torch
from torch.nn.functional import silu

from weft import attention
from weft.nn import checks, parts
from weft.patterns import Pattern
from weft.programs import mixers
from weft.programs.program import program


class GAU(torch.nn.Module):
    """Gated attention unit (composite attention, equations 8 to 11): x [B, N, dim] to [B, N, dim].

    u, v, g = silu(x W_u), silu(x W_v), silu(x W_g); q = κ_q ⊙ u + μ_q, k = κ_k ⊙ u + μ_k; the result is
    (g ⊙ softmax(q kᵀ / √d) v) W_out: one head of attention under a gate of as many heads as channels.

    ``size``       d, channels of queries and keys; a multiple of 8
    ``expansion``  v and g have expansion · dim channels, a multiple of 8; ``value_size`` gives their number instead
    ``pattern``    which pairs attend: weft.causal(), ...; None is every pair
    ``kernel``     above 0, the module is convolution-equipped (equations 19 and 20): u is of T₀x and g of T₁x, causal
                   depthwise convolutions of so many taps, v of x
    ``scale``      of the scores, 1/√d unless given

    ``forward(x, cu_seqlens=None)``: with cu_seqlens int32 [S+1], x is [1, total, dim], S sequences one after another,
    and no token sees another sequence.

    Parameters: the linear maps u_proj, v_proj, g_proj, out_proj, without bias unless ``bias``, and the convolutions
    conv_u and conv_g, initialised as torch.nn.Linear and Conv1d are; kappa_q, kappa_k drawn from N(0, 0.02²) and mu_q,
    mu_k zero. The paper says nothing of how they begin; that is how the unit's first paper has it (Hua et al., 2022).

    >>> gau = weft.nn.GAU(64, size=32, pattern=weft.causal())
    >>> gau(torch.randn(2, 50, 64)).shape
    torch.Size([2, 50, 64])
    >>> gau = weft.nn.GAU(64, size=32, pattern=weft.causal(), kernel=3)
    >>> gau(torch.randn(2, 50, 64)).shape
    torch.Size([2, 50, 64])
    """

    def __init__(
        self,
        dim: int,
        *,
        size: int = 128,
        expansion: int = 2,
        value_size: int | None = None,
        pattern: Pattern | None = None,
        kernel: int = 0,
        scale: float | None = None,
        bias: bool = False,
        device: Any = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        checks.given("GAU", dim=dim, expansion=expansion)
        checks.truth("GAU", bias=bias)
        checks.head_size("GAU", "size", size)
        self.value_size = expansion * dim if value_size is None else value_size
        checks.head_size("GAU", "value_size", self.value_size)
        checks.pattern("GAU", pattern)
        if not isinstance(kernel, int) or isinstance(kernel, bool) or kernel != 0:
            checks.given("GAU", kernel=kernel)
        self.dim, self.size, self.pattern, self.kernel, self.scale = dim, size, pattern, kernel, scale
        place: dict[str, Any] = {"device": device, "dtype": dtype}
        self.u_proj = torch.nn.Linear(dim, size, bias=bias, **place)
        self.v_proj = torch.nn.Linear(dim, self.value_size, bias=bias, **place)
        self.g_proj = torch.nn.Linear(dim, self.value_size, bias=bias, **place)
        self.out_proj = torch.nn.Linear(self.value_size, dim, bias=bias, **place)
        for name in ("kappa_q", "mu_q", "kappa_k", "mu_k"):
            self.register_parameter(name, torch.nn.Parameter(torch.empty(size, **place)))
        for name in ("conv_u", "conv_g") if kernel else ():
            self.add_module(name, parts.Conv1d(dim, dim, kernel, groups=dim, bias=bias, **place))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw κ anew, and set μ to zero."""
        for name in ("kappa_q", "kappa_k"):
            torch.nn.init.normal_(getattr(self, name), std=0.02)
        for name in ("mu_q", "mu_k"):
            torch.nn.init.zeros_(getattr(self, name))

    def forward(self, x: torch.Tensor, cu_seqlens: torch.Tensor | None = None) -> torch.Tensor:
        """See the class."""
        checks.tensor("GAU", "x", x, f"[B, N, {self.dim}]", (None, None, self.dim), self.u_proj)
        checks.starts("GAU", cu_seqlens, x)
        x_u, x_g = x, x
        if self.kernel:
            x_u, x_g = (_convolved(x, *parts.weights(self, name), cu_seqlens) for name in ("conv_u", "conv_g"))
        u, v, g = silu(self.u_proj(x_u)), silu(self.v_proj(x)), silu(self.g_proj(x_g))
        u, v, g = (each.unsqueeze(1) for each in checks.cast(u, v, g))
        # κ and μ are of their own type: q and k are rounded once
        vectors = (self.kappa_q, self.mu_q, self.kappa_k, self.mu_k)
        y = attention.gau(u, v, g, *vectors, self.pattern, scale=self.scale, cu_seqlens=cu_seqlens)
        return self.out_proj(y.squeeze(1))

    def extra_repr(self) -> str:
        """The sizes and the pattern, for printing."""
        kernel = f", kernel={self.kernel}" if self.kernel else ""
        return f"{self.dim}, size={self.size}, value_size={self.value_size}, pattern={self.pattern}{kernel}"


def _convolved(
    x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None, cu_seqlens: torch.Tensor | None
) -> torch.Tensor:
    """x [B, N, dim] under a causal depthwise convolution, whose weight torch reads as a correlation."""
    x, weight, bias = checks.cast(x, weight, bias)
    taps = weight[:, 0].flip(-1).t().contiguous()
    out = _along(x.unsqueeze(1), taps, cu_seqlens).squeeze(1)
    return out if bias is None else out + bias


@program
def _along(x: Any, taps: Any, cu_seqlens: Any) -> Any:
    return mixers.toeplitz(taps, cu_seqlens=cu_seqlens) @ x
