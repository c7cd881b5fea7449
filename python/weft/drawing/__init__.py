# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""weft.draw: patterns and matrices as pictures, SVG or PNG by the path's suffix.

A pattern becomes two panels: its matrix, and its blocks coloured empty, partial and full. A mixer or a matrix becomes a
heat map. An SVG has a title, axes and a legend, and takes no plotting library; a PNG has them by matplotlib, which the
extra ``draw`` installs, and is the pixels alone without it.
"""

from __future__ import annotations

import os
import pathlib
from collections.abc import Sequence
from typing import Any

from ..compiler import places
from ..folders import new_file
from ..patterns import Pattern
from ..programs import static
from . import figure
from .panels import EMPTY, FULL, PARTIAL, Panel, heat_panel, pattern_panels
from .png import composed, png
from .svg import svg

__all__ = ["EMPTY", "FULL", "PARTIAL", "draw"]


def draw(
    x: Any,
    path: str | os.PathLike[str],
    n: int | None = None,
    m: int | None = None,
    *,
    block: int | tuple[int, int] | None = None,
    batch: int = 0,
    head: int = 0,
    title: str | None = None,
) -> None:
    """Draw a pattern of ``n`` queries and ``m`` keys (64, and as many), a mixer of length ``n``, or a matrix.

    ``block`` is the size of the blocks of the second panel, (queries, keys); by default an eighth of the lengths.
    ``batch`` and ``head`` choose among the matrices where these differ. ``title`` stands above the picture, by default
    what kind of thing it is.
    """
    for name, number in (("n", n), ("m", m)):
        if number is not None:
            static.integer(name, number, 1)
    static.integer("batch", batch)
    static.integer("head", head)
    if not isinstance(path, (str, os.PathLike)):
        raise TypeError(f"expected 'path' to be the name of a file, but got {places.described(path)}")
    target = picture_path(path)
    panels = (
        pattern_panels(x, n or 64, m or n or 64, block, batch, head)
        if isinstance(x, Pattern)
        else [heat_panel(x, n, batch, head)]
    )
    if title is not None and not isinstance(title, str):
        raise TypeError(f"expected 'title' to be text, but got {places.described(title)}")
    write(panels, _title(x, batch, head) if title is None else title, target)


def picture_path(path: str | os.PathLike[str]) -> pathlib.Path:
    """Where a picture goes: a file whose suffix says what kind of picture it is."""
    target = pathlib.Path(path)
    if target.suffix.lower() not in (".svg", ".png"):
        raise places.error(f"expected a path that ends in .svg or .png, but got '{target.name}'")
    return target


def write(panels: Sequence[Panel], said: str, target: pathlib.Path) -> None:
    """Write panels under a title, as the suffix of ``target`` says."""
    if target.suffix.lower() == ".svg":
        made = svg(panels, said).encode()
    else:
        made = png(figure.pixels(list(panels), said) if figure.available() else composed(list(panels)))
    with new_file(target) as file:
        file.write_bytes(made)


def _title(x: Any, batch: int, head: int) -> str:
    """What is drawn, in a few words."""
    kind = "Which queries attend to which keys" if isinstance(x, Pattern) else f"Values of {type(x).__name__}"
    chosen = [f"{name} {number}" for name, number in (("batch", batch), ("head", head)) if number]
    return ", ".join([kind, *chosen])
