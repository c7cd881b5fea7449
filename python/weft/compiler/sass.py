# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Machine code as cuobjdump prints it: instructions and the loops they are in."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

_LINE = re.compile(r"^\s+/\*(?P<address>[0-9a-f]{4,})\*/\s+(?P<text>.*?)\s*;", re.MULTILINE)
_GUARD = re.compile(r"^@!?U?P(?:\d+|T)\s+")
_TARGET = re.compile(r"\bBRA\b.*\b0x([0-9a-f]+)\b")
#: Mnemonics of matrix instructions: of a warp, and of four.
MATRIX = ("HMMA", "IMMA", "HGMMA", "IGMMA", "QGMMA")


@dataclass(frozen=True)
class Instruction:
    """One instruction: where it is, its mnemonic without modifiers, and its text with guard and operands."""

    address: int
    name: str
    text: str

    @property
    def branch_target(self) -> int | None:
        """Where a branch goes; None for anything else."""
        found = _TARGET.search(self.text)
        return int(found[1], 16) if found else None


@dataclass(frozen=True)
class Loop:
    """The instructions from a loop's first to its branch back; loops inside included."""

    instructions: tuple[Instruction, ...]

    @property
    def classes(self) -> Counter[str]:
        """Instructions by mnemonic."""
        return Counter(each.name for each in self.instructions)

    @property
    def matrix_instructions(self) -> int:
        """Matrix instructions."""
        return sum(self.classes[name] for name in MATRIX)


def instructions(code: str) -> tuple[Instruction, ...]:
    """The instructions of a dump, without NOP."""
    found = []
    for match in _LINE.finditer(code):
        text = _GUARD.sub("", match["text"])
        name = re.match(r"[A-Z][A-Z0-9_]*", text)
        if name and name[0] != "NOP":
            found.append(Instruction(int(match["address"], 16), name[0], match["text"]))
    return tuple(found)


def loops(code: Sequence[Instruction]) -> Iterator[Loop]:
    """The loops of one kernel: a branch back, and all from where it goes."""
    for each in code:
        target = each.branch_target
        if target is not None and target < each.address:
            yield Loop(tuple(other for other in code if target <= other.address <= each.address))
