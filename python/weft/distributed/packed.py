# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Packed sequences as patterns of the whole: a pair belongs where it is of one sequence, and the pattern has it by the
positions in that sequence."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from ..patterns import Pattern, document
from ..patterns.families import from_starts
from ..patterns.host import to_numpy


def packed_pattern(pattern: Pattern | None, cu_seqlens: Any) -> Pattern:
    """The pattern of each of the packed sequences as one of the whole."""
    starts = to_numpy(cu_seqlens).astype(np.int64)
    lengths = np.diff(starts)
    ids = np.repeat(np.arange(len(lengths), dtype=np.int32), lengths)
    of_one = document(ids, ids)
    if pattern is None:
        return of_one
    return of_one & from_starts(pattern, _first(cu_seqlens))


def packed_score(score_mod: Callable[..., Any] | None, cu_seqlens: Any) -> Callable[..., Any] | None:
    """A score_mod of positions in a sequence as one of the whole's."""
    if score_mod is None:
        return None
    first = _first(cu_seqlens)

    def moved(score: Any, b: Any, h: Any, n: Any, m: Any) -> Any:
        start = first[n]
        return score_mod(score, b, h, n - start, m - start)

    return moved


def _first(cu_seqlens: Any) -> Any:
    """Where the sequence of each token begins, [N] int32."""
    return torch.repeat_interleave(cu_seqlens[:-1], torch.diff(cu_seqlens))
