# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Plans as pictures: which runs meet, and what ranks do at each step."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import numpy as np

from ..drawing import picture_path, write
from ..drawing.panels import EMPTY, FULL, PARTIAL, SEQUENTIAL, Panel, Scale, ramp

if TYPE_CHECKING:
    from .planning import Plan

_MOST = 512  # cells a side; beyond, each is the largest of several


def draw(plan: Plan, path: str | os.PathLike[str], title: str | None = None) -> None:
    """Write the picture of a plan, .svg or .png."""
    target = picture_path(path)
    panels = [_meeting(plan), _heat(plan, plan.computing, "computing"), _heat(plan, plan.sending, "sending")]
    said = f"{plan.length} tokens on {plan.ranks} ranks, {plan.rotate}: {plan.total * 1e3:.3g} ms"
    write(panels, title or said, target)


def _meeting(plan: Plan) -> Panel:
    palette = np.array([EMPTY, PARTIAL, FULL], np.uint8)
    counts = [int((plan.classes == kind).sum()) for kind in range(3)]
    names = [f"{count} {name}" for count, name in zip(counts, ("empty", "partial", "full"), strict=True)]
    legend = tuple(zip((EMPTY, PARTIAL, FULL), names, strict=True))
    return Panel(palette[_few(plan.classes)], plan.classes.shape, ("queries", "keys"), "runs that meet", legend)


def _heat(plan: Plan, seconds: object, what: str) -> Panel:
    values = _few(np.asarray(seconds, np.float64).T * 1e3)
    high = float(values.max())
    share = values / high if high > 0 else values
    said = f"ms {what}, a rank a row, a step a column"
    return Panel(
        ramp(share, SEQUENTIAL),
        (plan.ranks, plan.steps + 1),
        ("rank", "step"),
        said,
        scale=Scale(SEQUENTIAL, 0.0, high),
    )


def _few(values: np.ndarray) -> np.ndarray:
    """At most so many cells a side, each the largest of those that it stands for."""
    for axis in (0, 1):
        size = values.shape[axis]
        if size > _MOST:
            starts = np.linspace(0, size, _MOST, endpoint=False).astype(int)
            values = np.maximum.reduceat(values, starts, axis=axis)
    return values
