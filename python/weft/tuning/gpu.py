# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Candidates on a GPU: results compared there, and times taken there, through the runtime's driver interface."""

from __future__ import annotations

from collections.abc import Mapping
from statistics import median
from typing import Any

import numpy as np

from weft import native
from weft.programs.simulated import Run
from weft.runtime.library import Library

from .evaluate import Job, load_inputs, wrong

_FLUSHED_BYTES = 256 << 20  # more than the L2 cache of any GPU there is
_ROUNDS = 20


class GpuTimer:
    """Times compiled candidates on one device: each alone, one after another, the L2 cache flushed before each run. On
    the simulator, where times mean nothing, it does the same, for tests."""

    def __init__(self, device: Any) -> None:
        self.device = device
        self._where = "cpu" if device.simulated else device.name
        self.name: str = device.properties["model"]
        self._timer = native.load("_runtime").Timer(device, _FLUSHED_BYTES if not device.simulated else 256)

    def measure(self, record: Mapping[str, Any], job: Job) -> dict[str, Any]:
        """The record of a candidate that compiled ("ptx", "info"), with its "seconds": medians, summed over the
        functions. Refused where its results are wrong."""
        library = Library.from_compiled(record["info"], record["ptx"], job.target)

        def run(name: str, inputs: list[np.ndarray]) -> Run:
            program = library.program(name)
            outputs = program.run(inputs, device=self.device.name, poison=True)
            return Run({each["name"]: array for each, array in zip(program.outputs, outputs, strict=True)})

        for part in job.checked:
            if reason := wrong(run, job, part):
                return {"status": "refused", "reason": reason, "launches": []}
        seconds = sum(
            self._time(library.program(job.name + part), load_inputs(job.cases, part)) for part in job.counted
        )
        return {"status": "right", "reason": "", "launches": [], "code": record["code"], "seconds": seconds}

    def _time(self, program: Any, inputs: list[np.ndarray]) -> float:
        """The median of a program's runs on arrays that are on the device already."""
        import torch

        tensors = [torch.from_numpy(array).to(self._where) for array in inputs]
        bf16 = [each["type"] == "bf16" for each in program.inputs]
        tensors = [t.view(torch.bfloat16) if narrow else t for t, narrow in zip(tensors, bf16, strict=True)]
        outputs = program.run(tensors, device=self.device.name)  # allocates its memory, and warms its kernels
        stream = 0 if self.device.simulated else torch.cuda.current_stream(self._where).cuda_stream
        times = [
            self._timer.measure(lambda: program.run(tensors, outputs, device=self.device.name), stream)
            for _ in range(_ROUNDS)
        ]
        return median(times) / 1000
