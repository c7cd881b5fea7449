# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""What PTX and machine code say of a kernel before it runs: its hottest loop, and loads that its loops wait for."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable
from dataclasses import dataclass

from weft.compiler.ptxas import assemble
from weft.compiler.sass import MATRIX
from weft.cycles.flow import Loop, loops_of
from weft.cycles.listing import Instruction
from weft.cycles.opcodes import product_of

from .compiled import Made

#: multiply-adds of an m16n8k16, for which instructions of a loop are counted, whatever its products are
MATRIX_MACS = 2048


@dataclass(frozen=True)
class Static:
    """Of a thread: registers and spilled bytes; of a warp: what the loop with most products takes for each m16n8k16."""

    registers: int
    spill_bytes: int
    per_product: float | None
    exposed_loads: int


def static(made: Made) -> Static:
    """Assemble and count."""
    resources = assemble(made.ptx, made.architecture)
    assert resources is not None, "ptxas was found"
    spilled = resources.spilled_bytes
    return Static(
        resources.registers,
        spilled,
        per_product(itertools.chain.from_iterable(loops_of(made.ptx, made.architecture).values())),
        exposed_loads(made.ptx),
    )


def per_product(loops: Iterable[Loop]) -> float | None:
    """Instructions of the loop with most products, the shortest of such, for each m16n8k16's worth of them."""
    whole = [[each for each in loop.whole if each.name != "NOP"] for loop in loops]
    found = [(macs, len(code)) for code in whole if (macs := sum(map(_macs, code)))]
    if not found:
        return None
    most = max(macs for macs, _ in found)
    return min(count for macs, count in found if macs == most) * MATRIX_MACS / most


def _macs(instruction: Instruction) -> int:
    """Multiply-adds that a matrix instruction makes for one warp: four share a warpgroup's."""
    if instruction.name not in MATRIX:
        return 0
    product = product_of(instruction)
    assert product is not None, f"expected a known shape of products, but got '{instruction.text}'"
    return product.m * product.n * product.k // (4 if product.warpgroup else 1)


_LABEL = re.compile(r"^\s*(\$\w+):")
_BRANCH = re.compile(r"\bbra(?:\.uni)?\s+(\$\w+)\s*;")
_REGISTER = re.compile(r"%[a-zA-Z]+\d+")
_MOVES = re.compile(r"^\s*(?:@!?%p\d+\s+)?mov\.")
_PRODUCT = re.compile(r"\bmma\.sync|\bwgmma\.mma")


def exposed_loads(ptx: str) -> int:
    """Loads from global memory to registers, in loops, whose values an instruction waits for in the same iteration with
    no product in between."""
    return len(exposed(ptx))


def exposed(ptx: str) -> list[str]:
    """The lines of those loads."""
    lines = [line.split("//")[0] for line in ptx.splitlines()]
    labels = {found[1]: i for i, line in enumerate(lines) if (found := _LABEL.match(line))}
    ends: dict[int, int] = {}
    for i, line in enumerate(lines):
        for target in _BRANCH.findall(line):
            if labels.get(target, i) < i:
                ends[labels[target]] = max(i, ends.get(labels[target], i))
    found = []
    for i, line in enumerate(lines):
        if not re.search(r"\bld\.global", line):
            continue
        around = [(start, end) for start, end in ends.items() if start < i <= end]
        if not around:
            continue
        start, end = max(start for start, _ in around), min(end for _, end in around)
        if _waits(line, _rest(lines, i, start, end, _entry(lines, labels, start, end))):
            found.append(line.strip())
    return found


def _entry(lines: list[str], labels: dict[str, int], start: int, end: int) -> int:
    """Where a loop's iterations begin: at its first line, or where a jump over that enters it."""
    entered = (labels.get(target, start) for line in lines[:start] for target in _BRANCH.findall(line))
    return max((label for label in entered if start < label <= end), default=start)


def _rest(lines: list[str], at: int, start: int, end: int, entry: int) -> list[str]:
    """The lines of an iteration from the one at a place on."""
    if at < entry:
        return lines[at + 1 : entry]
    return lines[at + 1 : end + 1] + lines[start:entry]


def _waits(load: str, rest: list[str]) -> bool:
    """Whether the value is used after the load and before a product; moves pass it on, out of the loop or round it."""
    following = set(_REGISTER.findall(load.split("[")[0].partition("ld.global")[2]))
    for line in rest:
        if _PRODUCT.search(line):
            return False
        used = set(_REGISTER.findall(line)) & following
        if not used:
            continue
        if _MOVES.match(line):
            following |= set(_REGISTER.findall(line))
            continue
        if re.search(r"\bld\.global", line) and used <= set(_REGISTER.findall(line.split("[")[0])):
            continue  # another load under a predicate to the same register
        return True
    return False
