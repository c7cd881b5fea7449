# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""What the loop model says of kernels: each loop's cycles, what bounds it, and where its warps wait."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from weft.compiler import ptxas
from weft.compiler.entries import only, tensor_columns
from weft.errors import Error
from weft.targets import Gpu, occupancy, target_named

from .flow import Loop, loops
from .listing import Kernel, parse
from .machine import Steady, steady
from .opcodes import Product, product_of
from .rates import Rates, rates_of, working
from .tensor import barriers, products, read_once

#: a unit that is busy that much of the time bounds a loop; else latencies do
_BOUND = 0.9
#: iterations before those that are measured, and those
_WARM, _MEASURED = 4, 8


@dataclass(frozen=True)
class Line:
    """An instruction of a loop, and the cycles of an iteration that a warp waits before it, by reason."""

    address: int
    text: str
    place: str
    waits: Mapping[str, float]

    @property
    def cycles(self) -> float:
        """All of them."""
        return sum(self.waits.values())


@dataclass(frozen=True)
class LoopCycles:
    """A loop in its steady state. Cycles are of one iteration; busy is of the time."""

    first: int
    inner: bool
    instructions: int
    matrix_instructions: int
    macs: Mapping[str, int]
    """multiply-adds of an iteration of a whole block, by type of the factors"""
    cycles: float
    alone: float
    """where a multiprocessor holds one block alone"""
    matrix_cycles: float
    """what the matrix units alone take"""
    apart: float
    """cycles where warps begin an equal share of an iteration apart, not together: of sums in tensor memory, for which
    warps wait so long that what they began with stays"""
    tensor: bool
    """whether sums are in tensor memory: what waits for them is timed, by their own mbarriers"""
    busy: Mapping[str, float]
    lines: tuple[Line, ...]

    @property
    def limit(self) -> str:
        """The unit that is busy nearly all of the time, or "latency"."""
        name = max(self.busy, key=lambda each: self.busy[each])
        return name if self.busy[name] >= _BOUND else "latency"

    @property
    def waits(self) -> dict[str, float]:
        """Cycles that a warp waits, by reason, most first."""
        total: dict[str, float] = {}
        for line in self.lines:
            for reason, cycles in line.waits.items():
                total[reason] = total.get(reason, 0.0) + cycles
        return dict(sorted(total.items(), key=lambda item: -item[1]))


@dataclass(frozen=True)
class KernelCycles:
    """The loops of a kernel on one GPU."""

    name: str
    gpu: str
    warps: int
    """of a block"""
    running: int
    """of those the warps that the loops are timed with: without a role that gave its registers away"""
    resident: int
    """blocks on a multiprocessor at once"""
    instructions: int
    loops: tuple[LoopCycles, ...]

    @property
    def main(self) -> LoopCycles | None:
        """The loop with the most matrix instructions, the shortest of those: masks lengthen the ones beside it. None
        where no loop has any."""
        inner = [each for each in self.loops if each.inner]
        return _main(inner, lambda each: (each.matrix_instructions, each.instructions))


_AnyLoop = TypeVar("_AnyLoop", Loop, LoopCycles)


def _main(inner: Sequence[_AnyLoop], counts: Callable[[_AnyLoop], tuple[int, int]]) -> _AnyLoop | None:
    """The one with the most matrix instructions, the shortest of those; ``counts`` gives these and all of a loop's."""
    found = [each for each in inner if counts(each)[0]]
    return min(found, key=lambda each: (-counts(each)[0], counts(each)[1]), default=None)


def of_ptx(
    ptx: str, target: str, gpu: Gpu, kernels: Sequence[Mapping[str, Any]], main_only: bool = False
) -> list[KernelCycles]:
    """The loops of kernels of PTX, each described by "entry", "num_warps" and "shared_bytes", or their main loops
    alone. Raises weft.Error where ptxas or nvdisasm is missing, for PTX that ptxas refuses, and for targets that the
    model does not know."""
    if not kernels:
        return []
    rates = rates_of(gpu)  # before tools are looked for: the plainer reason
    missing = [tool for tool in ("ptxas", "nvdisasm") if ptxas.find_tool(tool) is None]
    if missing:
        raise Error(
            f"expected {' and '.join(missing)} on PATH, in CUDA_HOME or of an installed Triton, for the loop model "
            "reads machine code, but found none: install one, such as by pip install triton"
        )
    names = [each["entry"] for each in kernels]
    listed = parse(ptxas.control_codes(only(ptx, names), target))
    found = []
    for each in kernels:
        entry = each["entry"]
        if entry not in listed:
            raise Error(f"expected the kernel '{entry}' in the machine code, but got {', '.join(sorted(listed))}")
        registers = (ptxas.figures(ptx, target, names) or {})[entry].registers
        columns = tensor_columns(ptx, entry)
        described = target_named(gpu.target)
        resident = occupancy(registers, each["num_warps"], each["shared_bytes"], described, columns)
        if resident == 0:
            raise Error(f"expected a multiprocessor of {gpu.name} to hold a block of '{entry}', but it holds none")
        found.append(of_kernel(listed[entry], rates, each["num_warps"], resident, main_only=main_only))
    return found


def of_kernel(
    kernel: Kernel, rates: Rates, warps: int, resident: int, running: int | None = None, main_only: bool = False
) -> KernelCycles:
    """The loops of one kernel, or its main loop, with ``resident`` blocks of so many warps on a multiprocessor."""
    running = running or _running(kernel, warps)
    per_scheduler = max(1, -(-running // rates.schedulers))
    # blocks of fewer warps than there are schedulers share them
    blocks = max(1, -(-resident * running // (per_scheduler * rates.schedulers)))
    found = loops(kernel)
    if main_only:
        main = _main([loop for loop in found if loop.inner], lambda loop: (loop.matrix + loop.tensor, loop.count))
        found = () if main is None else (main,)
    known = products(kernel)
    timed = [_timed(kernel, loop, rates, known, per_scheduler, blocks, running) for loop in found]
    name = rates.gpu.name
    return KernelCycles(kernel.name, name, warps, running, resident, len(kernel.instructions), tuple(timed))


def _running(kernel: Kernel, warps: int) -> int:
    """Warps of the loops with products: all, but those of the last warpgroup where it gives its registers to others, or
    where the kernel begins by sending its threads another way."""
    gives = any(each.name == "USETMAXREG" and "DEALLOC" in each.modifiers for each in kernel.instructions)
    return warps - 4 if warps > 4 and (gives or _sends_apart(kernel, 32 * (warps - 4))) else warps


def _sends_apart(kernel: Kernel, first: int) -> bool:
    """Whether the code before the first branch compares the thread's number with that."""
    numbers: set[str] = set()
    for each in kernel.instructions:
        if each.name == "BRA":
            return False
        operands = [operand.strip() for operand in each.operands.split(",")]
        if each.name == "S2R" and operands[-1] == "SR_TID.X":
            numbers.add(operands[0])
        elif each.name == "ISETP" and numbers & set(operands) and f"{first:#x}" in operands:
            return True
    return False


def _timed(
    kernel: Kernel, loop: Loop, rates: Rates, known: Mapping[int, Product], warps: int, blocks: int, running: int
) -> LoopCycles:
    ops = rates.ops(loop.path, known, read_once(kernel, loop) if loop.tensor else ())
    # until as many products are under way as can be
    warm = _WARM + (-(-rates.queued // loop.tensor) if loop.tensor else 0)
    told = barriers(kernel, loop, working(loop.path), warm + 2 * _MEASURED) if loop.tensor else None
    measured = 2 * _MEASURED if loop.tensor else _MEASURED
    found: Steady = steady(rates, ops, warps, blocks, warm, measured, told)
    waits: dict[int, dict[str, float]] = {}
    for (address, reason), cycles in found.stalls.cycles.items():
        waits.setdefault(address, {})[reason] = cycles
    macs: dict[str, int] = {}
    for each in loop.path:
        if product := known.get(each.address) or product_of(each):
            times = running // 4 if product.warpgroup else running
            macs[product.element] = macs.get(product.element, 0) + product.operations // 2 * times
    busiest = blocks > 1 and bool(loop.matrix or loop.tensor)
    apart = found.cycles
    if loop.tensor and warps * blocks > 1:
        apart = steady(rates, ops, warps, blocks, warm, measured, told, found.cycles / (warps * blocks)).cycles
    return LoopCycles(
        first=loop.first,
        inner=loop.inner,
        instructions=sum(each.name != "NOP" for each in loop.path),
        matrix_instructions=loop.matrix + loop.tensor,
        macs=macs,
        cycles=found.cycles,
        alone=steady(rates, ops, warps, 1, warm, measured, told).cycles if busiest else found.cycles,
        matrix_cycles=found.matrix,
        apart=apart,
        tensor=loop.tensor > 0,
        busy={name: cycles / found.cycles for name, cycles in found.busy.items()},
        lines=tuple(Line(each.address, each.text, each.place, waits.get(each.address, {})) for each in loop.path),
    )
