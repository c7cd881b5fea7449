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
from dataclasses import asdict, dataclass, field, replace
from math import prod
from typing import Any

import numpy as np

from weft.compiler import ptxas
from weft.compiler.diagnostics import from_native
from weft.compiler.lower import native_context
from weft.cycles.judge import measured
from weft.errors import Error
from weft.programs.simulated import Run, run_plan
from weft.runtime.plans import evaluate as evaluate_size
from weft.simulator.cost import Figures
from weft.targets import gpu_named

from . import records
from .judging import Unsure, first_line, load_clean, load_inputs, wrong
from .launched import Compiled, compiled, figures, fingerprints
from .space import target_named

#: (module text, its name, the compiler's options) -> PTX and the compiler's report
Compile = Callable[[str, str, Mapping[str, Any]], tuple[str, dict[str, Any]]]

SAMPLED = 32  # blocks that are counted of a launch

_BYTES = {"i1": 1, "i8": 1, "i32": 4, "i64": 8, "fp16": 2, "bf16": 2, "fp32": 4}


@dataclass(frozen=True)
class Job:
    """One candidate. ``checked`` and ``counted`` name the functions whose results are compared and whose launches are
    counted; ``cases`` is a folder of arrays (references.py). What ``recorded``, a file, says of the candidate's PTX
    and ``key``, the rest of a record's key, is not measured again. ``judge`` "cycles" has main loops timed by the loop
    model, for ``gpu``."""

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
    recorded: str = ""
    key: Mapping[str, Any] = field(default_factory=dict)
    judge: str = "model"
    gpu: str = ""


def compile_module(text: str, name: str, options: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """Compile a module of IR. Raises weft.Error with what the compiler says."""
    context = native_context().context
    context.take_diagnostics()
    ptx, info, error = context.parse(text, name).compile(json.dumps(options))
    if error is not None:
        raise from_native(error, context.take_diagnostics())
    return ptx, json.loads(info)


def counted_policy(judge: str = "model", gpu: str = "") -> str:
    """How the simulator's counters are taken, and whose word on registers there is, as records say it."""
    tool = "with" if ptxas.find_tool("ptxas") else "without"
    loops = f", loops by the loop model for {gpu}" if judge == "cycles" else ""
    return f"counted on at most {SAMPLED} blocks of a launch, additions apart, {tool} ptxas{loops}"


def evaluate(job: Job, compile: Compile = compile_module) -> dict[str, Any]:
    """What became of a candidate: {"status": "right", "launches": [...], "code": the hash of its PTX}, or "dropped"
    (the target cannot hold it), "refused" (it does not compile, or is wrong) or "unsure" (further draws must say
    whether it is wrong), with the "reason". "known" is true of what was recorded before."""
    options = {"target": job.target, "differentiate": job.differentiate, "schedules": dict(job.schedules)}
    try:
        ptx, info = compile(job.text, job.name, options)
    except Error as error:
        return {"status": "refused", "reason": f"it does not compile: {first_line(str(error))}"}
    code = hashlib.sha256(ptx.encode()).hexdigest()
    if job.recorded and (known := records.known(job.recorded, {**job.key, "ptx": code})):
        return {**records.outcome(known), "code": code, "known": True}
    try:
        return {**_judged(job, ptx, info), "code": code}
    except Unsure as unsure:
        return {"status": "unsure", "reason": str(unsure)}


def _judged(job: Job, ptx: str, info: Mapping[str, Any]) -> dict[str, Any]:
    used = {launch["kernel"] for each in job.counted for launch in _plan(info, job.name + each)["launches"]}
    try:
        kernels = compiled(ptx, job.target, [each for each in info["kernels"] if each["entry"] in used])
    except Error as error:
        return {"status": "refused", "reason": f"it does not compile: {first_line(str(error))}"}
    limit = target_named(job.target).shared_bytes_per_block
    for entry in used:
        if kernels[entry].shared_bytes > limit:
            reason = f"'{entry}' takes {kernels[entry].shared_bytes} bytes of shared memory; a block has {limit}"
            return {"status": "dropped", "reason": reason}
    if not job.simulate:
        return {"status": "right", "launches": [], "ptx": ptx, "info": info}
    if not pathlib.Path(job.cases).is_dir():
        raise Error(f"expected the folder '{job.cases}' where every worker sees it; tune(..., folder=) says another")
    if reason := simulated_wrong(job, ptx, info):
        return {"status": "refused", "reason": reason}
    launches = [each for part in job.counted for each in _count(ptx, info, kernels, job, part)]
    if job.judge == "cycles":
        launches = _with_loops(ptx, info, job, launches)
    return {"status": "right", "reason": "", "launches": [asdict(each) for each in launches]}


def _with_loops(ptx: str, info: Mapping[str, Any], job: Job, launches: Sequence[Figures]) -> list[Figures]:
    """The launches with what the loop model says of their main loops."""
    used = {each.kernel for each in launches}
    kernels = [each for each in info["kernels"] if each["entry"] in used]
    loops = measured(ptx, job.target, gpu_named(job.gpu), kernels)
    return [replace(each, loop=loops[each.kernel]) for each in launches]


def simulated_wrong(job: Job, ptx: str, info: Mapping[str, Any]) -> str:
    """Why a compiled candidate's results are wrong on the simulator, or "". Kernels that the default schedule has too
    have been checked with it."""
    clean = load_clean(job.cases)
    prints = fingerprints(ptx, info) if clean else {}
    unchecked = [entry for entry, key in prints.items() if key in clean]
    run = functools.partial(_run, ptx, info, job.threads, unchecked)
    return next(filter(None, (wrong(run, job.name, job.cases, part) for part in job.checked)), "")


def _run(
    ptx: str, info: Mapping[str, Any], threads: int, unchecked: Sequence[str], name: str, inputs: list[np.ndarray]
) -> Run:
    return run_plan(ptx, info, name, inputs, checks="all", unchecked=unchecked, threads=threads)


def _plan(info: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    return next(each for each in info["programs"] if each["name"] == name)["variants"][0]


def _count(ptx: str, info: Mapping[str, Any], kernels: Mapping[str, Compiled], job: Job, part: str) -> list[Figures]:
    """Figures of a function's launches at the full sizes: counted on fewer blocks, and as many times more. By one
    thread: blocks that wait for their turn would count what they run meanwhile, which differs from run to run."""
    name = job.name + part
    run = run_plan(ptx, info, name, load_inputs(job.cases, part), checks="none", threads=1, sample=SAMPLED)
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
        found.append(figures(kernels[launch["kernel"]], launched.report, blocks, launched.blocks, bytes=bytes))
    return found
