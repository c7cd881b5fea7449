# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Patterns as dense masks, pair by pair from their definitions: bool [N, M], or [B, H, N, M] where they differ.

With N queries and M keys, query n sits at position p = n + (M - N). Masks combine by & | ~. Slow and plain on
purpose: nothing here is shared with what the compiler does with a pattern.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch


def _places(n: int, m: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Positions p [N, 1] and m [1, M]."""
    return torch.arange(n)[:, None] + (m - n), torch.arange(m)[None, :]


def full(n: int, m: int) -> torch.Tensor:
    """Every pair."""
    return torch.ones(n, m, dtype=torch.bool)


def causal(n: int, m: int) -> torch.Tensor:
    """m ≤ p."""
    p, keys = _places(n, m)
    return keys <= p


def window(n: int, m: int, left: int | None, right: int | None) -> torch.Tensor:
    """p - left ≤ m ≤ p + right; None is open."""
    p, keys = _places(n, m)
    inside = full(n, m)
    if left is not None:
        inside &= keys >= p - left
    if right is not None:
        inside &= keys <= p + right
    return inside


def block_window(n: int, m: int, size: int | Sequence[int], grid: Sequence[int] | None = None) -> torch.Tensor:
    """p and m in one window of a partition of the sequence, or of a grid of tokens numbered row by row."""
    p, keys = _places(n, m)
    if grid is None:
        (length,) = (size,) if isinstance(size, int) else size
        return torch.div(p, length, rounding_mode="floor") == torch.div(keys, length, rounding_mode="floor")
    assert not isinstance(size, int)
    columns = grid[1]

    def window_of(token: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        row, column = torch.div(token, columns, rounding_mode="floor"), token.remainder(columns)
        return torch.div(row, size[0], rounding_mode="floor"), torch.div(column, size[1], rounding_mode="floor")

    (p_row, p_column), (m_row, m_column) = window_of(p), window_of(keys)
    return (p_row == m_row) & (p_column == m_column)


def strided(n: int, m: int, step: int) -> torch.Tensor:
    """step divides p - m."""
    p, keys = _places(n, m)
    return (p - keys).remainder(step) == 0


def dilated(n: int, m: int, step: int, width: int) -> torch.Tensor:
    """step divides p - m, and |p - m| ≤ step·width."""
    p, keys = _places(n, m)
    return strided(n, m, step) & ((p - keys).abs() <= step * width)


def prefix(n: int, m: int, size: int) -> torch.Tensor:
    """m < size."""
    return (torch.arange(m)[None, :] < size).expand(n, m).clone()


def global_tokens(n: int, m: int, size: int) -> torch.Tensor:
    """p < size or m < size."""
    p, keys = _places(n, m)
    return (p < size) | (keys < size)


def document(q_ids: torch.Tensor, k_ids: torch.Tensor) -> torch.Tensor:
    """Equal ids; ids are [N] and [M], or [B, N] and [B, M], which gives [B, 1, N, M]."""
    same = q_ids[..., :, None] == k_ids[..., None, :]
    return same[:, None] if same.dim() == 3 else same


def neighbourhood(
    n: int, m: int, shape: Sequence[int], kernel: Sequence[int], dilation: Sequence[int] | None = None
) -> torch.Tensor:
    """Exactly ``kernel`` keys an axis around the query, moved inwards at borders, on the query's own residue under
    ``dilation``; tokens of ``shape`` are numbered row by row."""
    p, _ = _places(n, m)
    near = full(n, m)
    # Row-major strides of the grid, then one axis after the other.
    stride = 1
    for axis in reversed(range(len(shape))):
        length, size = shape[axis], kernel[axis]
        step = 1 if dilation is None else dilation[axis]
        table = torch.zeros(length, length, dtype=torch.bool)
        for i in range(length):
            residue = i % step
            line = range(residue, length, step)
            start = min(max(i // step - size // 2, 0), len(line) - size)
            for j in range(start, start + size):
                table[i, line[j]] = True
        q_at = torch.div(p[:, 0], stride, rounding_mode="floor").remainder(length)
        k_at = torch.div(torch.arange(m), stride, rounding_mode="floor").remainder(length)
        near &= table[q_at][:, k_at]
        stride *= length
    return near


def blocks(n: int, m: int, index: torch.Tensor, count: torch.Tensor, block: Sequence[int]) -> torch.Tensor:
    """Key blocks index[b, h, r, :count[b, h, r]] of row block r; entries past the count mean nothing."""
    batch, heads, rows, _ = index.shape
    bits = torch.zeros(batch, heads, rows, -(-m // block[1]), dtype=torch.bool)
    for b in range(batch):
        for h in range(heads):
            for r in range(rows):
                bits[b, h, r, index[b, h, r, : int(count[b, h, r])].long()] = True
    return block_bitmap(n, m, bits, block)


def block_bitmap(n: int, m: int, bits: torch.Tensor, block: Sequence[int]) -> torch.Tensor:
    """Pairs whose block (n // block[0], m // block[1]) is set in bits [B, H, R, C]."""
    rows = torch.div(torch.arange(n), block[0], rounding_mode="floor")
    columns = torch.div(torch.arange(m), block[1], rounding_mode="floor")
    return bits.bool()[:, :, rows][:, :, :, columns]


def mask(n: int, m: int, f: Callable[..., torch.Tensor], batch: int = 1, heads: int = 1) -> torch.Tensor:
    """What ``f(b, h, n, m)`` says of raw indices, [B, H, N, M]."""
    b, h = torch.arange(batch)[:, None, None, None], torch.arange(heads)[:, None, None]
    said = f(b, h, torch.arange(n)[:, None], torch.arange(m))
    return torch.as_tensor(said).expand(batch, heads, n, m).clone()


def per_head(dense: Sequence[torch.Tensor]) -> torch.Tensor:
    """Head h has mask h: [1, H, N, M] from masks [N, M]."""
    return torch.stack(list(dense))[None]


def packed(cu_q: torch.Tensor, cu_k: torch.Tensor, of: Callable[[int, int], torch.Tensor]) -> torch.Tensor:
    """Sequences packed after one another: rows cu_q[s] … cu_q[s+1]-1 have ``of(length, length)`` with keys of the
    same s."""
    dense = torch.zeros(int(cu_q[-1]), int(cu_k[-1]), dtype=torch.bool)
    for s in range(len(cu_q) - 1):
        rows, keys = slice(int(cu_q[s]), int(cu_q[s + 1])), slice(int(cu_k[s]), int(cu_k[s + 1]))
        dense[rows, keys] = of(rows.stop - rows.start, keys.stop - keys.start)
    return dense
