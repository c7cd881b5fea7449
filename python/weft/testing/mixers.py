# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""The other mixers, rope and norms by their formulas, in the precision of their operands: float64 is the reference.

x and v are [B, H, N, C]. Dense matrices on purpose: a mixer is what its matrix says.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch

from weft.testing.attention import wide


def mean(x: torch.Tensor) -> torch.Tensor:
    """Every row is the average over the sequence."""
    return (wide(x).sum(2, keepdim=True) / x.shape[2]).to(x.dtype).expand_as(x)


def causal_mean(x: torch.Tensor) -> torch.Tensor:
    """Row n is the average of rows 0 … n."""
    n = x.shape[2]
    matrix = torch.tril(torch.ones(n, n, dtype=wide(x).dtype)) / torch.arange(1, n + 1)[:, None]
    return (matrix @ wide(x)).to(x.dtype)


def toeplitz_matrix(taps: torch.Tensor, n: int, *, centred: bool = False, dilation: int = 1) -> torch.Tensor:
    """A [C, N, N] from taps [K, C]: A[n, m] = taps[j] where n - m = dilation·(j - c)."""
    size = taps.shape[0]
    centre = (size - 1) // 2 if centred else 0
    distance = torch.arange(n)[:, None] - torch.arange(n)[None, :]
    j = torch.div(distance, dilation, rounding_mode="floor") + centre
    there = (distance % dilation == 0) & (j >= 0) & (j < size)
    return torch.where(there, taps.mT[:, j.clamp(0, size - 1)], 0.0)


def toeplitz(x: torch.Tensor, taps: torch.Tensor, *, centred: bool = False, dilation: int = 1) -> torch.Tensor:
    """Taps [K, H·C] along the sequence, channel h·C + c, zero outside."""
    matrix = toeplitz_matrix(wide(taps), x.shape[2], centred=centred, dilation=dilation)
    return _per_channel(matrix, x)


def toeplitz_grid(x: torch.Tensor, taps: torch.Tensor, grid: Sequence[int]) -> torch.Tensor:
    """Centred taps [K·K, H·C], tap i·K + j, over a grid of tokens numbered row by row; zero outside the grid."""
    size = round(taps.shape[0] ** 0.5)
    centre = (size - 1) // 2
    token = torch.arange(grid[0] * grid[1])
    row, column = torch.div(token, grid[1], rounding_mode="floor"), token.remainder(grid[1])
    d_row, d_column = row[:, None] - row[None, :], column[:, None] - column[None, :]
    matrix = torch.zeros(taps.shape[1], len(token), len(token), dtype=wide(taps).dtype)
    for i in range(size):
        for j in range(size):
            here = (d_row == i - centre) & (d_column == j - centre)
            matrix = matrix + wide(taps)[i * size + j][:, None, None] * here
    return _per_channel(matrix, x)


def _per_channel(matrix: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    """Matrices [H·C, N, N] applied to [B, H, N, C], summed wide and rounded once, as a convolution is."""
    heads, channels = x.shape[1], x.shape[3]
    each = matrix.view(heads, channels, *matrix.shape[1:])
    return torch.einsum("hcnm,bhmc->bhnc", each, wide(x)).to(x.dtype)


def rope(x: torch.Tensor, position: torch.Tensor | None = None, *, base: float = 10000.0) -> torch.Tensor:
    """Pairs (2i, 2i+1) of [B, H, N, D] turned by position·base^(-2i/D); position [N], by default n."""
    pairs = x.shape[-1] // 2
    position = torch.arange(x.shape[2]) if position is None else position
    speed = base ** (-torch.arange(pairs, dtype=torch.float64) / pairs)
    return _turn(x, position[:, None], speed)


def rope_axial(x: torch.Tensor, row: torch.Tensor, column: torch.Tensor, *, base: float = 10000.0) -> torch.Tensor:
    """Pairs 0 … D/4-1 turned by the row, the rest by the column, pair j of each half by base^(-j/(D/4))."""
    quarter = x.shape[-1] // 4
    speed = base ** (-torch.arange(quarter, dtype=torch.float64) / quarter)
    position = torch.stack([row, column], -1).repeat_interleave(quarter, 1)
    return _turn(x, position, speed.repeat(2))


def _turn(x: torch.Tensor, position: torch.Tensor, speed: torch.Tensor) -> torch.Tensor:
    """Pair i of row n turned by position[n, i]·speed[i], in wide precision, rounded once."""
    angle = position.to(wide(x).dtype) * speed.to(wide(x).dtype)
    cosine, sine = torch.cos(angle), torch.sin(angle)
    even, odd = wide(x)[..., 0::2], wide(x)[..., 1::2]
    turned = torch.stack([even * cosine - odd * sine, even * sine + odd * cosine], -1)
    return turned.flatten(-2).to(x.dtype)


def rms_norm(x: torch.Tensor, gain: torch.Tensor | None = None, eps: float = 1e-6) -> torch.Tensor:
    """x·gain / sqrt(mean(x²) + eps) over the last axis; gain [H, D]."""
    normed = wide(x) / torch.sqrt(wide(x).square().mean(-1, keepdim=True) + eps)
    if gain is not None:
        normed = normed * wide(gain)[:, None, :]
    return normed.to(x.dtype)
