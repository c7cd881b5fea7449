# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Names of functions and arguments where others than Python have them: in PTX, in libraries, as operators of torch."""

from __future__ import annotations

import re
from collections.abc import Iterable

from .diagnostics import CompilationError, Position

#: letters of a name: files of libraries are named after it, its target and its form, and have at most 255
LONGEST = 160
#: how the names begin of what a program's forward saves for its backward
SAVED = "saved_"


def symbol(name: str) -> str:
    """A function's name as PTX can have it, of ASCII's letters, digits and '_': others are written as their numbers."""
    return re.sub(r"[^A-Za-z0-9_]", lambda letter: f"_u{ord(letter[0]):x}", name)


def check(what: str, name: str, arguments: Iterable[str], position: Position | None = None) -> None:
    """Refuse names that a library cannot have: of ``what``, a kernel or a program, and of its arguments. Raises
    CompilationError."""
    for role, each in ((f"a {what}", name), *(("an argument", argument) for argument in arguments)):
        if role == "an argument" and re.fullmatch(rf"{SAVED}[a-z]+\d+", each):
            message = f"expected another name for an argument than those of what a forward saves, but got '{each}'"
            raise CompilationError(message, position, remedy="rename it")
        if not re.fullmatch(r"[A-Za-z_$.][A-Za-z0-9_$.]*", each) or len(each) > LONGEST:
            raise CompilationError(
                f"expected the name of {role} to be at most {LONGEST} of ASCII's letters, digits and '_', "
                f"as in libraries, but got '{each}'",
                position,
                remedy="rename it",
            )
