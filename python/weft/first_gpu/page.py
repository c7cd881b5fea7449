# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""The report as an HTML page: no file besides it, no script, and no address but of what it names."""

from __future__ import annotations

import pathlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

_TEMPLATE = pathlib.Path(__file__).with_name("page.html.j2")


def page(report: Mapping[str, Any]) -> str:
    """The page of a report as ``report.json`` has it."""
    import jinja2

    environment = jinja2.Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
    environment.filters["cell"] = cell
    template = environment.from_string(_TEMPLATE.read_text(encoding="utf-8"))
    tables = {
        name: _tables(section["rows"]) for name, section in report["sections"].items() if _is_timed(section["rows"])
    }
    return template.render(report=report, tables=tables, count=_count)


def cell(value: Any) -> str:
    """A value as text: numbers to three digits, one that is missing as a dash."""
    if value is None or value == "":
        return "–"
    if not isinstance(value, float):
        return str(value)
    return f"{value:.3g}" if value < 1000 else f"{value:,.0f}"


def _is_timed(rows: Iterable[Mapping[str, Any]]) -> bool:
    return any("ms" in row for row in rows)


def _tables(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Of rows whose names end with a length and by whom: a table for each beginning, a line a length, a column each."""
    found: dict[tuple[str, ...], dict[str, dict[str, Any]]] = {}
    by: dict[str, None] = {}
    for row in rows:
        *start, length, who = row["name"]
        found.setdefault(tuple(start), {}).setdefault(length, {})[who] = row
        by[who] = None
    told = [who for who in by if any("ms" in row for row in rows if row["name"][-1] == who)]
    return [{"title": ", ".join(start), "by": told, "lines": lines} for start, lines in found.items()]


def _count(rows: Iterable[Mapping[str, Any]], state: str) -> int:
    return sum(row["state"] == state for row in rows)
