# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""How a mistake in a kernel is shown: where, the user's line with a caret, what was expected and what came, and a
remedy.
"""

from __future__ import annotations

import linecache
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from ..errors import Error


@dataclass(frozen=True)
class Position:
    """A stretch of a source line; lines and columns count from 1, ``end`` is the column after the last."""

    file: str
    line: int
    column: int
    end: int | None = None

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"


class CompilationError(Error):
    """A kernel that cannot be compiled. ``str()`` of it is the whole report; the parts are attributes.

    ``message`` is what was expected and what came, ``position`` where (None when unknown), ``remedy`` what to do,
    ``notes`` further lines, ``number`` that of docs/reference/Errors.md ("WL102"), "" where there is none.
    """

    def __init__(
        self,
        message: str,
        position: Position | None = None,
        remedy: str | None = None,
        notes: Iterable[str] = (),
        line: str | None = None,
        number: str = "",
    ):
        super().__init__(message)
        self.message, self.position, self.remedy, self.notes = message, position, remedy, list(notes)
        self.number = number
        self._line = line

    def __str__(self) -> str:
        where = f"{self.position}: " if self.position else ""
        number = f" [{self.number}]" if self.number else ""
        parts = [f"{where}error: {self.message}{number}", *self._excerpt()]
        if self.remedy:
            parts.append(f"  note: {self.remedy}")
        parts += [f"  note: {note}" for note in self.notes]
        return "\n".join(parts)

    def _excerpt(self) -> list[str]:
        """The source line and the caret under it."""
        if self.position is None:
            return []
        line = self._line if self._line is not None else linecache.getline(self.position.file, self.position.line)
        line = line.rstrip().expandtabs(1)
        if not line:
            return []
        start = self.position.column
        end = min(self.position.end or start + 1, len(line) + 1)
        margin = f"{self.position.line:5} | "
        return [margin + line, " " * (len(margin) - 2) + "| " + " " * (start - 1) + "^" + "~" * max(0, end - start - 1)]

    def __reduce__(self) -> Any:
        return CompilationError, (self.message, self.position, self.remedy, self.notes, self._line, self.number)


def from_native(headline: str, diagnostics: Iterable[tuple[str, str, str, int, int]]) -> CompilationError:
    """The compiler's diagnostics as one error at the user's line: the first error with its notes."""
    error: CompilationError | None = None
    extra: list[str] = []
    for severity, message, file, line, column in diagnostics:
        if severity == "error" and error is None:
            position = Position(file, line, column) if file and line else None
            error = CompilationError(message, position)
        elif severity == "note" and error is not None:
            extra.append(
                f"{message}"
                + (f" ({file}:{line})" if file and line and (not error.position or line != error.position.line) else "")
            )
        elif severity == "error":
            extra.append(f"also: {message}")
    if error is None:
        return CompilationError(headline)
    notes = [n for n in extra if "see current operation" not in n]
    return CompilationError(error.message, error.position, None, notes)
