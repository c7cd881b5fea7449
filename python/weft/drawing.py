# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""weft.draw: patterns and matrices as pictures, SVG or PNG by the path's suffix.

A pattern becomes two panels: its matrix, and its blocks coloured empty, partial and full. A mixer or a matrix becomes a
heat map. Files are written here, without a plotting library: SVG as rectangles, PNG as pixels.
"""

from __future__ import annotations

import base64
import os
import pathlib
import struct
import zlib
from dataclasses import dataclass
from typing import Any

import numpy as np

from .compiler import places
from .patterns import Pattern
from .patterns.checks import sizes_of
from .patterns.host import to_numpy
from .programs import static

EMPTY, PARTIAL, FULL = (240, 240, 240), (146, 186, 222), (8, 81, 156)
_FRAME, _INK = (120, 120, 120), (40, 40, 40)
_PANEL, _GAP, _CAPTION = 384, 24, 22  # pixels
_MOST_PAIRS = 1 << 22  # a matrix beyond is not drawn, its blocks are
_MOST_RUNS = 20_000  # rectangles in an SVG; beyond, its panel is an image

# From dark to light, and from the negative through white to the positive.
_SEQUENTIAL = ((68, 1, 84), (62, 74, 137), (38, 130, 142), (53, 183, 121), (253, 231, 37))
_DIVERGING = ((33, 102, 172), (146, 197, 222), (255, 255, 255), (244, 165, 130), (178, 24, 43))


@dataclass(frozen=True)
class _Panel:
    """Colours [rows, columns, 3] of the cells of a picture, its proportions, and what is said below it."""

    colours: Any
    sides: tuple[int, int]  # height : width
    caption: str
    legend: tuple[tuple[tuple[int, int, int], str], ...] = ()


def draw(
    x: Any,
    path: str | os.PathLike[str],
    n: int | None = None,
    m: int | None = None,
    *,
    block: int | tuple[int, int] | None = None,
    batch: int = 0,
    head: int = 0,
) -> None:
    """Draw a pattern of ``n`` queries and ``m`` keys (64, and as many), a mixer of length ``n``, or a matrix.

    ``block`` is the size of the blocks of the second panel, (queries, keys); by default an eighth of the lengths.
    ``batch`` and ``head`` choose among the matrices where these differ.
    """
    for name, number in (("n", n), ("m", m)):
        if number is not None:
            static.integer(name, number, 1)
    static.integer("batch", batch)
    static.integer("head", head)
    if not isinstance(path, (str, os.PathLike)):
        raise TypeError(f"expected 'path' to be the name of a file, but got {places.described(path)}")
    target = pathlib.Path(path)
    if target.suffix.lower() not in (".svg", ".png"):
        raise places.error(f"expected a path that ends in .svg or .png, but got '{target.name}'")
    panels = (
        _pattern_panels(x, n or 64, m or n or 64, block, batch, head)
        if isinstance(x, Pattern)
        else [_heat(x, n, batch, head)]
    )
    target.write_bytes(_svg(panels).encode() if target.suffix.lower() == ".svg" else _png(_composed(panels)))


# ---- Panels ---------------------------------------------------------------------------------------------------------


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


def _pattern_panels(pattern: Pattern, n: int, m: int, block: Any, batch: int, head: int) -> list[_Panel]:
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
    panels = [_Panel(palette[classes], (n, m), f"blocks of {rows} × {columns}", legend)]
    if n * m <= _MOST_PAIRS:
        pairs = _chosen(pattern.matrix(n, m, **extents), batch, head)
        share = pairs.mean() if pairs.size else 0.0
        panels.insert(0, _Panel(palette[2 * pairs.astype(np.uint8)], (n, m), f"{n} queries × {m} keys, {share:.1%}"))
    return panels


def _heat(x: Any, n: int | None, batch: int, head: int) -> _Panel:
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
    colours = _ramp(np.clip(share, 0, 1), _DIVERGING if low < 0 else _SEQUENTIAL)
    return _Panel(colours, values.shape, f"{values.shape[0]} × {values.shape[1]}, from {low:.3g} to {high:.3g}")


def _ramp(share: Any, stops: tuple[tuple[int, int, int], ...]) -> Any:
    at = np.linspace(0, 1, len(stops))
    channels = [np.interp(share, at, [stop[i] for stop in stops]) for i in range(3)]
    return np.stack(channels, -1).round().astype(np.uint8)


# ---- Pixels ---------------------------------------------------------------------------------------------------------


def _scale(panel: _Panel) -> tuple[int, int]:
    """Pixels of a panel, height and width: no fewer than cells."""
    largest = max(*panel.sides, 1)
    size = max(_PANEL, *panel.colours.shape[:2])
    return max(size * panel.sides[0] // largest, 1), max(size * panel.sides[1] // largest, 1)


def _pixels(panel: _Panel) -> Any:
    """A panel's picture in a frame of one pixel: each pixel has its cell's colour."""
    height, width = _scale(panel)
    rows, columns = panel.colours.shape[:2]
    image = np.full((height + 2, width + 2, 3), _FRAME, np.uint8)
    if rows and columns:
        y, x = np.arange(height) * rows // height, np.arange(width) * columns // width
        image[1:-1, 1:-1] = panel.colours[y[:, None], x[None, :]]
    return image


def _composed(panels: list[_Panel]) -> Any:
    """Panels side by side on white."""
    images = [_pixels(panel) for panel in panels]
    height = max(image.shape[0] for image in images) + 2 * _GAP
    sheet = np.full((height, sum(image.shape[1] + _GAP for image in images) + _GAP, 3), 255, np.uint8)
    x = _GAP
    for image in images:
        sheet[_GAP : _GAP + image.shape[0], x : x + image.shape[1]] = image
        x += image.shape[1] + _GAP
    return sheet


def _png(image: Any) -> bytes:
    """An image [height, width, 3] of bytes as a PNG file."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    height, width = image.shape[:2]
    rows = np.zeros((height, 1 + 3 * width), np.uint8)  # a row begins with its filter: 0, none
    rows[:, 1:] = image.reshape(height, 3 * width)
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    data = zlib.compress(rows.tobytes(), 6)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", data) + chunk(b"IEND", b"")


# ---- SVG ------------------------------------------------------------------------------------------------------------


def _colour(rgb: Any) -> str:
    return "#" + "".join(f"{int(c):02x}" for c in rgb)


def _runs(colours: Any) -> list[tuple[int, int, int, str]]:
    """Cells of one colour along rows: row, first column, how many, colour."""
    runs = []
    for y, row in enumerate(colours):
        starts: Any = np.flatnonzero(np.r_[True, (row[1:] != row[:-1]).any(-1)]) if len(row) else []
        for start, end in zip(starts, [*starts[1:], len(row)], strict=True):
            runs.append((y, int(start), int(end - start), _colour(row[start])))
    return runs


def _svg_panel(panel: _Panel, x: int) -> list[str]:
    height, width = _scale(panel)
    rows, columns = panel.colours.shape[:2]
    runs = _runs(panel.colours)
    lines = []
    if len(runs) <= _MOST_RUNS:
        across, down = width / max(columns, 1), height / max(rows, 1)
        place = f"translate({x} {_GAP}) scale({across:.6g} {down:.6g})"
        lines.append(f'<g transform="{place}" shape-rendering="crispEdges">')
        lines += [f'<rect x="{c}" y="{r}" width="{w}" height="1" fill="{colour}"/>' for r, c, w, colour in runs]
        lines.append("</g>")
    else:
        data = base64.b64encode(_png(panel.colours)).decode()
        lines.append(
            f'<image x="{x}" y="{_GAP}" width="{width}" height="{height}" preserveAspectRatio="none" '
            f'style="image-rendering:pixelated" href="data:image/png;base64,{data}"/>'
        )
    lines.append(f'<rect x="{x}" y="{_GAP}" width="{width}" height="{height}" fill="none" stroke="{_colour(_FRAME)}"/>')
    y = _GAP + height + _CAPTION
    lines.append(f'<text x="{x}" y="{y}">{panel.caption}</text>')
    for i, (colour, name) in enumerate(panel.legend):
        left = x + 110 * i
        lines.append(
            f'<rect x="{left}" y="{y + 9}" width="12" height="12" fill="{_colour(colour)}" stroke="{_colour(_FRAME)}"/>'
        )
        lines.append(f'<text x="{left + 18}" y="{y + 20}">{name}</text>')
    return lines


def _svg(panels: list[_Panel]) -> str:
    x, lines = _GAP, []
    for panel in panels:
        lines += _svg_panel(panel, x)
        x += max(_scale(panel)[1], 110 * len(panel.legend)) + _GAP
    height = max(_scale(panel)[0] for panel in panels) + _GAP + 2 * _CAPTION + _GAP
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{x}" height="{height}" viewBox="0 0 {x} {height}">',
            f'<rect width="{x}" height="{height}" fill="#ffffff"/>',
            f'<g font-family="sans-serif" font-size="13" fill="{_colour(_INK)}">',
            *lines,
            "</g>",
            "</svg>",
            "",
        ]
    )
