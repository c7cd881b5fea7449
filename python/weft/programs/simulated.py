# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Compiled programs run launch by launch on the simulator, with its report of each: what they touch, count and find.

The runtime runs plans (docs/LibraryFormat.md) for users; this runs them for those who ask what a program costs, tests
and the tuner.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any

import numpy as np

import weft.simulator

from ..runtime.plans import evaluate

#: NumPy's type for each of a plan's; bf16 and fp8 travel as their bits
TYPES: dict[str, type] = {
    "fp16": np.float16, "bf16": np.uint16, "fp32": np.float32, "fp64": np.float64,
    "i1": np.bool_, "i8": np.int8, "i32": np.int32, "i64": np.int64,
    "fp8e4nv": np.uint8, "fp8e5": np.uint8,
}  # fmt: skip
#: bits that are NaN, or a conspicuous integer
_POISON: dict[str, Any] = {
    "fp16": np.nan,
    "bf16": 0x7FFF,
    "fp32": np.nan,
    "fp64": np.nan,
    "i1": True,
    "fp8e4nv": 0x7F,
    "fp8e5": 0x7F,
}


@dataclass(frozen=True)
class Launched:
    """One launch of a program."""

    kernel: str
    report: weft.simulator.Report

    @property
    def grid(self) -> tuple[int, ...]:
        """Of its blocks."""
        return self.report.launch.grid

    @property
    def blocks(self) -> int:
        """How many of the grid's ran."""
        return self.report.launch.blocks

    @property
    def scale(self) -> float:
        """The grid's blocks over those that ran."""
        return prod(self.grid) / self.blocks


@dataclass(frozen=True)
class Run:
    """What a program gave, and each launch's report."""

    outputs: dict[str, np.ndarray]
    launches: list[Launched] = field(default_factory=list)

    def total(self, counter: str) -> int:
        """A counter summed over the launches."""
        return sum(launched.report.counters[counter] for launched in self.launches)

    def scaled(self, counter: str) -> float:
        """The same of all blocks, where only some ran: each launch's times its blocks over those that ran."""
        return sum(launched.report.counters[counter] * launched.scale for launched in self.launches)

    @property
    def findings(self) -> list[str]:
        """What the simulator found wrong, by kernel."""
        return [f"{launched.kernel}: {found}" for launched in self.launches for found in launched.report.findings]


def run_plan(
    ptx: str,
    info: Mapping[str, Any],
    name: str,
    inputs: Sequence[np.ndarray],
    *,
    checks: str = "all",
    unchecked: Collection[str] = (),
    threads: int = 0,
    sample: int = 0,
    counts_only: bool = False,
    seed: int = 0,
) -> Run:
    """Run program ``name`` of a compiled module on arrays, in the order of its inputs; bf16 arrays are uint16.

    Outputs and buffers are fresh and full of NaN, but for those that the plan wants zeroed. With ``sample`` only so
    many blocks run of each launch whose results no later one reads; with ``counts_only`` of every launch, for programs
    whose work does not depend on numbers: what they give is then no result. ``seed`` is that of the interleaving of
    warps. Kernels ``unchecked``, by entry, run without checks. Raises ValueError where the inputs do not fit.
    """
    program = next(each for each in info["programs"] if each["name"] == name)
    (variant,) = program["variants"]
    sizes = _bind(program["inputs"], inputs)
    facts = [*program["outputs"], *variant["buffers"]]
    tensors = list(inputs)
    for fact in facts:
        shape = [evaluate(size, sizes) for size in fact["dims"]]
        tensors.append(np.full(shape, _POISON.get(fact["type"], 0x55), TYPES[fact["type"]]))
    kernels = {kernel["entry"]: kernel for kernel in info["kernels"]}
    launches = []
    for index, launch in enumerate(variant["launches"]):
        for number in launch["zeroed"]:
            tensors[number][...] = 0
        grid = tuple(evaluate(extent, sizes) for extent in launch["grid"])
        if 0 in grid:
            continue
        kernel = kernels[launch["kernel"]]
        arguments = [_argument(each, tensors, sizes) for each in launch["arguments"]]
        needed = not counts_only and _is_read(launch["writes"], variant["launches"][index + 1 :])
        few = 0 if needed else sample
        report = weft.simulator.launch(
            ptx, kernel["entry"], grid, 32 * kernel["num_warps"], arguments,
            shared=kernel["shared_bytes"], checks="none" if kernel["entry"] in unchecked else checks, seed=seed,
            threads=threads, sample=few,
        )  # fmt: skip
        launches.append(Launched(kernel["entry"], report))
    outputs = tensors[len(inputs) : len(inputs) + len(program["outputs"])]
    names = [output["name"] for output in program["outputs"]]
    return Run(dict(zip(names, outputs, strict=True)), launches)


def _is_read(tensors: Sequence[int], launches: Sequence[Mapping[str, Any]]) -> bool:
    """Whether one of the launches takes one of the tensors."""
    return any(argument.get("pointer") in tensors for launch in launches for argument in launch["arguments"])


def _bind(facts: Sequence[Mapping[str, Any]], arrays: Sequence[np.ndarray]) -> dict[str, int]:
    """The value of each symbol, from the first input that has it plainly; all other sizes are checked."""
    if len(facts) != len(arrays):
        raise ValueError(f"expected {len(facts)} inputs, but got {len(arrays)}")
    sizes: dict[str, int] = {}
    for fact, array in zip(facts, arrays, strict=True):
        if array.dtype != TYPES[fact["type"]] or array.ndim != len(fact["dims"]):
            wanted = f"'{fact['name']}' {fact['type']} {fact['dims']}"
            raise ValueError(f"expected {wanted}, but got {array.dtype} {array.shape}")
        for size, given in zip(fact["dims"], array.shape, strict=True):
            if size.isidentifier():
                sizes.setdefault(size, given)
    for fact, array in zip(facts, arrays, strict=True):
        for size, given in zip(fact["dims"], array.shape, strict=True):
            if evaluate(size, sizes) != given:
                raise ValueError(f"expected '{fact['name']}' {fact['dims']} with {sizes}, but got {array.shape}")
    return sizes


def _argument(argument: Mapping[str, Any], tensors: Sequence[np.ndarray], sizes: Mapping[str, int]) -> Any:
    match argument:
        case {"pointer": number}:
            return tensors[number]
        case {"stride": [number, axis]}:
            return np.int64(tensors[number].strides[axis] // tensors[number].itemsize)
        case {"size": expression}:
            return np.int32(evaluate(expression, sizes))
        case {"real": value}:
            return np.float32(value)
    raise ValueError(f"expected an argument of a plan, but got {argument!r}")
