# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""The layers of weft.nn in plain PyTorch operations, whole matrices at once: the same parameters by the same names, so
that a state_dict of one loads into the other. They share nothing with weft.nn or the compiler.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from weft.testing import masks, mixers
from weft.testing.attention import Domain, attention, repeat_heads
from weft.testing.gau import gau
from weft.testing.sema import sema
from weft.testing.sfa import sfa


class _Heads(nn.Module):
    """The linear maps to q, k, v and back; ``mix`` makes heads of heads [B, H, N, D], by a form of testing.FORMS."""

    def __init__(self, dim: int, heads: int, kv_heads: int | None = None, head: int | None = None, bias: bool = True):
        super().__init__()
        head = dim // heads if head is None else head
        self.heads, self.kv_heads, self.head = heads, kv_heads or heads, head
        self.q_proj = nn.Linear(dim, heads * head, bias=bias)
        self.k_proj = nn.Linear(dim, self.kv_heads * head, bias=bias)
        self.v_proj = nn.Linear(dim, self.kv_heads * head, bias=bias)
        self.out_proj = nn.Linear(heads * head, dim, bias=bias)

    def mix(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, form: str, **more: Any) -> torch.Tensor:
        raise NotImplementedError

    def forward(self, x: torch.Tensor, form: str = "scaled scores", **more: Any) -> torch.Tensor:
        batch, tokens, _ = x.shape

        def heads(projected: torch.Tensor, count: int) -> torch.Tensor:
            return projected.view(batch, tokens, count, self.head).permute(0, 2, 1, 3)

        k, v = heads(self.k_proj(x), self.kv_heads), heads(self.v_proj(x), self.kv_heads)
        out = self.mix(heads(self.q_proj(x), self.heads), k, v, form, **more)
        return self.projected(out, form)

    def projected(self, out: torch.Tensor, form: str) -> torch.Tensor:
        return self.out_proj(out.permute(0, 2, 1, 3).flatten(2))


class Attention(_Heads):
    """``mask`` makes the bool [N, M] of a length; None is every pair."""

    def __init__(self, *sizes: Any, mask: Callable[[int], torch.Tensor] | None = None, rope: bool = False, **more: Any):
        super().__init__(*sizes, **more)
        self.mask, self.rope = mask, rope

    def mix(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, form: str, **more: Any) -> torch.Tensor:
        """The mechanism's formula on heads: q [B, H, N, D], k and v [B, Hkv, N, D] to [B, H, N, D]."""
        if self.rope:
            q, k = mixers.rope(q), mixers.rope(k)
        tokens = q.shape[2]
        mask = self.mask(tokens) if self.mask else masks.full(tokens, tokens)
        return attention(q, [Domain(k, v, mask)], form=form)[0]


class SEMA(_Heads):
    """LePE by torch's own convolution."""

    def __init__(self, *sizes: Any, window: Any, grid: Any = None, kernel: int = 3, mean: bool = True, **more: Any):
        super().__init__(*sizes, **more)
        self.window, self.grid, self.mean = window, grid, mean
        channels = self.kv_heads * self.head
        conv = nn.Conv1d if grid is None else nn.Conv2d
        self.lepe = conv(channels, channels, kernel, padding=kernel // 2, groups=channels)

    def mix(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, form: str, **more: Any) -> torch.Tensor:
        """The mechanism's formula on heads: q [B, H, N, D], k and v [B, Hkv, N, D] to [B, H, N, D]."""
        local = sema(q, k, v, None, window=self.window, grid=self.grid, mean=self.mean, form=form)
        batch, heads, tokens, head = v.shape
        channels = v.transpose(2, 3).reshape(batch, heads * head, *(self.grid or (tokens,)))
        moved = self.lepe(channels).reshape(batch, heads, head, tokens).transpose(2, 3)
        return local + repeat_heads(moved, self.heads)


class SFA(_Heads):
    """``options`` are the formula's."""

    def __init__(
        self,
        dim: int,
        heads: int,
        kv_heads: int | None = None,
        head: int | None = None,
        bias: bool = False,
        **options: Any,
    ):
        super().__init__(dim, heads, kv_heads, head, bias)
        self.options = options
        self.q_gain = nn.Parameter(torch.ones(self.heads, self.head))
        self.k_gain = nn.Parameter(torch.ones(self.kv_heads, self.head))

    def mix(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, form: str, **more: Any) -> torch.Tensor:
        """The mechanism's formula on heads: q [B, H, N, D], k and v [B, Hkv, N, D] to [B, H, N, D]."""
        return sfa(q, k, v, self.q_gain, self.k_gain, form=form, **self.options, **more)

    def projected(self, out: Any, form: str) -> Any:
        """With return_loss the compression loss goes with the result."""
        if isinstance(out, tuple):
            return super().projected(out[0], form), out[1]
        return super().projected(out, form)


class _Expansion(nn.Module):
    """The paper's appendix L: convolutions of [B·T, H, D] over the heads, linear maps of [B, T, Ĥ, D]."""

    def __init__(self, heads: int, many: int, kernel: int, head: int, wide: int | None):
        super().__init__()
        self.conv1 = nn.Conv1d(heads, many, kernel, 1, (kernel - 1) // 2)
        self.conv2 = nn.Conv1d(many, many, kernel, 1, (kernel - 1) // 2)
        if wide is not None:
            self.linear1, self.linear2 = nn.Linear(head, wide), nn.Linear(wide, wide)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, heads, tokens, head = x.shape
        first = self.conv1(x.transpose(1, 2).reshape(batch * tokens, heads, head))
        y = self.conv2(first.relu()) + first
        if hasattr(self, "linear1"):
            wide = self.linear1(y)
            y = self.linear2(wide.relu()) + wide
        return y.view(batch, tokens, y.shape[1], -1).transpose(1, 2)


class SAS(_Heads):
    """``many`` heads of ``wide`` channels; PEAA after it, by the mean of the linear maps of each group."""

    def __init__(self, *sizes: Any, many: int, wide: int, kernel: int, causal: bool = True, **more: Any):
        super().__init__(*sizes, **more)
        self.causal = causal
        self.q_expand = _Expansion(self.heads, many, kernel, self.head, wide)
        self.k_expand = _Expansion(self.kv_heads, many, kernel, self.head, wide)
        self.v_expand = _Expansion(self.kv_heads, many, kernel, self.head, None)
        self.out_proj = PEAA(self.heads, self.head, self.q_proj.in_features)

    def projected(self, out: torch.Tensor, form: str) -> torch.Tensor:
        """PEAA: [B, many, N, D] to [B, N, dim]."""
        return self.out_proj(out, form)  # PEAA takes heads

    def mix(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, form: str, **more: Any) -> torch.Tensor:
        """Attention over expanded heads: q [B, H, N, D], k and v [B, Hkv, N, D] to [B, many, N, D]."""
        tokens = q.shape[2]
        mask = masks.causal(tokens, tokens) if self.causal else None
        return attention(self.q_expand(q), [Domain(self.k_expand(k), self.v_expand(v), mask)], form=form)[0]


class PEAA(nn.Linear):
    """Each group of heads through the linear map, then their mean; in the form "scaled query" the mean goes through it,
    which is the same but for where 16-bit operations round."""

    def __init__(self, heads: int, head: int, out: int):
        super().__init__(heads * head, out)
        self.heads = heads

    def forward(self, y: torch.Tensor, form: str = "scaled scores") -> torch.Tensor:
        """[B, many, N, D] to [B, N, out]."""
        groups = torch.stack([group.transpose(1, 2).flatten(2) for group in y.split(self.heads, 1)])
        if form == "scaled query":
            return super().forward(groups.mean(0))
        return super().forward(groups).mean(0)


class GAU(nn.Module):
    """Convolutions by torch's own, of x with zeros before it."""

    def __init__(self, dim: int, size: int, values: int, *, mask: Callable[[int], torch.Tensor], kernel: int = 0):
        super().__init__()
        self.mask = mask
        self.u_proj, self.v_proj, self.g_proj = (nn.Linear(dim, out, bias=False) for out in (size, values, values))
        self.out_proj = nn.Linear(values, dim, bias=False)
        self.kappa_q, self.mu_q, self.kappa_k, self.mu_k = (nn.Parameter(torch.zeros(size)) for _ in range(4))
        self.conv_u, self.conv_g = (
            nn.Conv1d(dim, dim, kernel, groups=dim, bias=False, padding=kernel - 1) if kernel else None
            for _ in range(2)
        )

    def forward(self, x: torch.Tensor, form: str = "scaled scores") -> torch.Tensor:
        """[B, N, dim] to [B, N, dim]."""

        def made(linear: nn.Module, conv: nn.Module | None = None) -> torch.Tensor:
            moved = x if conv is None else conv(x.mT)[..., : x.shape[1]].mT
            return nn.functional.silu(linear(moved))[:, None]

        u, v, g = made(self.u_proj, self.conv_u), made(self.v_proj), made(self.g_proj, self.conv_g)
        y = gau(u, v, g, self.kappa_q, self.mu_q, self.kappa_k, self.mu_k, mask=self.mask(x.shape[1]), form=form)
        return self.out_proj(y[:, 0])
