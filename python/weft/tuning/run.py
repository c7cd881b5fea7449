# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""``tune``: a program and what it is called with, to a result and a choice that later calls take."""

from __future__ import annotations

import pathlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from weft.compiler.targets import target_of
from weft.folders import new_folder
from weft.programs import choices
from weft.programs.buckets import Symbols
from weft.runtime.devices import device, device_for, open_device
from weft.runtime.plans import bind
from weft.targets import default_target

from .bundles import Writer
from .cases import COUNTED
from .gpu import GpuTimer
from .result import Result
from .space import Schedule, parse, role_of
from .tuner import Options, Progress, Silent, Subject, bundle_subject, tune_subject

if TYPE_CHECKING:
    from weft.programs.program import Program
    from weft.programs.trace import Traced


def tune(
    program: Program,
    *args: Any,
    target: str | None = None,
    sizes: Mapping[str, int] | None = None,
    signature: str | None = None,
    inputs: Mapping[str, np.ndarray] | None = None,
    candidates: Mapping[str, Sequence[Schedule | str]] | None = None,
    limit: int | None = 16,
    backward: bool = True,
    gpu: str | None = None,
    judge: str = "model",
    jobs: int | None = None,
    longest: int = COUNTED,
    executor: Any = None,
    folder: str | None = None,
    records: str | None = None,
    inputs_seed: int | None = None,
    progress: Progress | None = None,
    compile: Any = None,
    **static: Any,
) -> Result:
    """Tune a program, for a call with ``args`` and ``static`` or, where there are none, for the inputs that
    ``signature`` or its annotations declare and the ``sizes`` of their symbols.

    Every candidate is compiled, checked against the program in float32, and measured: on the simulator, ranked by the
    cost model for ``gpu`` ("A100", "H100", ...), or timed where a GPU is the default device. The choice is kept for the
    sizes' bucket, and later calls, compilations and libraries of the program take it.

    judge: what ranks without a GPU: "model", the cost model, or "cycles", the loop model (weft.cycles), which times the
    kernels' main loops from their machine code and needs ptxas and nvdisasm.
    candidates: schedules by place ("0.forward") or role ("backward.keys"), "128x64x4x3" or tuples of rows, columns,
    warps and stages, and channels where values are wide; without it ``limit`` neighbours of the default are tried for
    each kernel, or with None all that the target can hold, up to 512, and of more than these 512 that optuna's
    sampler draws. backward: whether the gradient's kernels are tuned too. jobs: processes, one a core by default; of an
    executor, candidates of a search that are out at a time. executor: runs the candidates in the place of processes
    here: any ``concurrent.futures.Executor``, a Dask client's, submitit's. Its workers find the inputs in a folder made
    in ``folder``, which they must see. records: the file of measurements, which are not taken again and which new ones
    are added to, whatever build of Weft they are of (by default records.jsonl beside the cache).
    longest: tokens that counters are taken on at most. inputs: arrays by name (bf16 as uint16) for what cannot be made
    up, such as lengths, of the given sizes, which are not reduced then; a call's own arrays are taken where some of
    them hold integers. inputs_seed: of what is made up, and of what is drawn; a fresh one by default, which the result
    says. compile: (text, name, options) -> (PTX, info), in the place of the compiler, all in
    this process; nothing is kept then.
    """
    given = {"candidates": candidates, "limit": limit, "gpu": gpu, "judge": judge, "jobs": jobs, "longest": longest,
             "inputs": inputs, "executor": executor, "folder": folder, "records": records,
             "seed": inputs_seed, "progress": progress or Silent(), "compile": compile,
             "time": timer() if compile is None else None}  # fmt: skip
    asked = _asked(program, args, static, target, sizes, signature, given)
    result = tune_subject(subject_of(asked.traced, backward), asked.target, asked.sizes, asked.options)
    if compile is None:
        keep(asked.traced.plain, result)
    return result


def bundle(
    program: Program,
    folder: str,
    *args: Any,
    target: str | None = None,
    sizes: Mapping[str, int] | None = None,
    signature: str | None = None,
    inputs: Mapping[str, np.ndarray] | None = None,
    candidates: Mapping[str, Sequence[Schedule | str]] | None = None,
    limit: int | None = 16,
    backward: bool = True,
    jobs: int | None = None,
    inputs_seed: int | None = None,
    progress: Progress | None = None,
    **static: Any,
) -> int:
    """Write the candidates that ``tune`` would try, compiled, with inputs of the full sizes and references, into a
    folder that is not there yet, for ``weft measure`` on other machines (weft.tuning.bundles). Arguments as ``tune``'s.
    Gives the number of candidates."""
    with new_folder(pathlib.Path(folder)) as partial:
        writer = Writer(partial)
        given = {"candidates": candidates, "limit": limit, "jobs": jobs, "inputs": inputs, "time": writer,
                 "seed": inputs_seed, "progress": progress or Silent()}  # fmt: skip
        asked = _asked(program, args, static, target, sizes, signature, given)
        subject = subject_of(asked.traced, backward)
        bundled = bundle_subject(subject, asked.target, asked.sizes, asked.options)
        facts = {"program": choices.program_hash(subject.plain), "name": subject.name, "target": asked.target}
        writer.finish({**facts, "sizes": bundled.sizes, "left_out": bundled.left_out}, bundled.cases)
    return len(writer.candidates)


@dataclass(frozen=True)
class _Asked:
    traced: Traced
    target: str
    sizes: Mapping[str, int]
    options: Options


def _asked(
    program: Program,
    args: Sequence[Any],
    static: Mapping[str, Any],
    target: str | None,
    sizes: Mapping[str, int] | None,
    signature: str | None,
    options: dict[str, Any],
) -> _Asked:
    """The program that a call, or a signature and sizes, are of, and the options, checked."""
    for name in ("limit", "longest", "jobs"):
        number = options.get(name)
        if number is not None and (not isinstance(number, int) or isinstance(number, bool) or number < 1):
            raise ValueError(f"expected '{name}' to be an integer of at least 1, but got {number!r}")
    seed = options["seed"]
    if seed is not None and (not isinstance(seed, int) or isinstance(seed, bool) or seed < 0):
        raise ValueError(f"expected 'inputs_seed' to be an integer of at least 0, but got {seed!r}")
    if options.get("judge", "model") not in ("model", "cycles"):
        raise ValueError(f"expected 'judge' to be 'model' or 'cycles', but got {options['judge']!r}")
    candidates = options["candidates"]
    options["candidates"] = None if candidates is None else _parsed(candidates)
    options["inputs"] = dict(options["inputs"] or {})
    if args:
        call = program.bind(tuple(args), dict(static))
        traced = program.trace(call)
        arrays = [*call.arrays, *traced.captured]
        sizes = bind({"inputs": [{"dims": each.dims} for each in traced.inputs]}, arrays)
        if any(each.type[0] == "i" for each in traced.inputs):
            pairs = zip(traced.inputs, arrays, strict=True)
            options["inputs"] = {each.name: _bits(array) for each, array in pairs}
        target = target or target_of(device_for(tuple(arrays)))
    else:
        traced = program.declare(signature, dict(static))
        target = target or default_target()
        Symbols.of([{"dims": each.dims} for each in traced.inputs]).check(traced.name, sizes or {})
    return _Asked(traced, target, sizes or {}, Options(**options))


def subject_of(traced: Traced, backward: bool) -> Subject:
    """A traced program as the tuner sees it. One without floats among its inputs has no backward."""
    return Subject(traced.name, traced.text, traced.plain, backward)


def keep(plain: str, result: Result) -> None:
    """Keep a result's choice for calls, compilations and libraries of the program."""
    choice = {
        "guards": [[each["size"], each["at_least"], each["below"]] for each in result.guards],
        "sizes": dict(result.sizes),
        "schedules": {place: list(schedule) for place, schedule in result.schedules.items()},
        "device": result.device,
        "seconds": result.seconds,
        "default_seconds": result.default_seconds,
    }
    choices.choose(choices.program_hash(plain), result.target, choice)


def _parsed(candidates: Mapping[str, Sequence[Schedule | str]]) -> dict[str, list[Schedule]]:
    def one(schedule: Schedule | str) -> Schedule:
        return parse(schedule) if isinstance(schedule, str) else parse("x".join(map(str, schedule)))

    if not isinstance(candidates, Mapping):
        raise TypeError(f"expected 'candidates' to be a dict of schedules by role, but got {candidates!r}")
    for place in candidates:
        role_of(place)
    return {place: [one(schedule) for schedule in each] for place, each in candidates.items()}


def _bits(array: Any) -> np.ndarray:
    """An array's memory as NumPy has it; bf16 as its bits."""
    if not hasattr(array, "data_ptr"):
        return np.ascontiguousarray(array)
    import torch

    plain = array.detach().cpu().contiguous()
    found: np.ndarray = (plain.view(torch.uint16) if plain.dtype == torch.bfloat16 else plain).numpy()
    return found


def timer() -> Any:
    """What times candidates: the default device, where that is a GPU."""
    name = device()
    if name.startswith("simulator"):
        return None
    return GpuTimer(open_device(name))
