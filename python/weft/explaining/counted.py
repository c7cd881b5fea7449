# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""A program's launches run on the simulator for what they count, and what that says of their time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import weft.simulator
from weft.explaining.lines import Place
from weft.programs.simulated import Launched, run_plan
from weft.simulator.cost import Estimate, estimate
from weft.targets import Gpu, target_named
from weft.tuning.cases import make_inputs

SAMPLED = 8  # blocks that are run of a launch


@dataclass(frozen=True)
class Counted:
    """One launch: its report, and its time by the cost model."""

    part: str
    """the function of the program: its name, NAME.forward or NAME.backward"""
    launched: Launched
    estimate: Estimate

    @property
    def counters(self) -> dict[str, int]:
        """Counts of the whole grid, by name."""
        total, times = self.launched.report.profile.total(), self.launched.scale
        found = {
            "warp instructions": total.warp_instructions,
            "multiply-adds of matrix units": total.mma_macs,
            "global sectors": total.global_sectors_read + total.global_sectors_written,
            "fewest sectors": total.global_sectors_ideal,
            "shared wavefronts": total.shared_wavefronts,
            "bank conflicts": total.shared_wavefronts - total.shared_wavefronts_ideal,
            "waits at barriers": total.barrier_waits,
        }
        return {name: round(count * times) for name, count in found.items()}


def count(ptx: str, info: Mapping[str, Any], sizes: Mapping[str, int], gpu: Gpu, seed: int) -> list[Counted]:
    """The launches of every function of a program at these sizes, on inputs made up from ``seed``. Raises ValueError
    for inputs whose numbers cannot be made up."""
    found = []
    for program in info["programs"]:
        inputs = make_inputs(program["inputs"], sizes, {}, np.random.default_rng(seed))
        # By one thread: blocks that take turns would count how long each waits for others.
        run = run_plan(ptx, info, program["name"], inputs, checks="none", sample=SAMPLED, counts_only=True, threads=1)
        for launched in run.launches:
            stages = next(each["num_stages"] for each in info["kernels"] if each["entry"] == launched.kernel)
            figures = launched.report.figures(stages=stages)
            found.append(Counted(program["name"], launched, estimate(figures, target_named(gpu.target), gpu)))
    return found


def count_kernel(
    ptx: str, info: Mapping[str, Any], grid: Sequence[int], arguments: Sequence[Any], gpu: Gpu
) -> list[Counted]:
    """The one launch of a kernel on these arguments. Raises SimulatorError where they do not fit it."""
    (kernel,) = info["kernels"]
    report = weft.simulator.launch(
        ptx,
        kernel["entry"],
        grid,
        32 * kernel["num_warps"],
        arguments,
        shared=kernel["shared_bytes"],
        checks="none",
        threads=1,
    )
    launched = Launched(kernel["entry"], report)
    figures = report.figures(stages=kernel["num_stages"])
    return [Counted("kernel", launched, estimate(figures, target_named(gpu.target), gpu))]


def instructions_of(counted: list[Counted]) -> dict[Place, int]:
    """Warp instructions by the source line that they come from, of all launches."""
    found: dict[Place, int] = {}
    for each in counted:
        for row in each.launched.report.profile.by_source():
            file, _, line = row.place.rpartition(":")
            if file and line.isdigit():
                place = Place(file, int(line))
                found[place] = found.get(place, 0) + round(row.total.warp_instructions * each.launched.scale)
    return found
