# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Instructions as the machine model sees them: the unit, for how long, and when results are there, on one scheduler."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from weft.errors import Error
from weft.targets import Gpu, target_named

from .listing import Instruction
from .opcodes import Product, pipe_of, product_of, words_of
from .tensor import is_tensor_product, tells, waits

#: lanes of tensor memory
TENSOR_ROWS = 128
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
    tells: bool = False
    """an mbarrier is told when the products before it are done"""
    waits: bool = False
    """tries an mbarrier"""
    shared: float = 0.0
    """cycles of shared memory that a product takes beside its unit: its sums are in tensor memory"""
    ends_stores: bool = False
    """its write barrier is released when stores to tensor memory before it are done"""


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
    half_operations: int = 0
    """of products of 16 bits, a cycle of one multiprocessor; 0: by what the data sheet gives for a second"""
    queued: int = 1
    """products whose sums are in tensor memory that may be under way"""
    least: int = 0
    """cycles of one such product"""

    def op(self, instruction: Instruction, product: Product | None = None, once: bool = False) -> Op:
        """What an instruction does to the machine; ``product``, what it makes where its own text does not say it;
        ``once``, whether all lanes read the same place."""
        pipe, name = pipe_of(instruction.name), instruction.name
        pipe = pipe if pipe in self.lanes or pipe.startswith("tensor") else "float32"  # which multiplies integers too
        if pipe not in self.lanes or (is_tensor_product(name) and product is None):
            raise Error(
                f"expected instructions that the loop model knows on {self.gpu.name}, but got '{instruction.text}'"
            )
        product = product or product_of(instruction)
        if product:
            commits = "gsb0" in instruction.operands
            latency = self.group if product.warpgroup else self.latency["matrix"]
            shared = product.shared_bytes / (4 * self.lanes["shared"]) if product.tensor else 0.0
            return Op(instruction, "matrix", self.product_cycles(product), latency, product, commits, shared=shared)
        busy = (1 if once else words_of(instruction)) * self.warp_size * self.schedulers / self.lanes[pipe]
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
            tells=tells(instruction),
            waits=waits(instruction),
            ends_stores=name == "FENCE" and "T" in instruction.modifiers,
        )

    def operations(self, element: str) -> float:
        """Multiplies and adds of matrix instructions a cycle of one multiprocessor: a multiple of 32, as data sheets
        round what they give for a second."""
        gpu = self.gpu
        if self.half_operations:
            return self.half_operations * gpu.matrix.get(element, gpu.matrix["f16"]) / gpu.matrix["f16"]
        return max(1, round(gpu.matrix.get(element, gpu.matrix["f16"]) / (gpu.multiprocessors * gpu.clock * 32))) * 32

    def product_cycles(self, product: Product) -> float:
        """Cycles that a matrix instruction keeps a scheduler's matrix unit; where sums are in tensor memory, if shared
        memory keeps up."""
        rate = self.operations(product.element)
        if product.tensor:  # fewer rows than lanes of tensor memory leave units idle
            return max(product.operations * TENSOR_ROWS / max(product.m, 1) / rate, self.least)
        if product.warpgroup:
            shared = product.shared_bytes / (4 * self.lanes["shared"])
            return max(product.operations / rate, shared)
        return product.operations * self.schedulers / (rate * self.warp_share)

    def ops(
        self,
        instructions: Iterable[Instruction],
        products: Mapping[int, Product] | None = None,
        once: Collection[int] = (),
    ) -> tuple[Op, ...]:
        """What instructions do; ``products`` has those by address whose text does not say them, ``once`` the addresses
        of those with which all lanes read the same place."""
        known = products or {}
        return tuple(self.op(each, known.get(each.address), each.address in once) for each in working(instructions))


def working(instructions: Iterable[Instruction]) -> tuple[Instruction, ...]:
    """The instructions that do something."""
    return tuple(each for each in instructions if each.name != "NOP" or each.control.stall > 0)


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
        int(latencies["half_operations"]),
        int(latencies["queued_products"]),
        int(latencies["least_product"]),
    )
