# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""A traced program compiled for a target: PTX of its kernels, and plans that launch them."""

from __future__ import annotations

import dataclasses
import functools
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from .. import locks
from ..compiler import cache
from ..compiler.diagnostics import CompilationError, from_native
from ..compiler.fingerprint import compiler_fingerprint
from ..compiler.lower import native_context
from ..recent import Recent
from ..runtime.library import Library
from ..runtime.plans import saved_outputs
from ..targets import default_target
from .trace import Traced

STAGES = ("attn", "launches", "tile", "warp", "pipelined", "llvm")
_FORMAT = 2  # of a cache entry
_lock = locks.lock("forms")
# A form takes most of a megabyte: PTX, plans, and what the simulator decodes of them.
_compiled: Recent[tuple[str, str, bool, str], Compiled] = Recent(256)
_linearised: Recent[tuple[str, str, str, tuple[int, ...]], Compiled] = Recent(256)

#: rows, columns, warps and stages by attention and role, rows and warps by the place of another kernel:
#: {"0.forward": [128, 64, 4, 3], "forward.rows.0": [32, 4]}
Schedules = Mapping[str, Sequence[int]]


@dataclass
class Compiled:
    """``ptx`` is one module of all kernels; ``info`` is what the compiler reports: "kernels" (entry, num_warps,
    shared_bytes), "programs" (the plans), "schedules", "times_ms". With ``differentiate`` there are plans of three
    functions: the program's name, and that with .forward and .backward. ``schedules`` are those that were chosen, where
    they are not the default; ``guards`` the sizes that they were chosen for, as a plan in a library has them. Of a form
    that ``linearised`` gives the one plan is of ``function``, behind the program's name: ".forward.tangent" or another.
    """

    traced: Traced
    target: str
    differentiate: bool
    ptx: str
    info: dict[str, Any]
    cached: bool = False
    schedules: Schedules = field(default_factory=dict)
    guards: tuple[Mapping[str, Any], ...] = ()
    function: str = ""
    promised: Compiled | None = None
    """the same for inputs that are all aligned, whose kernels with bulk copies a library's launches choose"""
    _inputs: dict[str, list[dict[str, Any]]] = field(default_factory=dict, repr=False)
    _programs: dict[str, Any] = field(default_factory=dict, repr=False)

    @functools.cached_property
    def library(self) -> Any:
        """The compiled form as a library in memory (weft.runtime.Library)."""
        return Library.from_compiled(self.info, self.ptx, self.target)

    def plan(self, part: str = "") -> dict[str, Any]:
        """The plan of the program itself, or of its part ".forward" or ".backward"."""
        wanted = self.traced.name + part
        for plan in self.info["programs"]:
            if plan["name"] == wanted:
                return dict(plan)
        raise CompilationError(f"expected a program '{wanted}' of the compiler, but it made none")

    def program(self, part: str) -> Any:
        """The program itself, or its part ".forward" or ".backward", to be run (weft.runtime.Program)."""
        found = self._programs.get(part)
        if found is None:
            found = self._programs[part] = self.library.program(self.traced.name + part)
        return found

    def inputs(self, part: str) -> list[dict[str, Any]]:
        """What the plan of a part takes, in order: "name", "type", "dims", "aligned"."""
        found = self._inputs.get(part)
        if found is None:
            found = self._inputs[part] = self.plan(part)["inputs"]
        return found

    @functools.cached_property
    def saved_outputs(self) -> list[int]:
        """The numbers of the forward's outputs that the backward takes after the inputs."""
        forward, backward = self.plan(".forward")["outputs"], self.plan(".backward")["inputs"]
        return saved_outputs(len(self.traced.inputs), len(self.traced.outputs), forward, backward)


def compiled(traced: Traced, target: str, differentiate: bool, schedules: Schedules | None = None) -> Compiled:
    """The program compiled, from the caches or by the compiler. Raises CompilationError at the user's line."""
    chosen = {place: list(schedule) for place, schedule in sorted((schedules or {}).items())}
    known = (traced.text, target, differentiate, json.dumps(chosen))
    with _lock:
        found = _compiled.get(known)
        if found is None:
            found = _compiled.keep(known, _build(traced, target, differentiate, chosen))
        return found


def runnable(traced: Traced, target: str, differentiate: bool, schedules: Schedules | None = None) -> Compiled:
    """``compiled``, or where that is in this process already, as after training, the form with the backward too: it
    has the same kernels of the program itself."""
    chosen = {place: list(schedule) for place, schedule in sorted((schedules or {}).items())}
    with _lock:
        found = _compiled.get((traced.text, target, True, json.dumps(chosen)))
        return found or compiled(traced, target, differentiate, schedules)


def linearised(traced: Traced, target: str, part: str, arguments: tuple[int, ...]) -> Compiled:
    """The results and tangents of one function of the program ("" is the program itself; ".forward", ".backward"), for
    tangents of its ``arguments`` of those numbers, or of all without any: a form whose one plan is that of the part
    ``part`` + ".tangent".
    Raises CompilationError at the line of what has no tangent."""
    known = (traced.text, target, part, arguments)
    with _lock:
        found = _linearised.get(known)
        if found is None:
            wanted = {"function": traced.name + part, "arguments": list(arguments)}
            made = dataclasses.replace(_build(traced, target, part != "", {}, wanted), function=f"{part}.tangent")
            found = _linearised.keep(known, made)
        return found


def _build(
    traced: Traced,
    target: str,
    differentiate: bool,
    schedules: dict[str, list[int]],
    linearise: dict[str, Any] | None = None,
) -> Compiled:
    traced = dataclasses.replace(traced, captured=())  # which differ from call to call, and are not to be kept alive
    options = {"target": target, "differentiate": differentiate, "schedules": schedules}
    if linearise is not None:
        options["linearise"] = linearise
    name = cache.key([_FORMAT, "program", traced.text, options, compiler_fingerprint()])
    entry = cache.read(name)
    if entry is not None:
        ptx, info = entry["ptx"], entry["info"]
        return Compiled(traced, target, differentiate, ptx, info, cached=True, schedules=schedules)
    ptx, info = _compile(traced, options)
    cache.write(name, {"ptx": ptx, "info": info})
    return Compiled(traced, target, differentiate, ptx, info, schedules=schedules)


def _compile(traced: Traced, options: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    context = native_context().context
    context.take_diagnostics()
    module = context.parse(traced.text, traced.name)
    ptx, info, error = module.compile(json.dumps(options))
    if error is not None:
        raise from_native(error, context.take_diagnostics())
    return ptx, json.loads(info)


def stages(traced: Traced, stage: str, target: str | None = None, differentiate: bool = True) -> str:
    """The IR after a stage of the compiler, or its "ptx"."""
    if stage not in (*STAGES, "ptx"):
        raise ValueError(f"expected a stage among {', '.join((*STAGES, 'ptx'))}, but got '{stage}'")
    target = target or default_target()
    ptx, info = _compile(traced, {"target": target, "differentiate": differentiate, "dump": [stage]})
    return ptx if stage == "ptx" else str(info["ir"].get(stage, ""))
