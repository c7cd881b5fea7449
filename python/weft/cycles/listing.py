# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Machine code as ``nvdisasm -c -hex`` prints it (``-g`` too): kernels, instructions with their control fields, labels.

Each instruction takes two lines, which end in the lower and the upper of its words. What does not fit that is refused
with its line: a model of half a kernel would give a number without a word.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from weft.errors import Error

from .control import Control, decode

_SECTION = re.compile(r"^\.text\.([\w$.]+):\s*$")
_OTHER_SECTION = re.compile(r"^\s*\.section\s")
_LABEL = re.compile(r"^(\.L[\w$.]*|[\w$][\w$.]*):\s*$")
_LINE = re.compile(r"^\s*/\*([0-9a-f]{4,})\*/\s+(\S.*?)\s*;\s*/\* 0x([0-9a-f]{16}) \*/\s*$")
_UPPER = re.compile(r"^\s*/\* 0x([0-9a-f]{16}) \*/\s*$")
_STARTS = re.compile(r"^\s*/\*[0-9a-f]+\*/")
_TEXT = re.compile(r"^(?:@(!?U?P(?:\d|T))\s+)?([A-Z][A-Z0-9_]*)((?:\.[\w]+)*)(?:\s+(.*))?$")
_PLACE = re.compile(r'^\s*//## File "([^"]*)", line (\d+)( inlined at)?')
_TARGET = re.compile(r"`\((\.L[\w$.]*)\)")
_END = re.compile(r"^\s*\.size\s+[\w$.]+,\s*\((\.L[\w$.]*) - ")
_BYTES = 16  # of an instruction


class ListingError(Error):
    """Text that is no listing of machine code."""


@dataclass(frozen=True)
class Instruction:
    """One instruction: where it is, ``@guard NAME.modifiers operands``, and what the assembler decided for it."""

    address: int
    guard: str
    name: str
    modifiers: tuple[str, ...]
    operands: str
    control: Control
    target: int | None = None
    """where a branch goes, if the text says it"""
    place: str = ""
    """the source line, as FILE:LINE, where the listing has it"""

    @property
    def text(self) -> str:
        """As it is printed, without its address."""
        opcode = ".".join((self.name, *self.modifiers))
        return " ".join(part for part in (self.guard and f"@{self.guard}", opcode, self.operands) if part)


@dataclass(frozen=True)
class Kernel:
    """The code of one entry."""

    name: str
    instructions: tuple[Instruction, ...]


def parse(text: str) -> dict[str, Kernel]:
    """The kernels of a listing by name. Raises ListingError with the line that is not as expected."""
    reader = _Reader()
    for number, line in enumerate(text.splitlines(), 1):
        reader.read(number, line)
    reader.close()
    if not reader.kernels:
        raise ListingError("expected machine code as nvdisasm -c -hex prints it, but got no section '.text.NAME'")
    return reader.kernels


class _Reader:
    def __init__(self) -> None:
        self.kernels: dict[str, Kernel] = {}
        self._end = ""
        self._begin(None)

    def _begin(self, name: str | None) -> None:
        self._name = name
        self._end = self._end if name else ""
        self._found: list[Instruction] = []
        self._labels: dict[str, int] = {}
        self._goes: dict[int, tuple[str, int]] = {}
        self._half: tuple[int, re.Match[str]] | None = None
        self._place, self._inlined = "", False

    def read(self, number: int, line: str) -> None:
        if self._half:
            upper = _UPPER.match(line)
            if not upper:
                raise ListingError(f"line {number}: expected the upper word of an instruction, but got {_cut(line)}")
            self._add(*self._half, int(upper[1], 16))
            self._half = None
        elif section := _SECTION.match(line):
            self.close()
            if section[1] in self.kernels:
                raise ListingError(f"line {number}: expected one section for '{section[1]}', but got a second")
            self._begin(section[1])
        elif _OTHER_SECTION.match(line):
            self.close()
            self._begin(None)
        elif end := _END.match(line):
            self._end = end[1]
        elif self._name is None:
            return
        elif place := _PLACE.match(line):
            if not self._inlined:  # else it says who called, line after line
                self._place = f"{place[1]}:{place[2]}"
            self._inlined = bool(place[3])
        elif found := _LINE.match(line):
            self._half, self._inlined = (number, found), False
        elif label := _LABEL.match(line):
            if label[1] in self._labels:
                raise ListingError(f"line {number}: expected each label once, but got '{label[1]}' again")
            self._labels[label[1]] = len(self._found) * _BYTES
        elif _STARTS.match(line) or _UPPER.match(line):
            raise ListingError(f"line {number}: expected an instruction and its lower word, but got {_cut(line)}")

    def _add(self, number: int, line: re.Match[str], upper: int) -> None:
        address, text = int(line[1], 16), _TEXT.match(line[2])
        if not text:
            raise ListingError(f"line {number}: expected an instruction, but got {_cut(line[2])}")
        if address != len(self._found) * _BYTES:
            expected = len(self._found) * _BYTES
            raise ListingError(f"line {number}: expected the instruction at {expected:04x}, but got {address:04x}")
        operands = text[4] or ""
        if goes := _TARGET.search(operands):
            self._goes[len(self._found)] = goes[1], number
        self._found.append(
            Instruction(
                address,
                text[1] or "",
                text[2],
                tuple(text[3].split(".")[1:]),
                operands,
                decode(upper),
                place=self._place,
            )
        )

    def close(self) -> None:
        """End the section: branches get their targets."""
        if self._half:
            raise ListingError(f"line {self._half[0]}: expected the upper word of an instruction, but got the end")
        if self._name is None:
            return
        if not self._found:
            raise ListingError(f"expected instructions in '.text.{self._name}', but got none")
        if self._end and self._end not in self._labels:
            raise ListingError(f"expected '{self._name}' to end at label '{self._end}', but got the end of the text")
        for index, (label, number) in self._goes.items():
            if self._labels.get(label, len(self._found) * _BYTES) >= len(self._found) * _BYTES:
                raise ListingError(f"line {number}: expected a label of '{self._name}', but got '{label}'")
            self._found[index] = replace(self._found[index], target=self._labels[label])
        self.kernels[self._name] = Kernel(self._name, tuple(self._found))
        self._name = None


def _cut(text: str) -> str:
    text = text.strip()
    return repr(text if len(text) <= 60 else text[:57] + "...")
