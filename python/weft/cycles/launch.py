# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""The time of a whole launch: blocks' cycles dealt to multiprocessors, memory's share, and what a clock makes of it."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass

from weft.simulator.cost import LAUNCH_SECONDS
from weft.targets import Gpu

from .report import KernelCycles, LoopCycles


@dataclass(frozen=True)
class Calibration:
    """What machine code does not say, fitted to published times by benchmarks/loop_model.py."""

    block: float
    """cycles of a block outside of its loops: its first loads, its results"""
    overlap: float
    """cycles lost of each in which, by chance, matrix and special units would both work: warps do not keep both busy at
    once as well as the model's, which all begin together and meet no delay"""
    power: float
    """of the boost clock, what is lost where the matrix units are always busy; it grows by the square of how busy"""


#: benchmarks/loop_model.py says how far times are off, by the points that it was not fitted to
FITTED = Calibration(block=5000, overlap=0.56, power=0.28)


def makespan(blocks: Sequence[float], slots: int) -> float:
    """Cycles until the last of the blocks has ended, each dealt in order to the slot that is free first."""
    if blocks and min(blocks) == max(blocks):
        return -(-len(blocks) // max(1, slots)) * blocks[0]
    free = [0.0] * max(1, min(slots, len(blocks)))
    for cycles in blocks:
        heapq.heapreplace(free, free[0] + cycles)
    return max(free)


def seconds(
    blocks: Sequence[float], resident: int, bytes: float, operations: float, rate: float, gpu: Gpu, fitted: Calibration
) -> float:
    """Seconds of a launch whose blocks take so many cycles, ``resident`` of them at once on a multiprocessor, that
    moves so many bytes to and from device memory at least, and whose products are so many operations, of which a
    multiprocessor makes ``rate`` a cycle at most."""
    if not blocks:
        return 0.0
    cycles = makespan(blocks, gpu.multiprocessors * resident)
    busy = min(1.0, operations / (rate * gpu.multiprocessors * cycles)) if cycles else 0.0
    computing = cycles / (gpu.clock * 1e9 * (1 - fitted.power * busy**2))
    return LAUNCH_SECONDS + max(computing, bytes / (gpu.memory_bandwidth * 1e9))


def loop_cycles(loop: LoopCycles, fitted: Calibration) -> float:
    """Cycles of an iteration, with what the model's warps hide too well: not where they wait for sums in tensor memory,
    for that is timed."""
    if loop.tensor:
        return loop.cycles
    return loop.cycles * (1 + fitted.overlap * loop.busy.get("special", 0.0) * loop.busy.get("matrix", 0.0))


def block_cycles(kernel: KernelCycles, masked: int, whole: int, fitted: Calibration) -> float:
    """Cycles of a block that walks so many steps that masks cut, and so many others."""
    main = kernel.main
    if main is None:
        return 0.0
    beside = [each for each in kernel.loops if each.inner and each.matrix_instructions == main.matrix_instructions]
    cut = max(loop_cycles(each, fitted) for each in beside)
    return fitted.block + masked * cut + whole * loop_cycles(main, fitted)
