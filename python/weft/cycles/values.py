# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""What registers hold as far as the code itself says: whole numbers, and sums of names of what is not known.

The instructions of tensor memory name neither their shapes nor their barriers: a register holds a descriptor, another
an address. Both are computed by few kinds of instructions from constants. Anything else gives a value a name of its
own; two that came about in the same way from the same values have the same name.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .flow import Block, blocks
from .listing import Instruction, Kernel

_WORD = 1 << 32
_REGISTER = re.compile(r"^-?(UR|R)(\d+|Z)$")
_PREDICATE = re.compile(r"^!?U?P(\d|T)$")
_PART = re.compile(r"(?:UR|R)(?:\d+|Z)|-?0x[0-9a-f]+")
#: registers that an instruction writes from the one that it names on, where no list says more than one
_WIDTHS = {"64": 2, "128": 4, "WIDE": 2, "x2": 2, "x4": 4, "x8": 8, "x16": 16, "x32": 32, "x64": 64, "x128": 128}
_WRITES_NOTHING = ("ST", "RED", "BRA", "BAR", "SYNCS", "UTC", "UTM", "UBLK", "FENCE", "EXIT", "NOP", "BSSY", "BSYNC")


@dataclass(frozen=True)
class Value:
    """A sum: a whole number of 32 bits, and so many times each name."""

    number: int = 0
    names: tuple[tuple[Any, int], ...] = ()

    @property
    def known(self) -> int | None:
        """The number, where it is all."""
        return None if self.names else self.number

    def __add__(self, other: Value) -> Value:
        total = dict(self.names)
        for name, times in other.names:
            total[name] = (total.get(name, 0) + times) % _WORD
        kept = sorted(((name, times) for name, times in total.items() if times), key=repr)
        return Value((self.number + other.number) % _WORD, tuple(kept))

    def times(self, factor: int) -> Value:
        """So many of it."""
        names = tuple((name, times * factor % _WORD) for name, times in self.names if times * factor % _WORD)
        return Value(self.number * factor % _WORD, names)


def named(*name: Any) -> Value:
    """A value that nothing is known of but what tells it from others."""
    return Value(0, ((name, 1),))


_SAME = ("S2UR", "LDCU", "LDC")  # of all lanes of a warp
_LANES = 31


def same_in_warp(value: Value) -> bool:
    """Whether all lanes of a warp have the same, as far as its names say."""
    return all(_same(name) for name, _ in value.names)


def _same(name: Any) -> bool:
    if name[0] == "logical":
        values, table = name[1], name[2]
        cut = [value.known for value in values if value.known is not None]
        masked = table == _AND and any(number & _LANES == 0 for number in cut[:1])
        return masked or all(same_in_warp(value) for value in values)
    return name[0] in _SAME


_AND = 0xC0  # of the first two operands, as a table of truth
State = dict[str, Value]


def _read(state: Mapping[str, Value], operand: str) -> Value:
    operand = operand.strip().removesuffix(".reuse")
    if found := _REGISTER.match(operand):
        register = found[1] + found[2]
        value = Value() if found[2] == "Z" else state.get(register) or named("before", register)
        return value.times(_WORD - 1) if operand.startswith("-") else value
    try:
        return Value(int(operand, 0) % _WORD)
    except ValueError:
        return named("text", operand)


def address(state: Mapping[str, Value], operand: str) -> Value:
    """What "R4+UR17+0x10000" adds up to."""
    total = Value()
    for part in _PART.findall(operand):
        total = total + _read(state, part)
    return total


def _logical(values: Sequence[Value], table: int) -> Value:
    """Three operands' bits through a table of truth."""
    known = [value.known for value in values]
    a, b, c = known
    if a is not None and b is not None and c is not None:
        chosen = 0
        for row in range(8):
            if table >> row & 1:
                chosen |= (a if row & 4 else ~a) & (b if row & 2 else ~b) & (c if row & 1 else ~c)
        return Value(chosen % _WORD)
    return named("logical", tuple(values), table)


def _integer(value: Value) -> int:
    return -1 if value.known is None else value.known


def _computed(name: str, modifiers: Sequence[str], sources: Sequence[Value]) -> Value | None:
    """The result of the kinds that are followed; None of others."""
    plain = not any(each in ("X", "64", "WIDE", "HI") for each in modifiers)
    if name in ("UMOV", "MOV", "R2UR") and sources:
        return sources[0]
    if name == "IMAD" and {"MOV", "U32"} & set(modifiers) and plain and len(sources) == 3:
        return sources[2]
    if name in ("UIADD3", "IADD3", "VIADD", "UVIADD", "IADD") and plain:
        total = Value()
        for each in sources:
            total = total + each
        return total
    if name in ("ULOP3", "LOP3") and len(sources) >= 4:
        return _logical(sources[:3], _integer(sources[3]) & 0xFF)
    if name in ("ULEA", "LEA") and plain and len(sources) == 3 and 0 <= _integer(sources[2]) < 32:
        return sources[0].times(1 << _integer(sources[2])) + sources[1]
    if name in ("USHF", "SHF") and "L" in modifiers and plain and 0 <= _integer(sources[1]) < 32:
        return sources[0].times(1 << _integer(sources[1]))
    if name in ("UIMAD", "IMAD") and plain and len(sources) == 3 and _integer(sources[1]) >= 0:
        return sources[0].times(_integer(sources[1])) + sources[2]
    return None


def _written(instruction: Instruction, first: str) -> list[str]:
    kind, number = first.rstrip("0123456789"), int(first.lstrip("UR"))
    width = max([1, *(_WIDTHS.get(each, 1) for each in instruction.modifiers)])
    return [f"{kind}{number + i}" for i in range(width)]


def step(state: State, instruction: Instruction, time: Any = 0) -> None:
    """Let an instruction change what registers hold; ``time`` tells apart what it reads from memory again and again."""
    if instruction.name.startswith(_WRITES_NOTHING):
        return
    operands = [each.strip() for each in instruction.operands.split(",")]
    while operands and _PREDICATE.match(operands[0]):
        operands.pop(0)
    found = _REGISTER.match(operands[0]) if operands else None
    if not found or found[2] == "Z":
        return
    first = found[1] + found[2]
    places = _written(instruction, first)
    sources = [_read(state, each) for each in operands[1:] if not _PREDICATE.match(each)]
    value = _computed(instruction.name, instruction.modifiers, sources) if len(places) == 1 else None
    if value is None and instruction.name in ("S2UR", "S2R", "LDCU", "LDC"):
        value = named(instruction.name, instruction.operands.partition(",")[2])
        values = [value, *(named(value, i) for i in range(1, len(places)))]
    elif value is None:
        values = [named(instruction.address, time, i) for i in range(len(places))]
    else:
        values = [value]
    for place, each in zip(places, values, strict=True):
        state[place] = named("either", instruction.address, time) if instruction.guard else each


class Registers:
    """What registers hold at the begin of each block of a kernel, whichever way led there."""

    def __init__(self, kernel: Kernel) -> None:
        self.blocks = blocks(kernel)
        self._before: dict[int, list[int]] = {each.number: [] for each in self.blocks}
        for block in self.blocks:
            for other in block.follows:
                self._before[other].append(block.number)
        self._after: dict[int, State] = {}
        self._different: set[tuple[int, str]] = set()
        changed = True
        while changed:
            changed = False
            for block in self.blocks:
                state = self._run(block, self._met(block.number, self._before[block.number]))
                if self._after.get(block.number) != state:
                    self._after[block.number], changed = state, True

    def _run(self, block: Block, state: State) -> State:
        for each in block.instructions:
            step(state, each)
        return state

    def _met(self, number: int, before: Iterable[int]) -> State:
        """What is the same after all blocks that lead here; the rest has a name of the place."""
        states = [self._after[each] for each in before if each in self._after]
        if not states:
            return {}
        met: State = {}
        for register in {name for state in states for name in state}:
            held = {state.get(register) or named("before", register) for state in states}
            if len(held) > 1:
                self._different.add((number, register))
            different = (number, register) in self._different
            met[register] = named("at", number, register) if different else held.pop()
        return met

    def entering(self, head: int, body: Iterable[int]) -> State:
        """What registers hold where a loop begins for the first time."""
        inside = set(body)
        states = [self._after[each] for each in self._before[head] if each not in inside and each in self._after]
        if len(states) != 1:
            return self._met(head, [each for each in self._before[head] if each not in inside])
        return dict(states[0])

    def at(self, block: Block, instruction: Instruction) -> State:
        """What they hold before an instruction of a block."""
        state = self._met(block.number, self._before[block.number])
        for each in block.instructions:
            if each.address == instruction.address:
                break
            step(state, each)
        return state
