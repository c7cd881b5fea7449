# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Compiled programs as a library's manifest has them, and libraries of them on disk."""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import itertools
import json
import os
import pathlib
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from ..compiler import cubins, places, promises, targets
from ..compiler.diagnostics import CompilationError, Position
from ..runtime.library import load, write_library
from ..runtime.program import describe_kernel
from ..targets import newest_first
from . import choices, static
from .compiled import Compiled, compiled, linearised
from .inputs import Node, Slot
from .trace import Traced


def parts(forms: Sequence[Compiled]) -> tuple[list[dict[str, Any]], list[dict[str, Any]], dict[str, str]]:
    """Kernels and programs of a manifest, and the files, of one program compiled for several targets and buckets.

    Kernels are named after the program, "sema.attend", so that several programs share a library. The program's IR goes
    with it, for those who tune the library. Of each target, forms with guards come before the one without.
    """
    kernels: dict[str, dict[str, Any]] = {}
    programs: dict[str, dict[str, Any]] = {}
    files: dict[str, str] = {}
    # the newest target comes first: it is preferred
    for form in newest_first(forms):
        file = f"{form.traced.name}.{form.target}{_tag(form)}.ptx"
        ir = f"{form.traced.name}.attn.mlir"
        files[ir] = form.traced.text
        facts = {kernel["entry"]: kernel for kernel in form.info["kernels"]}
        for plan in form.info["programs"]:
            known = programs.setdefault(plan["name"], {**plan, "variants": []})
            if plan["name"] == form.traced.name:
                known["source"] = {"ir": ir, "differentiate": form.differentiate}
            if form.guards and not _concerns(form, plan["name"]):
                continue
            files[file] = form.ptx
            for variant in plan["variants"]:
                for launch in variant["launches"]:
                    files |= _add_kernel(kernels, form, file, facts[launch["kernel"]])
            known["variants"] += [_renamed(variant, form) for variant in plan["variants"]]
    return list(kernels.values()), list(programs.values()), files


def _tag(form: Compiled) -> str:
    """What tells the names of a tuned form, or a linearised one, from those of the default."""
    if not form.schedules:
        return form.function
    return ".t" + hashlib.sha256(json.dumps(form.schedules, sort_keys=True).encode()).hexdigest()[:8]


def _concerns(form: Compiled, name: str) -> bool:
    """Whether a function's kernels are among those that the form's schedules are for."""
    backward = name == f"{form.traced.name}.backward"
    return any((".backward." in place) == backward for place in form.schedules)


def _kernel_name(form: Compiled, entry: str) -> str:
    """Of a kernel in the library. Its parameters may differ by target, and so does its name then."""
    return f"{form.traced.name}.{entry}.{form.target}{_tag(form)}"


def _renamed(variant: Mapping[str, Any], form: Compiled) -> dict[str, Any]:
    launches = [{**launch, "kernel": _kernel_name(form, launch["kernel"])} for launch in variant["launches"]]
    guards = {"guards": list(form.guards)} if form.guards else {}
    return {**variant, **guards, "launches": launches}


def _add_kernel(
    kernels: dict[str, dict[str, Any]], form: Compiled, file: str, facts: Mapping[str, Any]
) -> dict[str, str]:
    """Adds a kernel, with its form for aligned inputs before the other where that has tensor maps; gives the files of
    that."""
    name = _kernel_name(form, facts["entry"])
    if name in kernels:
        return {}
    described = describe_kernel(facts, form.target, file)
    kernels[name] = {**described, "name": name, "source": _source(form)}
    made = form.promised
    if made is None or facts["entry"] not in promises.entries_with_maps(made.ptx):
        return {}
    other = next(each for each in made.info["kernels"] if each["entry"] == facts["entry"])
    if [each["type"] for each in other["arguments"]] != [each["type"] for each in facts["arguments"]]:
        return {}
    aligned = file.removesuffix(".ptx") + ".aligned.ptx"
    described["variants"][:0] = describe_kernel(other, form.target, aligned)["variants"]
    return {aligned: made.ptx}


def _source(form: Compiled) -> dict[str, Any]:
    position = form.traced.position
    file, line = (pathlib.Path(position.file).name, position.line) if position else ("<program>", 1)
    return {"file": file, "line": line, "sha256": hashlib.sha256(form.traced.plain.encode()).hexdigest()}


def tuned_forms(traced: Traced, target: str, differentiate: bool) -> list[Compiled]:
    """A program compiled for a target: for each bucket of sizes that ``weft tune`` chose schedules for, and for all
    others."""
    forms = []
    for choice in choices.known(traced.plain, target):
        if choice["schedules"]:
            guards = tuple({"size": size, "at_least": low, "below": high} for size, low, high in choice["guards"])
            form = compiled(traced, target, differentiate, choice["schedules"])
            forms.append(dataclasses.replace(form, guards=guards))
    forms.append(compiled(traced, target, differentiate))
    return [_with_promised(form) for form in forms]


def _with_promised(form: Compiled) -> Compiled:
    """A form that knows the one for aligned inputs, where somebody did not promise them and bulk copies need them."""
    traced = form.traced.aligned()
    if traced is None or not promises.copies_boxes(form.target):
        return form
    made = compiled(traced, form.target, form.differentiate, form.schedules)
    return dataclasses.replace(form, promised=made if promises.entries_with_maps(made.ptx) else None)


def tangent_forms(traced: Traced, target: str, differentiate: bool) -> list[Compiled]:
    """The linearised functions of a program for a target: of its forward, and of its backward, by which there are
    second derivatives, where that has tangents. Raises CompilationError at the line of what has none."""
    forms = [linearised(traced, target, ".forward" if differentiate else "", ())]
    if differentiate:
        with contextlib.suppress(CompilationError):
            forms.append(linearised(traced, target, ".backward", ()))
    return forms


def _forms(traced: Traced, target: str, differentiate: bool, tangents: bool) -> list[Compiled]:
    """All that a library has of a program for a target."""
    return tuned_forms(traced, target, differentiate) + (
        tangent_forms(traced, target, differentiate) if tangents else []
    )


def compile_program(
    declare: Callable[[str | None, Mapping[str, Any] | None], Traced],
    target: str | Iterable[str] | None,
    signature: str | None,
    out: str | os.PathLike[str] | None,
    constants: Mapping[str, Any] | None = None,
    differentiate: bool = True,
    cubin: cubins.Asked = False,
    tangents: bool = False,
) -> Any:
    """Compile a program for one or more targets and write the library ``out``; gives it opened. See Program.compile,
    whose ``declare`` this takes."""
    names = targets.asked(target)
    differentiate = static.truth("differentiate", differentiate)
    tangents = static.truth("tangents", tangents)
    if not isinstance(signature, (str, type(None))):
        raise TypeError(f"expected 'signature' to be a text, but got {places.described(signature)}")
    if not isinstance(constants, (Mapping, type(None))):
        raise TypeError(f"expected 'constants' to be a dict of values by name, but got {places.described(constants)}")
    if out is None and (len(names) != 1 or cubin or tangents):
        asking = "a cubin" if cubin else "tangents" if tangents else f"{len(names)} targets"
        raise TypeError(f"expected 'out', the directory of the library, for {asking}")
    assembled_for = cubins.asked(cubin, names)
    traced = declare(signature, constants)
    _check_results(traced)
    if out is None:
        return compiled(traced, names[0], differentiate).library
    kernels, programs, files = parts([form for name in names for form in _forms(traced, name, differentiate, tangents)])
    described, codes = cubins.assembled(kernels, files, assembled_for)
    write_library(out, kernels, {**files, **codes}, programs, described)
    return load(out)


def _check_results(traced: Traced) -> None:
    """Refuse results that a library's program would not give: it gives its outputs, each once, in order."""

    def walk(part: Any) -> Iterator[Any]:
        yield from [part] if not isinstance(part, Node) else (each for _, inner in part.parts for each in walk(inner))

    for number, result in enumerate(walk(traced.result)):
        if isinstance(result, Slot) and result.number == number:
            continue
        given = (
            "None"
            if not isinstance(result, Slot)
            else f"the argument '{traced.inputs[-1 - result.number].name}'"
            if result.number < 0
            else f"result {result.number} again"
        )
        raise CompilationError(
            f"expected each result of '{traced.name}' to be a tensor of its own, as a library gives them, but result "
            f"{number} is {given}",
            traced.position,
            remedy="leave it out",
        )


class Declared(Protocol):
    """What is asked of a program here: to be traced for the inputs that its annotations declare."""

    position: Position | None

    def declare(self) -> Traced:
        """See Program.declare."""


@dataclass(frozen=True)
class Step:
    """One program compiled for one target: the ``number``-th of ``count`` to be done."""

    program: str
    target: str
    seconds: float
    number: int
    count: int


def compile_programs(
    programs: Sequence[Declared],
    target: str | Iterable[str] | None,
    out: str | os.PathLike[str],
    *,
    differentiate: bool = True,
    workers: int | None = None,
    cubin: cubins.Asked = False,
    tangents: bool = False,
    progress: Callable[[Step], None] = lambda step: None,
) -> Any:
    """Compile programs whose parameters' annotations declare their inputs, each for every target, into one library;
    gives it opened. ``cubin`` is as in ``weft.compile``. ``workers`` threads compile, as many as there are processors
    unless given; ``progress`` is called after each program and target. ``tangents`` is as in ``Program.compile``.

    Raises CompilationError at the program's line: for the first, in order, that cannot be compiled, and for two of one
    name.
    """
    names = targets.asked(target)
    assembled_for = cubins.asked(cubin, names)
    traced = [_declared(program) for program in programs]
    known: dict[str, Traced] = {}
    for each in traced:
        _check_results(each)
        other = known.setdefault(each.name, each)
        if other is not each:
            message = f"expected programs of different names in one library, but got two of '{each.name}'"
            raise CompilationError(message, each.position, notes=[f"the other is at {other.position}"])
    jobs = [(each, name) for each in traced for name in names]
    numbers = itertools.count(1)

    def work(job: tuple[Traced, str]) -> list[Compiled]:
        started = time.perf_counter()
        found = _forms(*job, differentiate, tangents)
        progress(Step(job[0].name, job[1], time.perf_counter() - started, next(numbers), len(jobs)))
        return found

    from concurrent.futures import ThreadPoolExecutor  # slow to load, and only compiling ahead needs it

    with ThreadPoolExecutor(workers or os.cpu_count()) as pool:
        forms = list(pool.map(work, jobs))
    kernels: list[dict[str, Any]] = []
    plans: list[dict[str, Any]] = []
    files: dict[str, str] = {}
    for each in traced:
        found = parts([form for job, made in zip(jobs, forms, strict=True) if job[0] is each for form in made])
        kernels += found[0]
        plans += found[1]
        files |= found[2]
    described, codes = cubins.assembled(kernels, files, assembled_for)
    write_library(out, kernels, {**files, **codes}, plans, described)
    return load(out)


def _declared(program: Declared) -> Traced:
    """A program traced for the inputs that its annotations declare. Errors are at its line."""
    try:
        return program.declare()
    except CompilationError as error:
        if error.position is None:
            error.position = program.position
        raise
