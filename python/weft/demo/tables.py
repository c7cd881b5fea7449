# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""A table as data, for the terminal and for the page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import rich.table


@dataclass(frozen=True)
class Grid:
    """Rows of text under headings. The first ``left`` columns are words, the others numbers."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    left: int = 1

    def rich(self) -> rich.table.Table:
        """For a terminal."""
        table = rich.table.Table(title=self.title)
        for number, name in enumerate(self.columns):
            table.add_column(name, justify="left" if number < self.left else "right")
        for row in self.rows:
            table.add_row(*row)
        return table
