# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""The rows of a section in a file, a line of JSON each, so that whoever ends early loses one row at most.

The first line says what the rows are of (the GPU, the driver, the commit, the options): rows of anything else are not
taken over. Before a case runs there is a line with its name under "begin".
"""

from __future__ import annotations

import json
import pathlib
from collections.abc import Mapping, Sequence
from typing import Any

DONE, FAILED, LEFT_OUT = "done", "failed", "left out"


class Rows:
    """The rows in a file."""

    def __init__(self, path: pathlib.Path) -> None:
        self.path = path

    def start(self, identity: Mapping[str, Any]) -> None:
        """Keep what was done of the same ``identity``, and forget the rest: what failed is to be tried again."""
        kept = [line for line in self.all() if line["state"] in (DONE, LEFT_OUT)] if self.are_of(identity) else []
        self.path.parent.mkdir(parents=True, exist_ok=True)
        beside = self.path.with_suffix(".partial")
        beside.write_text("".join(json.dumps(line) + "\n" for line in [{"identity": identity}, *kept]), "utf-8")
        beside.replace(self.path)

    def are_of(self, identity: Mapping[str, Any]) -> bool:
        """Whether there are rows, of this identity."""
        lines = self._lines()
        return bool(lines) and lines[0].get("identity") == json.loads(json.dumps(identity))

    def all(self) -> list[dict[str, Any]]:
        """The rows that have ended."""
        return [line for line in self._lines() if "state" in line]

    def begun(self) -> dict[str, Any] | None:
        """The case that began last, where it has not ended: {"begin": its name, "ours": ...}."""
        lines = self._lines()
        return lines[-1] if lines and "begin" in lines[-1] else None

    @property
    def total(self) -> int | None:
        """How many cases the section has, once that is known."""
        found = [line["total"] for line in self._lines() if "total" in line]
        return found[-1] if found else None

    def expect(self, total: int) -> None:
        """Write how many cases there are."""
        self._append({"total": total})

    def begin(self, name: Sequence[str], ours: bool) -> None:
        """Write that a case begins."""
        self._append({"begin": list(name), "ours": ours})

    def end(self, name: Sequence[str], state: str, ours: bool, reason: str = "", **values: Any) -> None:
        """Write what came of it."""
        self._append({"name": list(name), "state": state, "ours": ours, "reason": reason, **values})

    def _append(self, line: Mapping[str, Any]) -> None:
        with self.path.open("a", encoding="utf-8") as stream:
            stream.write(json.dumps(line) + "\n")

    def _lines(self) -> list[dict[str, Any]]:
        if not self.path.exists():
            return []
        found = []
        for text in self.path.read_text(encoding="utf-8").splitlines():
            try:
                found.append(json.loads(text))
            except json.JSONDecodeError:  # the last one of a process that was ended
                continue
        return found
