# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Packed sequences as patterns of the whole: a pair belongs where it is of one sequence, and the pattern has it by the
positions in that sequence."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from ..patterns import Pattern, document, mask
from ..patterns.host import to_numpy


def packed_pattern(pattern: Pattern | None, cu_seqlens: Any) -> Pattern:
    """The pattern of each of the packed sequences as one of the whole."""
    starts = to_numpy(cu_seqlens).astype(np.int64)
    lengths = np.diff(starts)
    ids = np.repeat(np.arange(len(lengths), dtype=np.int32), lengths)
    of_one = document(ids, ids)
    if pattern is None:
        return of_one
    return of_one & _moved(pattern, _first(cu_seqlens))


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


def _moved(pattern: Pattern, first: Any) -> Pattern:
    """The pattern of which n and m are less by where their sequence, the same one, begins: ``first`` [N]."""
    name, values = pattern.spelling, pattern.values
    if name in ("full", "causal", "window", "strided", "dilated"):
        return pattern  # by the distance alone
    if name in ("and", "or", "not", "per_head", "transpose"):
        return Pattern(name, values, [_moved(part, first) for part in pattern.parts])
    if name == "prefix":
        return mask(lambda b, h, n, m: m - first[m] < values[0])
    if name == "global_tokens":
        return mask(lambda b, h, n, m: (n - first[n] < values[0]) | (m - first[m] < values[0]))
    if name == "block_window" and not values[1]:
        (w,) = values[0]
        return mask(lambda b, h, n, m: (n - first[n]) // w == (m - first[m]) // w)
    if name == "mask":
        return mask(lambda b, h, n, m: values[0](b, h, n - first[n], m - first[m]))
    if name == "shift" and pattern.parts[0].spelling in ("full", "causal", "window", "strided", "dilated"):
        return pattern
    raise ValueError(f"expected a pattern of positions in packed sequences, but got {pattern!r}")
