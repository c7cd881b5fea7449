# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""weft.nn.SEMA: attention inside windows, the mean over the sequence, and a local convolution, as a module."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from weft import attention
from weft.nn import checks, parts
from weft.nn.projections import Projections, join_heads


class SEMA(Projections):
    """SEMA attention (the SEMA paper's equation 1 and algorithm 2), along a sequence or over a grid: x [B, N, dim] to
    [B, N, dim].

    Q, K, V are linear maps of x. Softmax attention of rotated queries and keys inside windows, plus the mean of all
    values, plus LePE, a depthwise convolution of them. It sees the whole sequence, before and after: it suits encoders.

    ``window``    tokens of a window; with ``grid`` = (h, w) its (rows, columns), and N = h·w tokens row by row
    ``kernel``    odd, the width of LePE; 0 leaves it out
    ``kv_heads``  fewer key and value heads than query heads: each serves a group
    ``head_size`` dim / heads unless given; a multiple of 8
    ``mean``      without it the module is algorithm 1, window attention
    ``rope``, ``rope_values``, ``rope_2d``, ``scale``  as weft.attention.sema has them

    ``forward(x, cu_seqlens=None)``: with cu_seqlens int32 [S+1], x is [1, total, dim], S sequences one after another,
    each with windows and a mean of its own; not over a grid.

    Parameters: the linear maps q_proj, k_proj, v_proj, out_proj, and ``lepe``, a torch.nn.Conv1d or Conv2d of one group
    per channel. The paper says nothing of how they begin: they are initialised as torch.nn.Linear and Conv are.

    >>> along = weft.nn.SEMA(64, 2, window=16)
    >>> along(torch.randn(2, 50, 64)).shape
    torch.Size([2, 50, 64])
    >>> over = weft.nn.SEMA(64, 2, window=(7, 7), grid=(14, 14))
    >>> over(torch.randn(1, 14 * 14, 64)).shape
    torch.Size([1, 196, 64])
    """

    def __init__(
        self,
        dim: int,
        heads: int,
        *,
        window: int | Sequence[int],
        grid: Sequence[int] | None = None,
        kernel: int = 3,
        kv_heads: int | None = None,
        head_size: int | None = None,
        rope: bool = True,
        mean: bool = True,
        scale: float | None = None,
        rope_values: bool = False,
        rope_2d: str = "axial",
        bias: bool = True,
        device: Any = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__(dim, heads, kv_heads, head_size, bias, device, dtype)
        self.window = _sizes("window", window, 1 if grid is None else 2)
        self.grid = None if grid is None else _sizes("grid", grid, 2)
        self.options: dict[str, Any] = {
            "rope": rope, "mean": mean, "scale": scale, "rope_values": rope_values, "rope_2d": rope_2d,
        }  # fmt: skip
        if rope_2d not in ("axial", "flat"):
            raise ValueError(f"SEMA: expected 'rope_2d' to be 'axial' or 'flat', but got {rope_2d!r}")
        self.lepe: torch.nn.Module | None = None
        if not isinstance(kernel, int) or isinstance(kernel, bool) or kernel != 0:
            checks.odd("SEMA", kernel=kernel)
            conv: Any = parts.Conv1d if grid is None else parts.Conv2d
            channels = self.kv_heads * self.head_size
            self.lepe = conv(
                channels, channels, kernel, padding=kernel // 2, groups=channels, device=device, dtype=dtype
            )

    def forward(self, x: torch.Tensor, cu_seqlens: torch.Tensor | None = None) -> torch.Tensor:
        """See the class."""
        q, k, v = self.split(x, self.grid and self.grid[0] * self.grid[1])
        weight, bias = (None, None) if self.lepe is None else parts.weights(self, "lepe")
        checks.starts("SEMA", cu_seqlens, x)
        if cu_seqlens is not None and self.grid is not None:
            raise ValueError("SEMA: expected no 'cu_seqlens' with 'grid', whose tokens are one sequence")
        q, k, v, weight, bias = checks.cast(q, k, v, weight, bias)
        where: dict[str, Any] = {"window": self.window, "grid": self.grid, "cu_seqlens": cu_seqlens}
        out = attention.sema(q, k, v, weight, bias, **where, **self.options)
        return self.out_proj(join_heads(out))

    def extra_repr(self) -> str:
        """The sizes and the window, for printing."""
        grid = "" if self.grid is None else f", grid={self.grid}"
        return f"{super().extra_repr()}, window={self.window}{grid}"


def _sizes(name: str, value: Any, count: int) -> Any:
    """One positive integer, or a pair of them."""
    if count == 1:
        if isinstance(value, Sequence):
            raise ValueError(f"SEMA: expected '{name}' to be an integer without 'grid', but got {value!r}")
        checks.positive("SEMA", **{name: value})
        return value
    if not isinstance(value, Sequence) or isinstance(value, str) or len(value) != 2:
        raise ValueError(f"SEMA: expected '{name}' to be two sizes (rows, columns), but got {value!r}")
    for size in value:
        checks.positive("SEMA", **{name: size})
    return tuple(value)
