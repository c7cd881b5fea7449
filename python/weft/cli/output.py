# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""What commands print: tables as wide as the terminal, or as wide as they are where the output is no terminal; and a
line on a terminal's standard error for work that takes long.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from weft.tables import console_class, has_rich

_UNCUT = 100_000  # columns: nothing that is printed is wider


def console() -> Any:
    """Standard output. Output that goes to a file or to another program is never cut or wrapped."""

    class Output(console_class()):  # type: ignore[misc]  # rich's or the plain one, as is installed
        def on_broken_pipe(self) -> None:  # left to main, which ends as other tools do
            raise BrokenPipeError

    return Output(width=None if sys.stdout.isatty() else _UNCUT)


class Bars:
    """Work on a terminal's standard error, a bar for what is under way."""

    def __init__(self, shown: Any) -> None:
        self._shown, self._task = shown, None

    def begin(self, total: int, what: str) -> None:
        """``total`` pieces of a kind, ``what``, are about to be done, in the place of those before."""
        if self._shown and self._task is not None:
            self._shown.remove_task(self._task)
        self._task = self._shown.add_task(what, total=total) if self._shown else None

    def advance(self, what: str | None = None) -> None:
        """One piece is done; ``what`` says which."""
        if self._shown:
            self._shown.update(self._task, advance=1, **({} if what is None else {"description": what}))


@contextmanager
def bars() -> Iterator[Bars]:
    """Bars with the time that remains on a terminal's standard error, and nothing elsewhere."""
    if not has_rich():
        yield Bars(None)
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    errors = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=errors, transient=True, disable=not errors.is_terminal) as shown:
        yield Bars(shown)


@contextmanager
def progress(total: int, what: str) -> Iterator[Any]:
    """One bar: gives a function that counts one piece done."""
    with bars() as shown:
        shown.begin(total, what)
        yield shown.advance
