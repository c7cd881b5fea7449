# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Instructions as the machine model sees them: the unit, for how long, and when results are there, on one scheduler."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from weft.errors import Error
from weft.targets import Gpu, target_named

from .listing import Instruction
from .opcodes import Product, pipe_of, product_of, words_of

#: a barrier's number and threads; the number may be in a register
_BARRIER = re.compile(r"^(0x[0-9a-f]+|U?R\d+)(?:,\s*(0x[0-9a-f]+|U?R\d+))?")
_LEAST = re.compile(r"^(?:SB|gsb)(\d)(?:,\s*(0x[0-9a-f]+|\d+))?")


@dataclass(frozen=True)
class Barrier:
    """An arrival at a barrier of threads; ``number`` is None where a register has it, ``threads`` 0 for all of them."""

    number: int | None
    threads: int
    waits: bool


@dataclass(frozen=True)
class Op:
    """One instruction on one scheduler."""

    instruction: Instruction
    pipe: str
    busy: float
    """cycles that it keeps its unit"""
    latency: int
    """until what its write barrier tells of"""
    product: Product | None = None
    commits: bool = False
    """whether it ends a group of matrix instructions of a warpgroup"""
    keeps: tuple[str, int] | None = None
    """waits until of a scoreboard ("SB0") or of groups ("gsb0") at most so many are open"""
    barrier: Barrier | None = None
    copies: bool = False
    """an asynchronous copy to shared memory"""
    ends_copies: bool = False
    """its write barrier is released when copies before it are there"""


@dataclass(frozen=True)
class Rates:
    """Units and latencies of one GPU, for a scheduler."""

    gpu: Gpu
    warp_size: int
    schedulers: int
    lanes: dict[str, int]
    latency: dict[str, int]
    waiting: dict[str, int]
    l2: int
    memory: int
    group: int
    barrier: int
    warp_share: float

    def op(self, instruction: Instruction) -> Op:
        """What an instruction does to the machine."""
        pipe, name = pipe_of(instruction.name), instruction.name
        pipe = pipe if pipe in self.lanes else "float32"  # which multiplies integers where no unit does that alone
        product = product_of(instruction)
        if product:
            commits = "gsb0" in instruction.operands
            latency = self.group if product.warpgroup else self.latency["matrix"]
            return Op(instruction, "matrix", self.product_cycles(product), latency, product, commits)
        busy = words_of(instruction) * self.warp_size * self.schedulers / self.lanes[pipe]
        latency = self.latency[pipe] if name not in ("LDG", "LD", "ATOMG", "ATOM", "LDGSTS") else self.l2
        keeps = None
        if name == "DEPBAR" or (name == "WARPGROUP" and "DEPBAR" in instruction.modifiers):
            found = _LEAST.match(instruction.operands)
            where = "SB" if name == "DEPBAR" else "gsb"
            keeps = (where + found[1], int(found[2] or "0", 0)) if found else None
        return Op(
            instruction,
            pipe,
            busy,
            latency,
            keeps=keeps,
            barrier=_barrier(instruction),
            copies=name == "LDGSTS",
            ends_copies=name == "LDGDEPBAR" or (name == "SYNCS" and "ARRIVES" in instruction.modifiers),
        )

    def operations(self, element: str) -> float:
        """Multiplies and adds of matrix instructions a cycle of one multiprocessor: a multiple of 32, as data sheets
        round what they give for a second."""
        gpu = self.gpu
        return max(1, round(gpu.matrix.get(element, gpu.matrix["f16"]) / (gpu.multiprocessors * gpu.clock * 32))) * 32

    def product_cycles(self, product: Product) -> float:
        """Cycles that a matrix instruction keeps a scheduler's matrix unit."""
        rate = self.operations(product.element)
        if product.warpgroup:
            shared = product.shared_bytes / (4 * self.lanes["shared"])
            return max(product.operations / rate, shared)
        return product.operations * self.schedulers / (rate * self.warp_share)

    def ops(self, instructions: Iterable[Instruction]) -> tuple[Op, ...]:
        """The instructions that do something."""
        return tuple(self.op(each) for each in instructions if each.name != "NOP" or each.control.stall > 0)


def _barrier(instruction: Instruction) -> Barrier | None:
    if instruction.name != "BAR":
        return None
    found = _BARRIER.match(instruction.operands)
    if not found:
        return None
    number = int(found[1], 16) if found[1].startswith("0x") else None
    threads = int(found[2], 16) if found[2] and found[2].startswith("0x") else 0
    return Barrier(number, threads, "ARV" not in instruction.modifiers)


def rates_of(gpu: Gpu) -> Rates:
    """The rates of a GPU. Raises weft.Error for a target that the table has no units of."""
    target = target_named(gpu.target)
    if not target.pipes:
        raise Error(
            f"expected a target whose execution units the table has, for the loop model, but got '{gpu.target}'"
        )
    latencies = target.latencies
    return Rates(
        gpu,
        target.warp_size,
        target.schedulers,
        {each["name"]: each["lanes"] for each in target.pipes},
        {each["name"]: each["latency"] for each in target.pipes},
        {each["name"]: each["waiting"] for each in target.pipes},
        int(latencies["l2"]),
        int(latencies["memory"]),
        int(latencies["warpgroup_mma"]),
        int(latencies["barrier"]),
        latencies["warp_mma_share"],
    )
