# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Candidates on a GPU: results compared there, and times taken there, through the runtime's driver interface."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median
from typing import TYPE_CHECKING, Any

import numpy as np

from weft import native
from weft.programs.simulated import Run
from weft.runtime.exchange import DeviceArray
from weft.runtime.library import Library
from weft.runtime.program import Program

from .judging import load_inputs, wrong

if TYPE_CHECKING:
    from .evaluate import Job

_FLUSHED_BYTES = 256 << 20  # more than the L2 cache of any GPU there is
_ROUNDS = 20


class GpuTimer:
    """Times compiled candidates on one device: each alone, one after another, the L2 cache flushed before each run. On
    the simulator, where times mean nothing, it does the same, for tests."""

    def __init__(self, device: Any) -> None:
        self.device = device
        self.name: str = device.properties["model"]
        self.policy = f"{_ROUNDS} runs between events, the L2 cache flushed before each"
        self._timer = native.load("_runtime").Timer(device, _FLUSHED_BYTES if not device.simulated else 256)

    def measure(self, record: Mapping[str, Any], job: Job) -> dict[str, Any]:
        """The record of a candidate that compiled ("ptx", "info"), with its "seconds"; see ``judged``."""
        library = Library.from_compiled(record["info"], record["ptx"], job.target)
        return {**self.judged(library, job.name, job.cases, job.checked, job.counted), "code": record["code"]}

    def judged(
        self, library: Library, name: str, cases: str, checked: Sequence[str], counted: Sequence[str]
    ) -> dict[str, Any]:
        """The record of a program of a library: refused where results of the functions ``checked`` are not those of
        the cases; else "samples", the seconds of the functions ``counted`` together in each round, and their median,
        "seconds"."""

        def run(name: str, inputs: list[np.ndarray]) -> Run:
            program = library.program(name)
            outputs = program.run(inputs, device=self.device.name, poison=True)
            return Run({each["name"]: array for each, array in zip(program.outputs, outputs, strict=True)})

        for part in checked:
            if reason := wrong(run, name, cases, part):
                return {"status": "refused", "reason": reason, "launches": []}
        rounds = [self._time(library.program(name + part), load_inputs(cases, part)) for part in counted]
        samples = [sum(each) for each in zip(*rounds, strict=True)]
        seconds = median(samples)
        return {"status": "right", "reason": "", "launches": [], "seconds": seconds, "samples": samples}

    def _time(self, program: Program, inputs: list[np.ndarray]) -> list[float]:
        """The seconds of each round of a program, on arrays that are on the device already."""
        made = program.run(inputs, device=self.device.name)  # loads its kernels
        arrays, outputs = (
            [self._placed(array, each["type"]) for array, each in zip(given, described, strict=True)]
            for given, described in ((inputs, program.inputs), (made, program.outputs))
        )
        program.run(arrays, outputs, device=self.device.name)  # allocates its memory
        return [
            self._timer.measure(lambda: program.run(arrays, outputs, device=self.device.name), 0) / 1000
            for _ in range(_ROUNDS)
        ]

    def _placed(self, array: np.ndarray, kind: str) -> Any:
        """An array on the device; on the simulator itself."""
        if self.device.simulated:
            return array
        buffer = native.load("_runtime").Buffer(self.device, max(array.nbytes, 1))
        buffer.write(np.ascontiguousarray(array))
        return DeviceArray.over(buffer, buffer.address, array.shape, kind, int(self.device.name.partition(":")[2] or 0))
