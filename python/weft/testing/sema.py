# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""SEMA by its formula: window attention + mean + LePE, in the precision of its operands; float64 is the reference."""

from __future__ import annotations

import torch

from weft.testing import masks, mixers
from weft.testing.attention import Domain, attention, repeat_heads, wide


def window_positions(n: int, window: int | tuple[int, int], grid: tuple[int, int] | None) -> list[torch.Tensor]:
    """The index in its window of each token: [position], or [row, column] on a grid."""
    token = torch.arange(n)
    if grid is None:
        assert isinstance(window, int)
        return [token.remainder(window)]
    assert not isinstance(window, int)
    row, column = torch.div(token, grid[1], rounding_mode="floor"), token.remainder(grid[1])
    return [row.remainder(window[0]), column.remainder(window[1])]


def window_rope(
    x: torch.Tensor, window: int | tuple[int, int], grid: tuple[int, int] | None = None, form: str = "axial"
) -> torch.Tensor:
    """Rotary positions that count from 0 in every window; on a grid ``axial``, or ``flat``: r·columns + c."""
    place = window_positions(x.shape[2], window, grid)
    if len(place) == 1:
        return mixers.rope(x, place[0])
    if form == "flat":
        assert not isinstance(window, int)
        return mixers.rope(x, place[0] * window[1] + place[1])
    return mixers.rope_axial(x, *place)


def lepe(
    v: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None = None, grid: tuple[int, int] | None = None
) -> torch.Tensor:
    """Depthwise cross-correlation of v [B, Hkv, N, Dv] as torch.nn.Conv1d and Conv2d have it, zero at the ends of the
    sequence or grid: weight [Hkv·Dv, 1, K] or [Hkv·Dv, 1, K, K], bias [Hkv·Dv]."""
    # A correlation is the convolution with the weight reversed.
    if grid is None:
        out = mixers.toeplitz(v, weight[:, 0].flip(-1).mT, centred=True)
    else:
        out = mixers.toeplitz_grid(v, weight[:, 0].flip(-1, -2).flatten(1).mT, grid)
    if bias is not None:
        out = (wide(out) + wide(bias).view(1, v.shape[1], 1, v.shape[3])).to(v.dtype)
    return out


def sema(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    lepe_weight: torch.Tensor | None,
    lepe_bias: torch.Tensor | None = None,
    *,
    window: int | tuple[int, int],
    grid: tuple[int, int] | None = None,
    rope: bool = True,
    mean: bool = True,
    scale: float | None = None,
    rope_values: bool = False,
    rope_2d: str = "axial",
    form: str = "scaled scores",
) -> torch.Tensor:
    """A_w v + mean() v + LePE(v), [B, H, N, Dv]; without the mean it is the paper's algorithm 1."""
    H, N = q.shape[1:3]
    values = v
    if rope:
        q, k = window_rope(q, window, grid, rope_2d), window_rope(k, window, grid, rope_2d)
        if rope_values:
            values = window_rope(v, window, grid, rope_2d)
    allowed = masks.block_window(N, N, window, grid)
    out, _ = attention(q, [Domain(k, values, allowed)], scale=scale, form=form)
    if mean:
        out = out + repeat_heads(mixers.mean(v), H)
    if lepe_weight is not None:
        out = out + repeat_heads(lepe(v, lepe_weight, lepe_bias, grid), H)
    return out
