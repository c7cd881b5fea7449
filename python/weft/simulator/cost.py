# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""The cost model: a launch's time on a GPU, from what the simulator counted and what ptxas reported.

docs/Tuning.md has the formula with its reasons. It ranks schedules of one kernel; it is no prediction of times.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil
from typing import Any

from weft.simulator.traffic import Traffic
from weft.targets import Gpu, Target, gpu_named, occupancy, target_named, targets

_LATENCY_CYCLES = 500  # of a load from device memory; A100: microbenchmarks give 470 to 570
LAUNCH_SECONDS = 2.5e-6


@dataclass(frozen=True)
class Figures:
    """What one launch costs, counted or reported. Counters are those of the whole grid."""

    kernel: str
    blocks: int
    warps: int
    stages: int
    shared_bytes: int
    registers: int | None
    """of a thread; None where ptxas was not there to say"""
    spill_bytes: int
    """of a thread, stores and loads in the code"""
    code: int
    """machine instructions in the code (PTX instructions, where ptxas was not there)"""
    warp_instructions: float
    special: float
    """warp instructions of the special-function units"""
    mma_macs: Mapping[str, float]
    """by type of the factors"""
    sectors: float
    bytes: float
    """of memory that it reads and that it writes, each once"""
    shared_wavefronts: float
    barriers: float
    """waits of a warp at a barrier, in blocks of one warp at one of its lanes"""
    added: float = 0.0
    """of the sectors, those that atomics and bulk reductions change"""
    held: float = 0.0
    """bytes of memory that blocks share, which the L2 cache serves as far as it holds them"""
    columns: int = 0
    """of tensor memory that a block takes"""
    loop: Mapping[str, Any] | None = None
    """of its main loop what weft.cycles.judge knows; None where the loop model was not asked"""


@dataclass(frozen=True)
class Round:
    """Blocks that a multiprocessor runs at once, ``count`` times, and the seconds of one time."""

    present: int
    count: int
    latency: float
    """until the first loads have arrived"""
    busy: float
    """of its resources, as far as they do not work side by side"""
    seconds: float
    """all of it"""

    @property
    def waits(self) -> float:
        """For loads of later steps."""
        return max(0.0, self.seconds - self.latency - self.busy)


@dataclass(frozen=True)
class Estimate:
    """Seconds of a launch, and what they are made of."""

    seconds: float
    resources: dict[str, float]
    """seconds that each resource is busy"""
    resident: int
    """blocks on a multiprocessor at once; 0 where none fits"""
    filled: float = 1.0
    """how much of the multiprocessors' time the blocks fill, for each has a whole number of them"""
    rounds: tuple[Round, ...] = ()
    """of the fullest multiprocessor, in order"""

    @property
    def limit(self) -> str:
        """The resource that is busy longest."""
        return max(self.resources, key=lambda name: self.resources[name])


def gpu_of(target: str, name: str | None = None) -> Gpu:
    """The GPU whose rates stand for a target: the one named, or the first of that target."""
    known = targets().get(target)
    return gpu_named(name) if name or not known else next(iter(known.gpus.values()))


def resident_blocks(figures: Figures, target: Target) -> int:
    """How many blocks of a kernel a multiprocessor holds at once."""
    registers = figures.registers or target.registers_per_thread
    return occupancy(registers, figures.warps, figures.shared_bytes, target, figures.columns)


def estimate(figures: Figures, target: Target, gpu: Gpu) -> Estimate:
    """The time of one launch."""
    resident = resident_blocks(figures, target)
    resources = _resources(figures, gpu)
    if resident == 0 or figures.blocks == 0:
        return Estimate(float("inf") if figures.blocks else 0.0, resources, resident)
    # what one block costs one multiprocessor, which runs a whole number of them, as many at once as it holds
    share = gpu.multiprocessors / figures.blocks
    longest, whole = share * max(resources.values()), share * sum(resources.values())
    each = ceil(figures.blocks / gpu.multiprocessors)
    full, rest = divmod(each, resident)
    latency = _LATENCY_CYCLES / (gpu.clock * 1e9)
    steps = figures.barriers / (figures.blocks * figures.warps)

    def round_of(present: int, count: int) -> Round:
        # warps that a scheduler can choose from: with many, resources work side by side; with one, one after another
        choice = max(1.0, present * figures.warps / target.schedulers)
        busy = present * (longest + (whole - longest) / choice)
        if figures.stages == 1:
            return Round(present, count, latency, busy, latency + busy + steps * latency)
        # stages - 1 tiles are on their way while one is worked on
        return Round(present, count, latency, busy, latency + max(busy, steps * latency / (figures.stages - 1)))

    rounds = tuple(round_of(present, count) for present, count in ((resident, full), (rest, 1)) if present and count)
    seconds = LAUNCH_SECONDS + sum(each.count * each.seconds for each in rounds)
    return Estimate(seconds, resources, resident, figures.blocks / (each * gpu.multiprocessors), rounds)


def _resources(figures: Figures, gpu: Gpu) -> dict[str, float]:
    """Seconds that each resource of the GPU is busy."""
    cycles = gpu.clock * 1e9
    target = target_named(gpu.target)
    # each instruction of the code runs that often on average, and so do those that spill
    executed = figures.warp_instructions / max(figures.code, 1)
    spills = figures.spill_bytes / 4 * executed
    traffic = Traffic(figures.sectors, figures.added, figures.bytes, figures.held)
    found = {
        "instructions": (figures.warp_instructions + spills) / (gpu.schedulers * cycles),
        "special functions": figures.special * target.warp_size / (target.special_lanes * gpu.multiprocessors * cycles),
        "shared memory": (figures.shared_wavefronts + spills) / (gpu.multiprocessors * cycles),
        "L2 cache": traffic.l2_seconds(gpu),
        "device memory": traffic.memory_seconds(gpu),
    }
    macs = sum(2 * count / (gpu.matrix.get(kind, gpu.matrix["f16"]) * 1e9) for kind, count in figures.mma_macs.items())
    # where the peak is that of products in tensor memory, instructions of warps reach a part of it
    by_warps = target.tensor_columns > 0 and figures.columns == 0
    return {**found, "matrix units": macs / (target.latencies["warp_mma_share"] if by_warps else 1)}


def figures_of(record: Mapping[str, Any]) -> Figures:
    """The figures of a launch as they were stored."""
    return Figures(**record)
