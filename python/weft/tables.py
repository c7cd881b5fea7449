# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Tables as text: rich's, as wide as the terminal and with colours, where rich is installed; else plain ones of the
same cells. Both classes here take what Weft gives to rich's of the same name, and leave out what is decoration.
"""

from __future__ import annotations

import importlib.util
import sys
from typing import Any, TextIO


def has_rich() -> bool:
    """Whether rich is installed."""
    return importlib.util.find_spec("rich") is not None


def console_class() -> Any:
    """rich.console.Console, or the plain one."""
    if not has_rich():
        return Console
    from rich.console import Console as Rich

    return Rich


def table_class() -> Any:
    """rich.table.Table, or the plain one."""
    if not has_rich():
        return Table
    from rich.table import Table as Rich

    return Rich


class Console:
    """Prints lines and tables to a stream."""

    def __init__(self, file: TextIO | None = None, **decoration: Any) -> None:
        self.file = file or sys.stdout

    def print(self, what: object = "", end: str = "\n", **decoration: Any) -> None:
        """Print, with rich's marks left out of no text: what is printed here has none."""
        print(what, end=end, file=self.file)


class Table:
    """Rows of cells under headings. Columns are as wide as their widest cell; a rule separates sections."""

    def __init__(self, *headings: str, title: str | None = None, **decoration: Any) -> None:
        self.title = title
        self.headings: list[str] = []
        self.right: list[bool] = []
        self.rows: list[tuple[str, ...] | None] = []
        for heading in headings:
            self.add_column(heading)

    def add_column(self, heading: str, justify: str = "left", **decoration: Any) -> None:
        """One column more, to the right of the others."""
        self.headings.append(heading)
        self.right.append(justify == "right")

    def add_row(self, *cells: str) -> None:
        """One row more; cells that are missing at its end are empty."""
        self.rows.append((*cells, *[""] * (len(self.headings) - len(cells))))

    def add_section(self) -> None:
        """A rule before the next row."""
        self.rows.append(None)

    def __str__(self) -> str:
        lines = [tuple(self.headings), *(row for row in self.rows if row is not None)]
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        rule = "  ".join("-" * width for width in widths)
        shown = [self._line(self.headings, widths), rule]
        shown += [rule if row is None else self._line(row, widths) for row in self.rows]
        return "\n".join(([self.title] if self.title else []) + shown)

    def _line(self, cells: Any, widths: list[int]) -> str:
        justified = (
            cell.rjust(width) if right else cell.ljust(width)
            for cell, width, right in zip(cells, widths, self.right, strict=True)
        )
        return "  ".join(justified).rstrip()
