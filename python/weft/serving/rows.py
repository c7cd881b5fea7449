# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Sequences' tokens packed one after another, as batches of rows that end together: no number comes to the host."""

from __future__ import annotations

from typing import Any

import torch


def padded(packed: Any, starts: Any, longest: int) -> Any:
    """[B, H, longest, D] of tokens [T, H, D]: each sequence's last row is the last one, those before its first are
    another's. ``starts`` [B+1] are where sequences start."""
    rows = starts[1:, None] - longest + torch.arange(longest, device=starts.device, dtype=starts.dtype)
    return packed[rows.clamp(0, max(packed.shape[0] - 1, 0)).long()].transpose(1, 2)


def packed(rows: Any, starts: Any, tokens: int) -> Any:
    """Tokens [T, H, D] of [B, H, longest, D], as ``padded`` has them."""
    token = torch.arange(tokens, device=starts.device, dtype=starts.dtype)
    sequence = (torch.searchsorted(starts, token, right=True) - 1).clamp(0, rows.shape[0] - 1)
    row = (rows.shape[2] - (starts[sequence + 1] - token)).clamp(0, rows.shape[2] - 1)
    return rows[sequence, :, row.long()]
