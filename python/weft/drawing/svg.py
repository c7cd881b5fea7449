# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Panels as SVG: a title, axes with numbers, captions and legends around cells."""

from __future__ import annotations

import base64
from collections.abc import Iterator, Sequence
from typing import Any
from xml.sax.saxutils import escape

import numpy as np

from .panels import Colour, Panel, Scale
from .png import FRAME, GAP, extent, png

INK, FAINT = "#282828", "#6b7280"
TITLE, _LEFT, UNDER, _LINE = 40, 52, 40, 22  # pixels: above, left of and under panels, and a line of text
_MOST_RUNS = 20_000  # rectangles; beyond, a panel is an image
ENTRY = 118  # pixels of an entry of a legend


def svg(panels: Sequence[Panel], title: str) -> str:
    """The whole file: panels side by side."""
    lefts, x, height = layout(panels, title)
    lines = []
    for panel, left in zip(panels, lefts, strict=True):
        lines += [*_cells(panel, left), *_axes(panel, left), *_words(panel, left)]
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{x}" height="{height}" viewBox="0 0 {x} {height}">',
            f"<title>{escape(title)}</title>",
            f'<rect width="{x}" height="{height}" fill="#ffffff"/>',
            f'<g font-family="sans-serif" font-size="13" fill="{INK}">',
            f'<text x="{GAP // 2}" y="24" font-size="16" font-weight="bold">{escape(title)}</text>',
            *lines,
            "</g>",
            "</svg>",
            "",
        ]
    )


def layout(panels: Sequence[Panel], title: str) -> tuple[list[int], int, int]:
    """Where the panels' left sides are, and the width and height of all, in pixels."""
    x, lefts = GAP // 2, []
    for panel in panels:
        lefts.append(x + _LEFT)
        x = lefts[-1] + max(extent(panel)[1], ENTRY * len(panel.legend), 7 * len(panel.caption)) + GAP
    height = TITLE + max(extent(panel)[0] for panel in panels) + UNDER + 2 * _LINE + 12
    return lefts, max(x, 9 * len(title) + 2 * GAP), height


def ticks(count: int, most: int = 5) -> range:
    """Round numbers from 0 up to ``count``, about ``most`` of them: steps of 1, 2 or 5 times a power of ten, or, where
    the count is a power of two, of two."""
    if count & (count - 1) == 0:
        return range(0, count + 1, max(count // 4, 1))
    step = next(s for p in range(20) for s in (10**p, 2 * 10**p, 5 * 10**p) if s * most >= count)
    return range(0, count + 1, step)


def _colour(rgb: Any) -> str:
    return "#" + "".join(f"{int(c):02x}" for c in rgb)


def _runs(colours: Any) -> Iterator[tuple[int, int, int, str]]:
    """Cells of one colour along rows: row, first column, how many, colour."""
    for y, row in enumerate(colours):
        starts: Any = np.flatnonzero(np.r_[True, (row[1:] != row[:-1]).any(-1)]) if len(row) else []
        for start, end in zip(starts, [*starts[1:], len(row)], strict=True):
            yield y, int(start), int(end - start), _colour(row[start])


def _cells(panel: Panel, x: int) -> list[str]:
    """The picture itself, in its frame."""
    height, width = extent(panel)
    rows, columns = panel.colours.shape[:2]
    runs = list(_runs(panel.colours))
    lines = []
    if len(runs) <= _MOST_RUNS:
        place = f"translate({x} {TITLE}) scale({width / max(columns, 1):.6g} {height / max(rows, 1):.6g})"
        lines.append(f'<g transform="{place}" shape-rendering="crispEdges">')
        lines += [f'<rect x="{c}" y="{r}" width="{w}" height="1" fill="{colour}"/>' for r, c, w, colour in runs]
        lines.append("</g>")
    else:
        data = base64.b64encode(png(panel.colours)).decode()
        lines.append(
            f'<image x="{x}" y="{TITLE}" width="{width}" height="{height}" preserveAspectRatio="none" '
            f'style="image-rendering:pixelated" href="data:image/png;base64,{data}"/>'
        )
    frame = _colour(FRAME)
    return [*lines, f'<rect x="{x}" y="{TITLE}" width="{width}" height="{height}" fill="none" stroke="{frame}"/>']


def _axes(panel: Panel, x: int) -> Iterator[str]:
    """Numbers along the left and under the panel, with marks, and what they count."""
    height, width = extent(panel)
    down, across = panel.sides
    bottom = TITLE + height
    for number in ticks(down):
        y = TITLE + height * number / max(down, 1)
        yield f'<path d="M{x - 4} {y:.4g}h4" stroke="{FAINT}"/>'
        yield _text(x - 7, y + 4, str(number), "end")
    for number in ticks(across):
        at = x + width * number / max(across, 1)
        yield f'<path d="M{at:.6g} {bottom}v4" stroke="{FAINT}"/>'
        yield _text(at, bottom + 16, str(number), "middle")
    middle = TITLE + height / 2
    yield _text(x + width / 2, bottom + 32, panel.names[1], "middle")
    turned = f' transform="rotate(-90 {x - 40} {middle:.6g})"'
    yield _text(x - 40, middle, panel.names[0], "middle", turned)


def _text(x: float, y: float, said: str, anchor: str, more: str = "") -> str:
    faint = f'font-size="11" fill="{FAINT}" text-anchor="{anchor}"'
    return f'<text x="{x:.6g}" y="{y:.6g}" {faint}{more}>{escape(said)}</text>'


def _words(panel: Panel, x: int) -> list[str]:
    """The caption, and what colours stand for."""
    y = TITLE + extent(panel)[0] + UNDER + 12
    lines = [f'<text x="{x}" y="{y}">{escape(panel.caption)}</text>']
    for i, (colour, name) in enumerate(panel.legend):
        left = x + ENTRY * i
        lines.append(_swatch(left, y + 9, 12, colour))
        lines.append(f'<text x="{left + 18}" y="{y + 20}">{escape(name)}</text>')
    if panel.scale:
        lines += _bar(panel.scale, x, y + 9)
    return lines


def _swatch(x: float, y: float, width: float, colour: Colour) -> str:
    shape = f'x="{x:.6g}" y="{y}" width="{width:.6g}" height="12"'
    return f'<rect {shape} fill="{_colour(colour)}" stroke="{_colour(FRAME)}"/>'


def _bar(scale: Scale, x: int, y: int) -> list[str]:
    """A bar of the scale's colours between its numbers."""
    width, name = 160, f"scale{x}"
    share = 100 / (len(scale.stops) - 1)
    stops = "".join(f'<stop offset="{i * share:g}%" stop-color="{_colour(c)}"/>' for i, c in enumerate(scale.stops))
    low = f"{scale.low:.3g}"
    left = x + 8 * len(low) + 6
    return [
        f'<defs><linearGradient id="{name}">{stops}</linearGradient></defs>',
        f'<text x="{x}" y="{y + 11}">{low}</text>',
        f'<rect x="{left}" y="{y}" width="{width}" height="12" fill="url(#{name})" stroke="{_colour(FRAME)}"/>',
        f'<text x="{left + width + 6}" y="{y + 11}">{scale.high:.3g}</text>',
    ]
