# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Tuning a library: its programs' IR lies in it, so that neither their source nor what they were called with is needed.
The library is written anew with a plan for each bucket.
"""

from __future__ import annotations

import dataclasses
import json
import os
import pathlib
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from weft.compiler import cubins, ptxas
from weft.compiler.diagnostics import Position
from weft.compiler.lower import native_context
from weft.programs.choices import program_hash
from weft.programs.compiled import compiled
from weft.programs.libraries import parts, tuned_forms
from weft.programs.trace import Traced
from weft.runtime.library import load, write_library

from .recorded import Recorded
from .result import Result
from .run import keep, timer
from .space import Schedule, kernels
from .tuner import Options, Subject, tune_subject


@dataclasses.dataclass(frozen=True)
class Source:
    """A program of a library that can be compiled again."""

    traced: Traced
    differentiate: bool
    targets: tuple[str, ...]


def sources(library: Any) -> list[Source]:
    """The programs of a library whose IR it holds."""
    found = []
    for program in library.manifest.get("programs", []):
        kept = program.get("source")
        if not kept:
            continue
        if not isinstance(kept, dict) or kept.get("ir") not in [part["file"] for part in library.manifest["parts"]]:
            raise ValueError(
                f"expected the 'source' of '{program['name']}' to name a part of '{library.path}', but got {kept!r}"
            )
        text = pathlib.Path(library.path, kept["ir"]).read_text(encoding="utf-8")
        targets = tuple(dict.fromkeys(variant["target"] for variant in program["variants"]))
        found.append(Source(_traced(library, program, text), bool(kept.get("differentiate")), targets))
    return found


def _traced(library: Any, program: Mapping[str, Any], text: str) -> Traced:
    plain = native_context().context.parse(text, program["name"]).text()
    entry = next((launch["kernel"] for v in program["variants"] for launch in v["launches"]), None)
    source = next((k.get("source") for k in library.manifest["kernels"] if k["name"] == entry), None)
    position = Position(source["file"], source["line"], 1) if source else None
    return Traced(program["name"], position, text, plain, (), (), None, (), ())


def tune_library(
    path: str | os.PathLike[str], sizes: Sequence[Mapping[str, int]], options: Options, targets: Sequence[str] = ()
) -> Iterator[Result]:
    """Tune every program of a library that has attention, for its own targets or those given, and for each of the
    sizes; then write it anew. Raises ValueError where there is nothing to tune."""
    options.time = options.time or timer()
    yield from _tuned(path, lambda source, target: sizes if not targets or target in targets else (), options)


def tune_library_by_records(
    path: str | os.PathLike[str], known: Sequence[Mapping[str, Any]], device: str | None = None
) -> Iterator[Result]:
    """Choose the schedules of a library's programs by records of a device, for the sizes that these are of; then write
    it anew. ValueError where several devices have records and none is named, or none of them is of its programs."""
    timed = [record for record in known if record["seconds"]]
    devices = sorted({record["device"] for record in timed})
    if device is None and len(devices) != 1:
        raise ValueError(
            f"expected --device, one of {', '.join(devices) or 'those of timed records, of which none came'}"
        )
    options = Options(time=Recorded(timed, device or devices[0]), candidates={})

    def sizes(source: Source, target: str) -> list[dict[str, int]]:
        program = program_hash(source.traced.plain)
        mine = (each for each in timed if each["program"] == program and each["target"] == target)
        found = {json.dumps(each["sizes"], sort_keys=True): each["sizes"] for each in mine}
        return [dict(each) for each in found.values()]

    def candidates(source: Source, target: str) -> dict[str, list[Schedule]]:
        program, found = program_hash(source.traced.plain), dict[str, list[Schedule]]()
        for each in timed:
            if each["program"] == program and each["target"] == target and len(each["schedules"]) == 1:
                ((place, schedule),) = each["schedules"].items()
                found.setdefault(place, []).append(tuple(schedule))
        return found

    yield from _tuned(path, sizes, options, candidates)


def _tuned(
    path: str | os.PathLike[str],
    sizes: Callable[[Source, str], Sequence[Mapping[str, int]]],
    options: Options,
    candidates: Callable[[Source, str], Mapping[str, Sequence[Schedule]]] | None = None,
) -> Iterator[Result]:
    library = load(path)
    known = sources(library)
    if not known:
        raise ValueError(
            f"expected a library with the IR of its programs, but '{library.path}' has none: compile it with this Weft"
        )
    some = False
    for source in known:
        for target in source.targets:
            wanted = sizes(source, target)
            if not wanted or not _has_attention(source, target):
                continue
            mine = dataclasses.replace(options, candidates=candidates(source, target)) if candidates else options
            for each in wanted:
                some = True
                subject = Subject(source.traced.name, source.traced.text, source.traced.plain, source.differentiate)
                result = tune_subject(subject, target, each, mine)
                keep(source.traced.plain, result)
                yield result
    if not some:
        raise ValueError(f"expected a program with attention in '{library.path}' that can be tuned, but it has none")
    rewrite(library, known)


def _has_attention(source: Source, target: str) -> bool:
    return bool(kernels(compiled(source.traced, target, source.differentiate).info))


def rewrite(library: Any, known: Sequence[Source]) -> None:
    """Write a library anew, its programs with all that was chosen for them, and all else as it is."""
    kernels: list[dict[str, Any]] = []
    programs: list[dict[str, Any]] = []
    files: dict[str, str | bytes] = {}
    for source in known:
        forms = [form for target in source.targets for form in tuned_forms(source.traced, target, source.differentiate)]
        mine = parts(forms)
        kernels += mine[0]
        programs += mine[1]
        files |= mine[2]
    remade = {program["name"] for program in programs}
    replaced = {launch["kernel"] for each in library.manifest.get("programs", []) if each["name"] in remade
                for variant in each["variants"] for launch in variant["launches"]}  # fmt: skip
    for program in library.manifest.get("programs", []):
        if program["name"] not in remade:
            programs.append(program)
    for kernel in library.manifest["kernels"]:
        if kernel["name"] not in replaced:
            kernels.append(kernel)
            for variant in kernel["variants"]:
                files[variant["ptx"]] = pathlib.Path(library.path, variant["ptx"]).read_bytes()
    described, codes = _cubins(library, kernels, files)
    write_library(library.path, kernels, {**files, **codes}, programs, described)


def _cubins(
    library: Any, kernels: Sequence[Mapping[str, Any]], files: Mapping[str, str | bytes]
) -> tuple[cubins.Described, dict[str, bytes]]:
    """The cubins of a library that is written anew, for the targets that it had some for: those of its PTX have gone
    with it. Without ptxas there are none, and a warning."""
    names = tuple(dict.fromkeys(each["target"] for each in library.cubins))
    if names and ptxas.find_tool("ptxas") is None:
        warnings.warn(
            f"'{library.path}' is written without its cubins, which were of its former PTX: ptxas was not found; "
            "GPUs compile the PTX when they load it",
            stacklevel=4,
        )
        return [], {}
    return cubins.assembled(kernels, files, names)
