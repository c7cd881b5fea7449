# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""What a program and its generated backward cost on the simulator, for tests and benchmarks."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import Any

import numpy as np

from weft.programs.compiled import compiled
from weft.programs.simulated import Launched, Run, run_plan
from weft.targets import default_target

__all__ = ["Launched", "Run", "counted", "instructions", "launches", "run_plan"]


def launches(program: Any, *arrays: Any, target: str | None = None, **static: Any) -> dict[str, list[str]]:
    """The kernels that a weft.program launches, one after another: {"forward": ..., "backward": ...}."""
    traced = program.trace(program.bind(arrays, static))
    found = {}
    for each in compiled(traced, target or default_target(), True).info["programs"]:
        (variant,) = each["variants"]
        found[each["name"].removeprefix(f"{traced.name}.")] = [launch["kernel"] for launch in variant["launches"]]
    return {part: found[part] for part in ("forward", "backward")}


def instructions(run: Run) -> dict[str, int]:
    """Warp instructions by kernel; where a sample of its blocks ran, as many times more."""
    found: dict[str, int] = {}
    for launched in run.launches:
        count = launched.report.counters["warp_instructions"] * prod(launched.grid) // launched.blocks
        found[launched.kernel] = found.get(launched.kernel, 0) + count
    return found


def counted(
    program: Any,
    *arrays: Any,
    target: str | None = None,
    checks: str = "none",
    sample: int = 0,
    counts_only: bool = True,
    backward: bool = True,
    **static: Any,
) -> dict[str, Run]:
    """A weft.program's forward and backward run on torch tensors, each with its reports: {"forward": ..., "backward":
    ...}. The gradients of the results are random.

    With ``sample`` only so many blocks of each launch run, and their counts alone mean something (``Run.scaled``); or,
    without ``counts_only``, of each launch whose results no later one reads. ``backward`` may be left out.
    """
    options: dict[str, Any] = {"checks": checks, "sample": sample, "counts_only": bool(sample) and counts_only}
    traced = program.trace(program.bind(arrays, static))
    form = compiled(traced, target or default_target(), backward)
    inputs = [_bits(array) for array in [*_tensors(arrays), *traced.captured]]
    name = f"{traced.name}.forward" if backward else traced.name
    forward = run_plan(form.ptx, form.info, name, inputs, **options)
    if not backward:
        return {"forward": forward}
    outputs = list(forward.outputs.values())
    saved = [*inputs, *(outputs[number] for number in form.saved_outputs)]
    results = outputs[: len(traced.outputs)]
    gradients = [np.random.default_rng().standard_normal(x.shape).astype(np.float32) for x in results]
    rounded = [
        (g.view(np.uint32) >> 16).astype(np.uint16) if x.dtype == np.uint16 else g.astype(x.dtype)
        for g, x in zip(gradients, results, strict=True)
    ]
    given = [*saved, *rounded]
    gradients_run = run_plan(form.ptx, form.info, f"{traced.name}.backward", given, **options)
    return {"forward": forward, "backward": gradients_run}


def _tensors(values: Any) -> list[Any]:
    """The tensors among arguments, those of dicts in their order."""
    found: list[Any] = []
    for value in values:
        found += _tensors(value.values()) if isinstance(value, Mapping) else [value]
    return found


def _bits(array: Any) -> np.ndarray:
    """A torch tensor's memory as a NumPy array; bf16 and 8-bit floats as their bits."""
    if not hasattr(array, "data_ptr"):
        return np.asarray(array)
    import torch

    plain = array.detach()
    bits = {torch.bfloat16: torch.uint16, torch.float8_e4m3fn: torch.uint8, torch.float8_e5m2: torch.uint8}
    found: np.ndarray = plain.view(bits.get(plain.dtype, plain.dtype)).numpy()
    return found
