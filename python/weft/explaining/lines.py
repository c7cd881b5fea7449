# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Lines of IR, PTX and machine code, each with the source line that it was made of."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple


class Place(NamedTuple):
    """A line of a source file."""

    file: str
    line: int


class Line(NamedTuple):
    """A line of text, its number from 1, and where it comes from."""

    number: int
    text: str
    place: Place | None


_ALIAS = re.compile(r"^(#loc\d*) = loc\((.*)\)$")
_FILE = re.compile(r'"((?:[^"\\]|\\.)*)":(\d+):\d+')
_LOCATION = re.compile(r'"(?:[^"\\]|\\.)*"|( ?(?<![\w.#])loc\()')
_NAMED = re.compile(r"#loc\d*")


def of_ir(text: str) -> list[Line]:
    """Lines of MLIR text that was printed with locations, without these; what inlined code was written as counts, not
    who called it. Numbers are those of what is shown."""
    aliases = {found[1]: found[2] for line in text.splitlines() if (found := _ALIAS.match(line))}
    lines: list[Line] = []
    for line in text.splitlines():
        if not _ALIAS.match(line):
            shown, said = _without_locations(line)
            lines.append(Line(len(lines) + 1, shown.rstrip(), _place(said, aliases)))
    return lines


def _without_locations(line: str) -> tuple[str, str]:
    """A line without ``loc(...)``, and what the last of them says."""
    shown, said, at = "", "", 0
    for found in _LOCATION.finditer(line):
        if found[1] and found.start() >= at:  # else a string, or inside of a location
            end = _closing(line, found.end() - 1)
            shown, said, at = shown + line[at : found.start()], line[found.end() : end], end + 1
    return shown + line[at:], said


def _closing(line: str, at: int) -> int:
    """Where the parenthesis at ``at`` is closed."""
    depth, inside = 0, False
    for i in range(at, len(line)):
        if line[i] == '"' and line[i - 1] != "\\":
            inside = not inside
        elif not inside:
            depth += {"(": 1, ")": -1}.get(line[i], 0)
            if depth == 0:
                return i
    return len(line)


def _place(said: str, aliases: dict[str, str], depth: int = 0) -> Place | None:
    """The first position in a file that a location names, by way of other locations too."""
    file, named = _FILE.search(said), _NAMED.search(said)
    if file and not (named and named.start() < file.start()):
        return Place(file[1], int(file[2]))
    if named and depth < 20:
        inner = _place(aliases.get(named[0], ""), aliases, depth + 1)
        return inner or (Place(file[1], int(file[2])) if file else None)
    return None


def of_ptx(text: str) -> list[Line]:
    """Lines of PTX, without directives that say where lines come from."""
    files: dict[str, str] = {}
    for each in re.finditer(r'^\s*\.file\s+(\d+)\s+"([^"]*)"(?:\s+"([^"]*)")?', text, re.MULTILINE):
        files[each[1]] = f"{each[2]}/{each[3]}" if each[3] else each[2]
    lines, place = [], None
    for number, line in enumerate(text.split("\n\t.section\t.debug", 1)[0].splitlines(), 1):
        if found := re.match(r"\s*\.loc\s+(\d+)\s+(\d+)", line):
            place = Place(files[found[1]], int(found[2])) if found[1] in files and int(found[2]) else None
        elif re.match(r"\s*(\.file\s|\$L__(tmp|func_(begin|end))\d+:)|\s*$", line) is None:
            if line.startswith("}"):
                place = None
            lines.append(Line(number, line.expandtabs(4), place if _is_instruction(line) else None))
    return lines


def _is_instruction(line: str) -> bool:
    return bool(re.match(r"\s+(@!?%p\d+ )?[a-z{]", line)) or line.lstrip().startswith("{")


def of_machine_code(text: str) -> list[Line]:
    """Lines of what nvdisasm prints with line information: instructions and labels, numbered as shown."""
    lines: list[Line] = []
    place, inlined = None, False
    for line in text.splitlines():
        if found := re.match(r'\s*//## File "([^"]*)", line (\d+)( inlined at)?', line):
            if not inlined:  # else it says who called, line after line
                place = Place(found[1], int(found[2]))
            inlined = inlined or bool(found[3])
        elif found := re.match(r"\s*/\*([0-9a-f]{4,})\*/\s+(.*?)\s*;?\s*(/\*.*)?$", line):
            inlined = False
            lines.append(Line(len(lines) + 1, f"{found[1]}  {found[2]}", place))
        elif re.match(r"[.\w$]+:", line):
            place, inlined = None, False
            lines.append(Line(len(lines) + 1, line, None))
    return lines


def of_source(file: str, text: str, named: set[int], around: int = 400) -> Iterator[Line]:
    """Lines of a source file, from ``around`` before the first that something comes from to as many after the last."""
    if not named:
        return
    first, last = max(min(named) - around, 1), max(named) + around
    for number, line in enumerate(text.splitlines(), 1):
        if first <= number <= last:
            yield Line(number, line.expandtabs(4), Place(file, number) if number in named else None)
