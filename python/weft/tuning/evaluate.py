# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""One candidate from its schedule to its figures: compiled, held against the target, run, compared, counted.

Everything a candidate needs comes in a job, plain data, and everything that became of it goes out as a record: this
runs in processes of its own (worker.py), which a candidate may crash.
"""

from __future__ import annotations

import functools
import hashlib
import json
import pathlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from math import prod
from typing import Any

import numpy as np

from weft.compiler.diagnostics import from_native
from weft.compiler.lower import native_context
from weft.errors import Error
from weft.programs.simulated import Run, run_plan
from weft.runtime.plans import evaluate as evaluate_size
from weft.simulator.cost import Figures

from .agreement import disagreement
from .launched import Compiled, compiled, figures
from .space import target_named

#: (module text, its name, the compiler's options) -> PTX and the compiler's report
Compile = Callable[[str, str, Mapping[str, Any]], tuple[str, dict[str, Any]]]

SAMPLED = 32  # blocks that are counted of a launch

_BYTES = {"i1": 1, "i8": 1, "i32": 4, "i64": 8, "fp16": 2, "bf16": 2, "fp32": 4}


@dataclass(frozen=True)
class Job:
    """One candidate. ``checked`` and ``counted`` name the functions whose results are compared and whose launches are
    counted; ``cases`` is a folder of arrays (references.py)."""

    text: str
    name: str
    target: str
    differentiate: bool
    schedules: Mapping[str, Sequence[int]]
    checked: Sequence[str]
    counted: Sequence[str]
    sizes: Mapping[str, int]
    cases: str
    threads: int = 0
    simulate: bool = True


def compile_module(text: str, name: str, options: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """Compile a module of IR. Raises weft.Error with what the compiler says."""
    context = native_context().context
    context.take_diagnostics()
    ptx, info, error = context.parse(text, name).compile(json.dumps(options))
    if error is not None:
        raise from_native(error, context.take_diagnostics())
    return ptx, json.loads(info)


def evaluate(job: Job, compile: Compile = compile_module) -> dict[str, Any]:
    """What became of a candidate: {"status": "right", "launches": [...], "code": the hash of its PTX}, or "dropped"
    (the target cannot hold it) or "refused" (it does not compile, or is wrong), with the "reason"."""
    options = {"target": job.target, "differentiate": job.differentiate, "schedules": dict(job.schedules)}
    try:
        ptx, info = compile(job.text, job.name, options)
        kernels = _kernels(ptx, info, job.target)
    except Error as error:
        return {"status": "refused", "reason": f"it does not compile: {_first_line(str(error))}"}
    limit = target_named(job.target).shared_bytes_per_block
    used = {launch["kernel"] for each in job.counted for launch in _plan(info, job.name + each)["launches"]}
    for entry in used:
        if kernels[entry].shared_bytes > limit:
            reason = f"'{entry}' takes {kernels[entry].shared_bytes} bytes of shared memory; a block has {limit}"
            return {"status": "dropped", "reason": reason}
    code = hashlib.sha256(ptx.encode()).hexdigest()
    if not job.simulate:
        return {"status": "right", "launches": [], "code": code, "ptx": ptx, "info": info}
    for part in job.checked:
        if reason := wrong(functools.partial(_run, ptx, info, job.threads), job, part):
            return {"status": "refused", "reason": reason}
    launches = [each for part in job.counted for each in _count(ptx, info, kernels, job, part)]
    return {"status": "right", "reason": "", "code": code, "launches": [asdict(each) for each in launches]}


def wrong(run: Callable[[str, list[np.ndarray]], Run], job: Job, part: str) -> str:
    """Why the results of a function are not those of the reference, or "". One draw in some two hundred exceeds a bound
    by chance, so an excess below three times the bound counts only if one of two further draws exceeds one too."""
    first = ""
    for number in range(3):
        case = load_case(job.cases, part, number)
        try:
            given = run(job.name + part, case.inputs)
        except Error as error:
            return f"it does not run: {_first_line(str(error))}"
        if given.findings:
            return f"the simulator found: {given.findings[0]}"
        said, excess = disagreement(given.outputs, case.plain, case.exact, case.types, part == ".backward")
        if said and (excess >= 3 or first):
            return f"wrong: {said}"
        if number == 0 and not said:
            return ""
        first = first or said
    return ""


@dataclass(frozen=True)
class Case:
    """One draw: inputs of a function, what the default schedule and the widened program give, and types by name."""

    inputs: list[np.ndarray]
    plain: dict[str, np.ndarray]
    exact: dict[str, np.ndarray]
    types: dict[str, str]


def case_file(folder: str, part: str, number: int | str) -> pathlib.Path:
    """The file that a function's case of that number is kept in; ``part`` is "", ".forward" or ".backward"."""
    return pathlib.Path(folder, f"{part.lstrip('.') or 'plain'}.{number}.npz")


def save_case(folder: str, part: str, number: int, case: Case) -> None:
    """Write a case to its file, for the processes that judge candidates."""
    arrays = {f"input{i}": array for i, array in enumerate(case.inputs)}
    arrays |= {f"plain.{name}": array for name, array in case.plain.items()}
    arrays |= {f"exact.{name}": array for name, array in case.exact.items()}
    np.savez(case_file(folder, part, number), types=np.array(json.dumps(case.types)), **arrays)  # type: ignore[arg-type]


@functools.lru_cache(maxsize=16)
def load_case(folder: str, part: str, number: int) -> Case:
    """Read a case from its file; the last 16 are kept."""
    with np.load(case_file(folder, part, number)) as file:
        arrays = {name: file[name] for name in file.files}

    def under(prefix: str) -> dict[str, np.ndarray]:
        return {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}

    inputs = under("input")
    return Case(
        [inputs[str(i)] for i in range(len(inputs))],
        under("plain."),
        under("exact."),
        json.loads(str(arrays["types"])),
    )


@functools.lru_cache(maxsize=4)
def load_inputs(folder: str, part: str) -> list[np.ndarray]:
    """The inputs that counters are taken on."""
    with np.load(case_file(folder, part, "count")) as file:
        return [file[f"input{i}"] for i in range(len(file.files))]


def _run(ptx: str, info: Mapping[str, Any], threads: int, name: str, inputs: list[np.ndarray]) -> Run:
    return run_plan(ptx, info, name, inputs, checks="all", threads=threads)


def _plan(info: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    return next(each for each in info["programs"] if each["name"] == name)["variants"][0]


def _kernels(ptx: str, info: Mapping[str, Any], target: str) -> dict[str, Compiled]:
    """The kernels by entry."""
    return {
        each["entry"]: compiled(ptx, target, each["entry"], each["num_warps"], each["num_stages"], each["shared_bytes"])
        for each in info["kernels"]
    }


def _count(ptx: str, info: Mapping[str, Any], kernels: Mapping[str, Compiled], job: Job, part: str) -> list[Figures]:
    """Figures of a function's launches at the full sizes: counted on fewer blocks, and as many times more."""
    name = job.name + part
    run = run_plan(ptx, info, name, load_inputs(job.cases, part), checks="none", threads=job.threads, sample=SAMPLED)
    program = next(each for each in info["programs"] if each["name"] == name)
    plan = program["variants"][0]
    described = [*program["inputs"], *program["outputs"], *plan["buffers"]]
    bytes_of = [_BYTES[d["type"]] * prod(evaluate_size(dim, job.sizes) for dim in d["dims"]) for d in described]
    found = []
    counted = iter(run.launches)
    for launch in plan["launches"]:
        blocks = prod(evaluate_size(extent, job.sizes) for extent in launch["grid"])
        if blocks == 0:
            continue
        launched = next(counted)
        bytes = sum(bytes_of[t] for t in {a["pointer"] for a in launch["arguments"] if "pointer" in a})
        found.append(figures(kernels[launch["kernel"]], launched.report, blocks, launched.blocks, bytes))
    return found


def _first_line(text: str) -> str:
    return text.strip().splitlines()[0] if text.strip() else "no reason given"
