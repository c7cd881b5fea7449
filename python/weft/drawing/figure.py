# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Panels as a PNG with all that the SVG says around them, laid out alike: by matplotlib, which the extra ``draw``
installs."""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from typing import Any

import numpy as np

from .panels import Panel
from .png import FRAME, GAP, extent
from .svg import ENTRY, FAINT, INK, TITLE, UNDER, layout, ticks

_DPI = 100
_POINT = 72 / _DPI  # of a pixel


def available() -> bool:
    """Whether matplotlib is there."""
    return importlib.util.find_spec("matplotlib") is not None


def figure(panels: Sequence[Panel], title: str) -> Any:
    """The whole picture, as a figure of matplotlib's."""
    from matplotlib.figure import Figure

    lefts, width, height = layout(panels, title)
    made = Figure(figsize=(width / _DPI, height / _DPI), dpi=_DPI, facecolor="white")
    _say(made, GAP // 2, 24, title, size=16, weight="bold")
    for panel, left in zip(panels, lefts, strict=True):
        _picture(made, panel, left)
        _words(made, panel, left)
    return made


def pixels(panels: Sequence[Panel], title: str) -> Any:
    """The picture as bytes [height, width, 3]."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    canvas = FigureCanvasAgg(figure(panels, title))
    canvas.draw()
    return np.asarray(canvas.buffer_rgba())[..., :3]


def _axes(made: Any, left: float, top: float, width: float, height: float) -> Any:
    """Axes at a place in pixels, from the upper left."""
    sheet = made.get_size_inches() * _DPI
    place = (left / sheet[0], 1 - (top + height) / sheet[1], width / sheet[0], height / sheet[1])
    axes = made.add_axes(place)
    for spine in axes.spines.values():
        spine.set_color([c / 255 for c in FRAME])
    return axes


def _say(made: Any, x: float, y: float, said: str, size: float = 13, **how: Any) -> None:
    """Text whose line stands at y, in pixels from the upper left."""
    sheet = made.get_size_inches() * _DPI
    made.text(x / sheet[0], 1 - y / sheet[1], said, fontsize=size * _POINT, color=INK, parse_math=False, **how)


def _picture(made: Any, panel: Panel, left: float) -> None:
    """The cells, and the axes with their numbers."""
    height, width = extent(panel)
    down, across = (max(side, 1) for side in panel.sides)
    axes = _axes(made, left, TITLE, width, height)
    if panel.colours.size:
        axes.imshow(panel.colours, extent=(0, across, down, 0), aspect="auto", interpolation="nearest")
    axes.set(xlim=(0, across), ylim=(down, 0), xticks=list(ticks(across)), yticks=list(ticks(down)))
    axes.tick_params(labelsize=11 * _POINT, colors=FAINT, length=4 * _POINT)
    axes.set_xlabel(panel.names[1], fontsize=11 * _POINT, color=FAINT, labelpad=2)
    axes.set_ylabel(panel.names[0], fontsize=11 * _POINT, color=FAINT, labelpad=2)


def _words(made: Any, panel: Panel, left: float) -> None:
    """The caption, and what colours stand for."""
    y = TITLE + extent(panel)[0] + UNDER + 12
    _say(made, left, y, panel.caption)
    for number, (colour, name) in enumerate(panel.legend):
        x = left + ENTRY * number
        _swatch(made, x, y + 9, 12, np.array([[colour]], np.uint8))
        _say(made, x + 18, y + 20, name)
    if panel.scale:
        low, stops = f"{panel.scale.low:.3g}", np.array([panel.scale.stops], float) / 255
        x = left + 8 * len(low) + 6
        _say(made, left, y + 20, low)
        _swatch(made, x, y + 9, 160, stops, interpolation="bilinear")
        _say(made, x + 166, y + 20, f"{panel.scale.high:.3g}")


def _swatch(made: Any, x: float, y: float, width: float, colours: Any, interpolation: str = "nearest") -> None:
    axes = _axes(made, x, y, width, 12)
    axes.imshow(colours, aspect="auto", interpolation=interpolation)
    axes.set(xticks=[], yticks=[])
