# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Machine code as cuobjdump prints it, to be counted. Loops are read from nvdisasm's listing (weft.cycles.flow)."""

from __future__ import annotations

import re
from dataclasses import dataclass

_LINE = re.compile(r"^\s+/\*(?P<address>[0-9a-f]{4,})\*/\s+(?P<text>.*?)\s*;", re.MULTILINE)
_GUARD = re.compile(r"^@!?U?P(?:\d+|T)\s+")
#: Mnemonics of matrix instructions: of a warp, and of four.
MATRIX = ("HMMA", "IMMA", "DMMA", "BMMA", "QMMA", "HGMMA", "IGMMA", "QGMMA", "BGMMA")
#: Of those whose sums are in tensor memory, which run beside the warps and do not name their shapes.
TENSOR_MATRIX = ("UTCHMMA", "UTCIMMA", "UTCQMMA")


@dataclass(frozen=True)
class Instruction:
    """One instruction: where it is, its mnemonic without modifiers, and its text with guard and operands."""

    address: int
    name: str
    text: str


def instructions(code: str) -> tuple[Instruction, ...]:
    """The instructions of a dump, without NOP."""
    found = []
    for match in _LINE.finditer(code):
        text = _GUARD.sub("", match["text"])
        name = re.match(r"[A-Z][A-Z0-9_]*", text)
        if name and name[0] != "NOP":
            found.append(Instruction(int(match["address"], 16), name[0], match["text"]))
    return tuple(found)
