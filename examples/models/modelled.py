# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Modelled seconds: of Weft's programs by the simulator's counts, of everything else by its arithmetic and its bytes.
Each is a roofline, the longest of what the GPU's resources need at least; no launch waits for another's end."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from weft.targets import gpu_named
from weft.testing.plans import counted


def program(function: Any, *arrays: Any, gpu: str, sample: int = 0, **static: Any) -> dict[str, float]:
    """A weft.program's forward and backward. With ``sample`` only so many blocks of each launch are counted, and scaled
    to all of them: for programs in which no launch decides what a later one does."""
    runs = counted(function, *arrays, sample=sample, **static)
    return {part: sum(launch_seconds(each, gpu) for each in run.launches) for part, run in runs.items()}


def launch_seconds(launched: Any, gpu: str) -> float:
    """Of all blocks of a launch, where only some were counted."""
    found: float = launched.report.profile.roofline(gpu, launched.scale).limit.seconds
    return found


def matmul(rows: int, inner: int, columns: int, gpu: str, size: int = 2) -> float:
    """A product of matrices of ``size`` bytes an element, each read or written once."""
    described = gpu_named(gpu)
    moved = size * (rows * inner + inner * columns + rows * columns)
    return max(2 * rows * inner * columns / (described.matrix["f16"] * 1e9), moved / (described.memory_bandwidth * 1e9))


def training_matmul(rows: int, inner: int, columns: int, gpu: str) -> float:
    """Forward, and the gradients of both factors."""
    return sum(matmul(*each, gpu) for each in ((rows, inner, columns), (rows, columns, inner), (inner, rows, columns)))


def adamw(parameters: float, gpu: str) -> float:
    """A step of AdamW in fp32: weight, gradient and two moments are read, and all but the gradient written."""
    return 7 * 4 * parameters / (gpu_named(gpu).memory_bandwidth * 1e9)


def total(parts: Mapping[str, float]) -> float:
    """Forward and backward together."""
    return sum(parts.values())
