# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""The control field of a machine instruction: when the next may be issued, and what is waited for.

An instruction has 128 bits; the assembler's scheduling is bits 105 to 125, since Volta (arXiv 1804.06826, section 2.1):

    125..122   121..116    115..113       112..110        109     108..105
    reuse      wait mask   read barrier   write barrier   yield   stall
"""

from __future__ import annotations

from dataclasses import dataclass

#: scoreboards of a warp
BARRIERS = 6
_NONE = 7  # in the place of a barrier's number
_FIRST = 105 - 64  # of the field in the upper word


@dataclass(frozen=True)
class Control:
    """What the assembler decided for one instruction."""

    stall: int = 1
    """cycles until the warp's next instruction may be issued"""
    may_switch: bool = False
    """whether another warp is preferred next"""
    write: int | None = None
    """the scoreboard that is released when results are there"""
    read: int | None = None
    """the scoreboard that is released when operands have been read"""
    wait: tuple[int, ...] = ()
    """scoreboards that must be released before this is issued"""


def decode(upper: int) -> Control:
    """The control of an instruction, from the upper 64 of its 128 bits."""
    field = upper >> _FIRST
    write, read, mask = (field >> 5) & 7, (field >> 8) & 7, (field >> 11) & 0x3F
    return Control(
        stall=field & 15,
        may_switch=not (field >> 4) & 1,
        write=None if write == _NONE else write,
        read=None if read == _NONE else read,
        wait=tuple(i for i in range(BARRIERS) if mask >> i & 1),
    )


def encode(control: Control) -> int:
    """The bits of the upper word that ``decode`` reads: for tests, and for listings written by hand."""
    write = _NONE if control.write is None else control.write
    read = _NONE if control.read is None else control.read
    mask = sum(1 << i for i in control.wait)
    field = control.stall | (not control.may_switch) << 4 | write << 5 | read << 8 | mask << 11
    return field << _FIRST
