# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""What a picture shows: cells in colours, and the words and numbers around them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..compiler import places
from ..patterns import Pattern
from ..patterns.checks import sizes_of
from ..patterns.host import Spelled, to_numpy

EMPTY, PARTIAL, FULL = (240, 240, 240), (146, 186, 222), (8, 81, 156)
MOST_PAIRS = 1 << 22  # a matrix beyond is not drawn, its blocks are

# From dark to light, and from the negative through white to the positive.
SEQUENTIAL = ((68, 1, 84), (62, 74, 137), (38, 130, 142), (53, 183, 121), (253, 231, 37))
DIVERGING = ((33, 102, 172), (146, 197, 222), (255, 255, 255), (244, 165, 130), (178, 24, 43))

Colour = tuple[int, int, int]


@dataclass(frozen=True)
class Scale:
    """A bar of colours from one number to another."""

    stops: tuple[Colour, ...]
    low: float
    high: float


@dataclass(frozen=True)
class Panel:
    """Colours [rows, columns, 3] of the cells of a picture, what its sides count, and what is said around it."""

    colours: Any
    sides: tuple[int, int]
    """tokens, or rows and columns, down and across"""
    names: tuple[str, str]
    """of the axes, down and across"""
    caption: str
    legend: tuple[tuple[Colour, str], ...] = ()
    scale: Scale | None = None


def _chosen(array: Any, batch: int, head: int) -> Any:
    """One matrix of [..., N, M]: of a batch and a head, the first of what further axes there are."""
    while array.ndim > 2:
        index = batch if array.ndim == 4 else head if array.ndim == 3 else 0
        if not -array.shape[0] <= index < array.shape[0]:
            raise places.error(f"expected a batch and a head that are there, but got {index} of {array.shape[0]}")
        array = array[index]
    if array.ndim != 2:
        raise places.error(f"expected a matrix, but got {array.ndim} axes")
    return array


def pattern_panels(pattern: Pattern | Spelled, n: int, m: int, block: Any, batch: int, head: int) -> list[Panel]:
    """A pattern's matrix, where it is not too large, and its blocks."""
    if block is None:
        rows, columns = max(n // 8, 1), max(m // 8, 1)
    else:
        given = sizes_of("draw", "block", block, (2,))
        rows, columns = given if len(given) == 2 else given * 2
    extents = {"batch": max(batch + 1, 1), "heads": max(head + 1, 1)}
    classes = _chosen(pattern.blocks_summary(n, m, rows, columns, **extents), batch, head)
    palette = np.array([EMPTY, PARTIAL, FULL], np.uint8)
    counts = [int((classes == kind).sum()) for kind in range(3)]
    names = [f"{count} {name}" for count, name in zip(counts, ("empty", "partial", "full"), strict=True)]
    legend = tuple(zip((EMPTY, PARTIAL, FULL), names, strict=True))
    names_of_axes = ("query", "key")
    panels = [Panel(palette[classes], (n, m), names_of_axes, f"blocks of {rows} × {columns}", legend)]
    if n * m <= MOST_PAIRS:
        pairs = _chosen(pattern.matrix(n, m, **extents), batch, head)
        share = pairs.mean() if pairs.size else 0.0
        said = f"{n} queries × {m} keys, {share:.1%} of pairs attend"
        legend = ((EMPTY, "no"), (FULL, "attends"))
        panels.insert(0, Panel(palette[2 * pairs.astype(np.uint8)], (n, m), names_of_axes, said, legend))
    return panels


def heat_panel(x: Any, n: int | None, batch: int, head: int) -> Panel:
    """A matrix, or a mixer's."""
    found = x if hasattr(x, "shape") else x.matrix(n) if hasattr(x, "matrix") else None
    if found is None:
        raise places.error(
            f"expected a pattern, a mixer or a matrix to draw, but got '{type(x).__name__}'",
            "a mixer of a program's symbols has no numbers: build it from arrays",
        )
    array = to_numpy(found[0] if isinstance(found, tuple) else found)
    if array.dtype.kind not in "biuf":
        raise places.error(f"expected a matrix of real numbers to draw, but got one of {array.dtype}")
    values = _chosen(array, batch, head).astype(np.float64)
    finite = values[np.isfinite(values)]
    low, high = (float(finite.min()), float(finite.max())) if finite.size else (0.0, 0.0)
    if low < 0:
        high = max(high, -low)
        low = -high
    share = np.nan_to_num((values - low) / (high - low if high > low else 1.0), nan=0.0, posinf=1.0, neginf=0.0)
    stops = DIVERGING if low < 0 else SEQUENTIAL
    said = f"{values.shape[0]} × {values.shape[1]}, from {low:.3g} to {high:.3g}"
    scale = Scale(stops, low, high)
    return Panel(ramp(np.clip(share, 0, 1), stops), values.shape, ("row", "column"), said, scale=scale)


def ramp(share: Any, stops: tuple[Colour, ...]) -> Any:
    """Colours of shares from 0 to 1."""
    at = np.linspace(0, 1, len(stops))
    channels = [np.interp(share, at, [stop[i] for stop in stops]) for i in range(3)]
    return np.stack(channels, -1).round().astype(np.uint8)
