# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""The loop model in the place of the cost model: a launch's time from its main loop's cycles and what was counted."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from math import ceil
from typing import Any

from weft.compiler.entries import fingerprints
from weft.simulator.cost import Estimate, Figures, estimate
from weft.targets import Gpu, Target

from .launch import FITTED, loop_cycles, seconds
from .rates import rates_of
from .report import KernelCycles, of_ptx

_MEASURED: dict[tuple[Any, ...], dict[str, Any] | None] = {}  # what has been timed in this process


def measured(ptx: str, target: str, gpu: Gpu, kernels: Iterable[Mapping[str, Any]]) -> dict[str, dict[str, Any] | None]:
    """Of each kernel, by entry, what ``judged`` needs of its main loop: cycles of an iteration, instructions of a warp
    and multiply-adds of a block by type; None of kernels without matrix instructions in loops. A kernel that this
    process has met in another module is not timed again. Raises weft.Error as ``of_ptx`` does."""
    kernels = list(kernels)
    prints = fingerprints(ptx, [each["entry"] for each in kernels])
    keys = {
        each["entry"]: (prints[each["entry"]], target, gpu.name, each["num_warps"], each["shared_bytes"])
        for each in kernels
    }
    missing = [each for each in kernels if keys[each["entry"]] not in _MEASURED]
    for found in of_ptx(ptx, target, gpu, missing, main_only=True):
        _MEASURED[keys[found.name]] = _facts(found)
    return {entry: _MEASURED[key] for entry, key in keys.items()}


def _facts(kernel: KernelCycles) -> dict[str, Any] | None:
    main = kernel.main
    if main is None:
        return None
    return {
        "cycles": loop_cycles(main, FITTED),
        "alone": loop_cycles(main, FITTED) * main.alone / main.cycles,
        "instructions": main.instructions,
        "macs": dict(main.macs),
    }


def judged(figures: Figures, target: Target, gpu: Gpu) -> Estimate:
    """The time of a launch. A block runs as many iterations as its multiply-adds say; what else its warps issue takes
    as long an instruction as in the loop; unequal blocks count as equal ones. Of kernels without a main loop, and where
    none was timed, the cost model says it."""
    base = estimate(figures, target, gpu)
    loop = figures.loop
    if not loop or not base.resident or not figures.blocks:
        return base
    iterations = sum(figures.mma_macs.values()) / figures.blocks / sum(loop["macs"].values())
    inside = iterations * loop["instructions"]
    outside = max(0.0, figures.warp_instructions / (figures.blocks * figures.warps) - inside)
    # fewer blocks at once than the loop was timed with: as far between it and a block alone
    present = min(base.resident, ceil(figures.blocks / gpu.multiprocessors))
    share = (present - 1) / (base.resident - 1) if base.resident > 1 else 1.0
    iteration = loop["alone"] + share * (loop["cycles"] - loop["alone"])
    cycles = FITTED.block + iteration * (iterations + outside / loop["instructions"])
    rate = max(rates_of(gpu).operations(element) for element in loop["macs"])
    operations = 2 * sum(figures.mma_macs.values())
    spent = seconds([cycles] * figures.blocks, present, figures.bytes, operations, rate, gpu, FITTED)
    busiest = max(share for name, share in base.resources.items() if name != "instructions")
    return dataclasses.replace(base, seconds=max(spent, busiest), rounds=())
