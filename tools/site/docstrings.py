# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Docstrings as reStructuredText: paragraphs of plain text, tables of a name and what it is, and examples of Python."""

from __future__ import annotations

import re
from collections.abc import Sequence

_CODE = r"``[^`]+``(?:,? (?:and )?``[^`]+``)*"
_NAME = r"\w[\w.()\[\], =*|\"]{0,76}?"
#: a name, and after two spaces what it is
_ENTRY = re.compile(rf"^({_CODE}|{_NAME})  +(\S.*)$")
#: in the middle of a table one space is enough after a name in backquotes that is as long as the others' column
_LATER = re.compile(rf"^(?:({_CODE}) +|({_NAME})  +)(\S.*)$")
_LITERAL = re.compile(r"(``.+?``|`[^`]+`)")


def to_rst(lines: Sequence[str]) -> list[str]:
    """The lines of a docstring, without its indentation, in markup."""
    found: list[str] = []
    for paragraph in _paragraphs(lines):
        if paragraph[0].lstrip().startswith(">>>"):
            found += [*(line.strip() for line in paragraph), ""]
        elif _is_table(paragraph):
            found += _table(paragraph)
        elif all(line.startswith("    ") for line in paragraph):
            found += ["::", "", *paragraph, ""]
        else:
            found += [_escaped(line.strip()) for line in paragraph] + [""]
    return found


def _paragraphs(lines: Sequence[str]) -> list[list[str]]:
    found: list[list[str]] = [[]]
    for line in lines:
        if line.strip():
            found[-1].append(line.rstrip())
        elif found[-1]:
            found.append([])
    return [paragraph for paragraph in found if paragraph]


def _is_table(paragraph: Sequence[str]) -> bool:
    """Lines of which each begins with a name and two spaces, or goes on with the line before it."""
    if not _ENTRY.match(paragraph[0]):
        return False
    return all(line.startswith("  ") or _LATER.match(line) for line in paragraph)


def _table(paragraph: Sequence[str]) -> list[str]:
    found: list[str] = []
    for line in paragraph:
        entry = None if line.startswith("  ") else _LATER.match(line)
        if entry:
            found += [entry[1] or f"``{entry[2].strip()}``", f"    {_escaped(entry[3])}"]
        else:
            found.append(f"    {_escaped(line.strip())}")
    return [*found, ""]


def _escaped(text: str) -> str:
    """Plain text, in which only what stands between backquotes is code."""
    parts = _LITERAL.split(text)
    return "".join(
        f"``{part.strip('`')}``" if _LITERAL.fullmatch(part) else re.sub(r"([\\*_|`])", r"\\\1", part) for part in parts
    )
