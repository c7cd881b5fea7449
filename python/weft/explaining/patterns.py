# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Pictures of the patterns in a program, from their text."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from weft.drawing.panels import pattern_panels
from weft.drawing.svg import svg
from weft.errors import Error
from weft.patterns.host import Spelled

_LENGTH = 256  # queries and keys of a picture


@dataclass(frozen=True)
class Picture:
    """A pattern's text and its SVG, or why there is none."""

    pattern: str
    svg: str
    note: str = ""


def pictures(program: str, block: Sequence[int]) -> Iterator[Picture]:
    """Each pattern of a program's IR once, drawn with blocks of its schedule's size."""
    for text in dict.fromkeys(each for found in _lists(program) for each in _split(found)):
        try:
            rows, columns = (min(int(size), _LENGTH // 2) for size in block)
            panels = pattern_panels(Spelled(text), _LENGTH, _LENGTH, (rows, columns), 0, 0)
            yield Picture(text, svg(panels, text))
        except Error as error:
            yield Picture(text, "", f"no picture without the tensors or functions that it names: {error}")


def _lists(program: str) -> Iterator[str]:
    """What stands between the brackets of ``patterns = [...]``."""
    for found in re.finditer(r"patterns = \[", program):
        depth, at = 1, found.end()
        while depth and at < len(program):
            depth += {"[": 1, "]": -1}.get(program[at], 0)
            at += 1
        yield program[found.end() : at - 1]


def _split(texts: str) -> Iterator[str]:
    """Attributes of a list: commas inside of brackets separate none."""
    depth, start = 0, 0
    for at, each in enumerate(texts):
        depth += {"<": 1, "[": 1, "(": 1, ">": -1, "]": -1, ")": -1}.get(each, 0)
        if each == "," and depth == 0:
            yield texts[start:at].strip()
            start = at + 1
    yield texts[start:].strip()
