# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""The user's line: where in the caller's source, outside of this package, an operation of a program was written."""

from __future__ import annotations

import functools
import itertools
import pathlib
import sys
from types import FrameType
from typing import Any

from .diagnostics import CompilationError, Position
from .origins import PACKAGE, is_own

_COMMAND = PACKAGE + "cli/__main__.py"


def _inside(frame: FrameType) -> bool:
    """Whether a frame is this package's own, or Python's machinery in between."""
    file = frame.f_code.co_filename
    return (
        is_own(file) or file.startswith(("<frozen", *_libraries())) or file.endswith(("contextlib.py", "functools.py"))
    )


def _libraries() -> tuple[str, ...]:
    """Where torch and NumPy are, whose own lines a user has not written."""
    loaded = tuple(name for name in ("torch", "numpy") if name in sys.modules)
    return _folders(loaded)


@functools.cache
def _folders(names: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(str(pathlib.Path(str(sys.modules[name].__file__)).parent) + "/" for name in names)


def user_position() -> Position | None:
    """Where the innermost frame that is not this package's own stands; None without one."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and _inside(frame):
        # Who calls the command line wrote none of what it is given.
        frame = None if frame.f_code.co_filename == _COMMAND else frame.f_back
    return None if frame is None else _position(frame)


def raised_at(error: BaseException) -> Position | None:
    """Where in the user's source an exception came from."""
    last, trace = None, error.__traceback__
    while trace is not None:
        if not _inside(trace.tb_frame):
            last = Position(trace.tb_frame.f_code.co_filename, trace.tb_lineno, 1)
        trace = trace.tb_next
    return last


def _position(frame: FrameType) -> Position:
    code = frame.f_code
    at = next(itertools.islice(code.co_positions(), frame.f_lasti // 2, None), (None,) * 4)
    line, end_line, column, end = at
    if line is None or column is None:
        return Position(code.co_filename, frame.f_lineno, 1)
    return Position(code.co_filename, line, column + 1, end + 1 if end is not None and end_line == line else None)


def described(given: Any) -> str:
    """What came, in the words of a message: a number or a text as it is spelled, anything else by its type."""
    if given is None or isinstance(given, (bool, int, float, complex, str, bytes)):
        return repr(given)
    return f"the class '{given.__name__}'" if isinstance(given, type) else f"'{type(given).__name__}'"


def error(message: str, remedy: str | None = None) -> CompilationError:
    """An error at the user's line."""
    return CompilationError(message, user_position(), remedy)
