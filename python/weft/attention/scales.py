# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""What the numbers of a cache stand for: caches of few bits come with scales, one for each key head or one for each
page and key head."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from weft.compiler import places
from weft.language.types import dtype
from weft.programs.graph import agreeing
from weft.programs.merging import index
from weft.programs.regions import callable_with, called
from weft.programs.sizes import Size, unify
from weft.programs.tensors import Tensor, described, map_tensors

ScoreMod = Callable[..., Any]


def scale_of(name: str, scale: Any, cache: Tensor, heads: Size, paged: bool) -> bool:
    """Check a scale, or None; whether there is one for each page."""
    if scale is None:
        return False
    shapes = "[Hkv] or [P, Hkv]" if paged else "[Hkv]"
    fits = isinstance(scale, Tensor) and scale.ndim in ((1, 2) if paged else (1,)) and scale.dtype.name == "fp32"
    if not fits:
        raise places.error(f"expected '{name}' {shapes} of float32, but got {described(scale)}")
    with agreeing(f"expected '{name}' {shapes}, for each key head"):
        unify(heads, scale.sizes[-1])
    if scale.ndim == 2:
        with agreeing(f"expected '{name}' {shapes}, for each page"):
            unify(cache.sizes[0], scale.sizes[0])
    return bool(scale.ndim == 2)


def by_page(rows: Tensor, scale: Tensor, table: Tensor, page: int, element: dtype) -> Tensor:
    """Rows [B, Hkv, M, D] of pages times the scale of each row's page, rounded once to ``element``."""

    def body(x: Any) -> Any:
        return x * scale[table[index(0), index(2) // page], index(1)]

    scaled: Tensor = map_tensors(body, rows, to=element)
    return scaled


def of_scores(scales: Sequence[Tensor], group: int, score_mod: ScoreMod | None, scale: float = 1.0) -> ScoreMod:
    """A score_mod that multiplies by ``scale`` and by scales of a query head's key head first, [Hkv] or [B, Hkv]: by
    one number for all scores of a head."""
    if score_mod is not None:
        callable_with("score_mod", score_mod, ("score", "b", "h", "n", "m"))

    def scaled(score: Any, b: Any, h: Any, n: Any, m: Any) -> Any:
        head = h // group
        score = score * math.prod((each[head] if each.ndim == 1 else each[b, head] for each in scales), start=scale)
        return score if score_mod is None else called(score_mod, score, b, h, n, m)

    return scaled


def of_outputs(out: Tensor, scale: Tensor, group: int, element: dtype) -> Tensor:
    """Outputs [B, H, N, Dv] times the scale, [Hkv] or [B, Hkv], of each head's key head, rounded to ``element``."""

    def body(x: Any) -> Any:
        head = index(1) // group
        return x * (scale[head] if scale.ndim == 1 else scale[index(0), head])

    scaled: Tensor = map_tensors(body, out, to=element)
    return scaled
