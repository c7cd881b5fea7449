# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Panels as pixels, without text: PNG files where there is no matplotlib, and images of dense panels."""

from __future__ import annotations

import struct
import zlib
from typing import Any

import numpy as np

from .panels import Panel

FRAME: tuple[int, int, int] = (120, 120, 120)
SIZE, GAP = 384, 24  # pixels


def extent(panel: Panel) -> tuple[int, int]:
    """Pixels of a panel, height and width: no fewer than cells."""
    largest = max(*panel.sides, 1)
    size = max(SIZE, *panel.colours.shape[:2])
    return max(size * panel.sides[0] // largest, 1), max(size * panel.sides[1] // largest, 1)


def _pixels(panel: Panel) -> Any:
    """A panel's picture in a frame of one pixel: each pixel has its cell's colour."""
    height, width = extent(panel)
    rows, columns = panel.colours.shape[:2]
    image = np.full((height + 2, width + 2, 3), FRAME, np.uint8)
    if rows and columns:
        y, x = np.arange(height) * rows // height, np.arange(width) * columns // width
        image[1:-1, 1:-1] = panel.colours[y[:, None], x[None, :]]
    return image


def composed(panels: list[Panel]) -> Any:
    """Panels side by side on white."""
    images = [_pixels(panel) for panel in panels]
    height = max(image.shape[0] for image in images) + 2 * GAP
    sheet = np.full((height, sum(image.shape[1] + GAP for image in images) + GAP, 3), 255, np.uint8)
    x = GAP
    for image in images:
        sheet[GAP : GAP + image.shape[0], x : x + image.shape[1]] = image
        x += image.shape[1] + GAP
    return sheet


def png(image: Any) -> bytes:
    """An image [height, width, 3] of bytes as a PNG file."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    height, width = image.shape[:2]
    rows = np.zeros((height, 1 + 3 * width), np.uint8)  # a row begins with its filter: 0, none
    rows[:, 1:] = image.reshape(height, 3 * width)
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    data = zlib.compress(rows.tobytes(), 6)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", data) + chunk(b"IEND", b"")
