# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""A launch of the corpus on the simulator and on the GPU."""

from __future__ import annotations

import contextlib
import ctypes
import os
import pathlib
import sys
import tempfile
from collections.abc import Iterator
from typing import Any

import numpy as np

from weft import simulator
from weft.first_gpu.cases import LeftOut
from weft.first_gpu.exactness import body_of
from weft.native import load
from weft.runtime.devices import open_device

_SCALARS = {
    "int32": "i32", "int64": "i64", "uint32": "u32", "uint64": "u64", "float32": "fp32", "float64": "fp64",
    "int16": "i16", "int8": "i8",
}  # fmt: skip


def on_simulator(ptx: str, entry: str, launch: Any) -> list[str]:
    """Run a launch, whose arrays change; gives the lines that it printed."""
    report = simulator.launch(ptx, entry, launch.grid, launch.block, launch.args, shared=launch.shared, checks="none")
    return sorted(report.output.splitlines())


def on_gpu(ptx: str, entry: str, launch: Any) -> list[str]:
    """The same through the driver. LeftOut for what the runtime does not launch."""
    if "%envreg" in body_of(ptx, entry):
        raise LeftOut("a barrier of the whole grid takes a cooperative launch, which the runtime has not")
    types, values = zip(*map(_typed, launch.args), strict=True)
    device = open_device("cuda:0")
    module = load("_runtime").Module(ptx, entry, launch.shared, device, list(types))
    with _printed() as lines:
        module.launch(launch.grid, launch.block, values)
        device.synchronize()
    return sorted(lines)


def _typed(value: Any) -> tuple[str, Any]:
    if isinstance(value, np.ndarray):
        return "*i8", value
    kind = _SCALARS.get(str(value.dtype))
    if kind is None:
        raise LeftOut("a structure passed by value, which the runtime does not launch with")
    return kind, value.item()


@contextlib.contextmanager
def _printed() -> Iterator[list[str]]:
    """The lines that the process prints meanwhile, the driver and C's own streams too."""
    lines: list[str] = []
    flush = ctypes.CDLL(None).fflush
    sys.stdout.flush()
    flush(None)
    kept = os.dup(1)
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "printed"
        with path.open("wb") as stream:
            os.dup2(stream.fileno(), 1)
            try:
                yield lines
            finally:
                flush(None)
                os.dup2(kept, 1)
                os.close(kept)
        lines += path.read_text(errors="replace").splitlines()
