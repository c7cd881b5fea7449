# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""A tuning run as a table for a terminal."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

from weft.tables import console_class, table_class

from .space import spelled

if TYPE_CHECKING:
    from .result import Result, Row


def text(result: Result, width: int = 160) -> str:
    """The table as text."""
    stream = io.StringIO()
    show(result, console_class()(file=stream, width=width))
    return stream.getvalue()


def show(result: Result, console: Any) -> None:
    """Print the table on a console: the chosen first in each kernel, then by time, then what never ran."""
    sizes = ", ".join(f"{name} = {size}" for name, size in result.sizes.items())
    console.print(f"{result.program} for {result.target}, {sizes} (bucket: {result.bucket})", highlight=False)
    places = dict.fromkeys(row.place for row in result.rows)
    if len(places) == 2:  # one kernel, and the whole, which is the same
        places.pop("together", None)
    for place in places:
        table = table_class()("schedule", "", title=_title(place), title_justify="left")
        for name in ("µs", "registers", "spills", "shared", "resident", "instructions"):
            table.add_column(name, justify="right")
        table.add_column("bound by")
        table.add_column("why not")
        rows = [row for row in result.rows if row.place == place]
        for row in sorted(rows, key=_order):
            table.add_row(*_cells(row))
        console.print(table)
    for note in result.notes:
        console.print(note, highlight=False, markup=False)
    console.print(_summary(result), highlight=False, markup=False)


def _title(place: str) -> str:
    if place == "together":
        return "all kernels together"
    part, _, kernel = place.partition(".")
    if not part.isdigit():
        kind, _, number = kernel.rpartition(".")
        return f"{kind.replace('_', ' ')} {number} of the {part}"
    return f"attention {part}, {kernel}"


def _order(row: Row) -> tuple[int, float]:
    place = ("chosen", "lost", "refused", "dropped").index(row.status)
    return place, row.seconds if row.seconds is not None else 0.0


def _whole(row: Row) -> str:
    """What a row of all kernels together is by."""
    return "as chosen above" if row.status == "chosen" else "the defaults" if row.default else "all that won alone"


def _cells(row: Row) -> list[str]:
    def number(value: float | None) -> str:
        return "" if value is None else f"{value:,.0f}"

    marks = ("chosen " if row.status == "chosen" else "") + ("default" if row.default else "")
    longest = max(row.estimates, key=lambda each: each.seconds).limit if row.estimates else ""
    reason = f"{row.status}: {row.reason}" if row.status in ("dropped", "refused") else row.reason
    return [
        spelled(row.schedule) if row.schedule else _whole(row),
        marks.strip(),
        "" if row.seconds is None else f"{row.seconds * 1e6:,.1f}",
        number(row.registers) or "",
        number(row.spill_bytes),
        number(row.shared_bytes),
        number(row.resident),
        number(row.instructions),
        longest,
        reason,
    ]


def _summary(result: Result) -> str:
    if result.schedules:
        chosen = ", ".join(f"{place} = {spelled(schedule)}" for place, schedule in result.schedules.items())
        gain = result.default_seconds / result.seconds if result.seconds else 1.0
        head = f"chosen: {chosen}; {gain:.2f} × as fast as the default"
    else:
        head = "chosen: the default schedules"
    measured = f"{result.measured} candidate{'s' if result.measured != 1 else ''} measured"
    return (
        f"{head} ({result.device}).\n{measured}, {result.reused} known from before, in {result.elapsed:.1f} s; "
        f"seed {result.seed}"
    )
