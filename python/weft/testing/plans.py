# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Compiled programs run launch by launch on the simulator, with its report of each: what they touch, count and find.

The runtime runs plans (docs/LibraryFormat.md) for users; this runs them for tests that ask what a program costs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import weft.simulator
from weft.programs.plans import evaluate

#: NumPy's type for each of a plan's; bf16 and fp8 travel as their bits
_TYPES: dict[str, type] = {
    "fp16": np.float16, "bf16": np.uint16, "fp32": np.float32, "fp64": np.float64,
    "i1": np.bool_, "i8": np.int8, "i32": np.int32, "i64": np.int64,
}  # fmt: skip
#: bits that are NaN, or a conspicuous integer
_POISON: dict[str, Any] = {"fp16": np.nan, "bf16": 0x7FFF, "fp32": np.nan, "fp64": np.nan, "i1": True}


@dataclass(frozen=True)
class Launched:
    """One launch of a program."""

    kernel: str
    grid: tuple[int, ...]
    report: weft.simulator.Report


@dataclass(frozen=True)
class Run:
    """What a program gave, and each launch's report."""

    outputs: dict[str, np.ndarray]
    launches: list[Launched] = field(default_factory=list)

    def total(self, counter: str) -> int:
        """A counter summed over the launches."""
        return sum(launched.report.counters[counter] for launched in self.launches)

    @property
    def findings(self) -> list[str]:
        """What the simulator found wrong, by kernel."""
        return [f"{launched.kernel}: {found}" for launched in self.launches for found in launched.report.findings]


def run_plan(ptx: str, info: Mapping[str, Any], name: str, inputs: Sequence[np.ndarray], *, checks: str = "all") -> Run:
    """Run program ``name`` of a compiled module on arrays, in the order of its inputs; bf16 arrays are uint16.

    Outputs and buffers are fresh and full of NaN, but for those that the plan wants zeroed. Raises ValueError where the
    inputs do not fit.
    """
    program = next(each for each in info["programs"] if each["name"] == name)
    (variant,) = program["variants"]
    sizes = _bind(program["inputs"], inputs)
    facts = [*program["outputs"], *variant["buffers"]]
    tensors = list(inputs)
    for fact in facts:
        shape = [evaluate(size, sizes) for size in fact["dims"]]
        tensors.append(np.full(shape, _POISON.get(fact["type"], 0x55), _TYPES[fact["type"]]))
    kernels = {kernel["entry"]: kernel for kernel in info["kernels"]}
    launches = []
    for launch in variant["launches"]:
        for number in launch["zeroed"]:
            tensors[number][...] = 0
        grid = tuple(evaluate(extent, sizes) for extent in launch["grid"])
        if 0 in grid:
            continue
        kernel = kernels[launch["kernel"]]
        arguments = [_argument(each, tensors, sizes) for each in launch["arguments"]]
        threads = 32 * kernel["num_warps"]
        report = weft.simulator.launch(
            ptx, kernel["entry"], grid, threads, arguments, shared=kernel["shared_bytes"], checks=checks
        )
        launches.append(Launched(kernel["entry"], grid, report))
    outputs = tensors[len(inputs) : len(inputs) + len(program["outputs"])]
    names = [output["name"] for output in program["outputs"]]
    return Run(dict(zip(names, outputs, strict=True)), launches)


def counted(program: Any, *arrays: Any, target: str = "sm_80", checks: str = "none", **static: Any) -> dict[str, Run]:
    """A weft.program's forward and backward run on torch tensors, each with its reports: {"forward": ..., "backward":
    ...}. The gradients of the results are random."""
    from weft.programs.compiled import compiled

    traced = program.trace(program.bind(arrays, static))
    form = compiled(traced, target, True)
    inputs = [_bits(array) for array in arrays]
    forward = run_plan(form.ptx, form.info, f"{traced.name}.forward", inputs, checks=checks)
    given = [*inputs, *forward.outputs.values()]
    saved = given[: len(inputs)] + given[len(inputs) + len(traced.outputs) :]
    results = given[len(inputs) : len(inputs) + len(traced.outputs)]
    gradients = [np.random.default_rng().standard_normal(x.shape).astype(np.float32) for x in results]
    rounded = [
        (g.view(np.uint32) >> 16).astype(np.uint16) if x.dtype == np.uint16 else g.astype(x.dtype)
        for g, x in zip(gradients, results, strict=True)
    ]
    backward = run_plan(form.ptx, form.info, f"{traced.name}.backward", [*saved, *rounded], checks=checks)
    return {"forward": forward, "backward": backward}


def _bits(array: Any) -> np.ndarray:
    """A torch tensor's memory as a NumPy array; bf16 as its bits."""
    if not hasattr(array, "data_ptr"):
        return np.asarray(array)
    import torch

    plain = array.detach()
    found: np.ndarray = (plain.view(torch.uint16) if plain.dtype == torch.bfloat16 else plain).numpy()
    return found


def _bind(facts: Sequence[Mapping[str, Any]], arrays: Sequence[np.ndarray]) -> dict[str, int]:
    """The value of each symbol, from the first input that has it plainly; all other sizes are checked."""
    if len(facts) != len(arrays):
        raise ValueError(f"expected {len(facts)} inputs, but got {len(arrays)}")
    sizes: dict[str, int] = {}
    for fact, array in zip(facts, arrays, strict=True):
        if array.dtype != _TYPES[fact["type"]] or array.ndim != len(fact["dims"]):
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
