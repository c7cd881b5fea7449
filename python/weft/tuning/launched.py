# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""The figures of one launch: what the simulator counted of it, and what ptxas says of its kernel."""

from __future__ import annotations

import re
from dataclasses import dataclass

import weft.simulator
from weft.compiler.ptxas import assemble
from weft.simulator.cost import Figures


@dataclass(frozen=True)
class Compiled:
    """What a launch's counters do not tell of its kernel."""

    name: str
    warps: int
    stages: int
    shared_bytes: int
    registers: int | None
    spill_bytes: int
    code: int


def compiled(ptx: str, target: str, name: str, warps: int, stages: int, shared_bytes: int) -> Compiled:
    """A kernel of PTX with what ptxas says of it, where it is there: None as registers where it is not."""
    resources = assemble(ptx, target, name)
    spills = resources.spill_store_bytes + resources.spill_load_bytes if resources else 0
    code = (resources.instruction_count if resources else None) or _instructions(ptx, name)
    registers = resources.registers if resources else None
    return Compiled(name, warps, stages, shared_bytes, registers, spills, code)


def _instructions(ptx: str, entry: str) -> int:
    body = ptx.partition(f".entry {entry}(")[2].partition("\n}")[0]
    return len(re.findall(r";\s*$", body, re.M))


def figures(kernel: Compiled, report: weft.simulator.Report, blocks: int, ran: int, bytes: int) -> Figures:
    """The figures of a launch of ``blocks`` blocks, of which ``ran`` were counted; ``bytes`` are its tensors'."""
    return report.figures(
        times=blocks / ran,
        kernel=kernel.name,
        blocks=blocks,
        warps=kernel.warps,
        stages=kernel.stages,
        shared_bytes=kernel.shared_bytes,
        registers=kernel.registers,
        spill_bytes=kernel.spill_bytes,
        code=kernel.code,
        bytes=bytes,
    )
