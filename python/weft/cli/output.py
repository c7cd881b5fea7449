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


@contextmanager
def progress(total: int, what: str) -> Iterator[Any]:
    """A bar on a terminal's standard error, and nothing elsewhere: gives a function that counts one piece done."""
    if not has_rich():
        yield lambda: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    errors = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=errors, transient=True, disable=not errors.is_terminal) as bars:
        task = bars.add_task(what, total=total)
        yield lambda: bars.update(task, advance=1)
