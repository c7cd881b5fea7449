# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Bundles: the candidates of a tuning run, compiled, with inputs and references, for machines that have a GPU and the
runtime alone. ``weft tune --bundle`` writes one, ``weft measure`` measures it, and the records come back.

    bundle.json     the program, target and sizes; of each candidate its library, schedules, functions and PTX's hash
    candidates/N/   a library (docs/LibraryFormat.md)
    cases/          inputs and references, of the hashes that bundle.json says
"""

from __future__ import annotations

import hashlib
import json
import os
import pathlib
from collections.abc import Iterator, Mapping
from typing import Any

from weft.errors import Error
from weft.runtime.library import Library, load, write_library

from . import records
from .gpu import GpuTimer

FORMAT = 1
_PARTS = ("", ".forward", ".backward")


class Writer:
    """Takes the place of a GPU's timer in a tuning run: each compiled candidate becomes a library of the bundle."""

    name, policy = "a bundle", "none"

    def __init__(self, folder: pathlib.Path) -> None:
        self._folder = folder
        self.candidates: list[dict[str, Any]] = []

    def measure(self, record: Mapping[str, Any], job: Any) -> dict[str, Any]:
        """Write a candidate. What comes back is no measurement, and is not kept."""
        path = f"candidates/{len(self.candidates):04}"
        (self._folder / path).mkdir(parents=True)
        library = Library.from_compiled(record["info"], record["ptx"], job.target)
        files = {
            variant["ptx"]: library.handle.ptx(kernel["name"], number)
            for kernel in library.manifest["kernels"]
            for number, variant in enumerate(kernel["variants"])
        }
        write_library(str(self._folder / path), library.manifest["kernels"], files, library.manifest["programs"])
        self.candidates.append(
            {
                "library": path,
                "ptx": record["code"],
                "schedules": dict(job.schedules),
                "checked": list(job.checked),
                "counted": list(job.counted),
            }
        )
        return {"status": "failed", "reason": "it is measured elsewhere"}

    def finish(self, facts: Mapping[str, Any], cases: Mapping[str, bytes]) -> None:
        """Write the inputs and references, and what the bundle holds."""
        (self._folder / "cases").mkdir()
        for name, data in cases.items():
            (self._folder / "cases" / name).write_bytes(data)
        hashes = {name: hashlib.sha256(data).hexdigest() for name, data in cases.items()}
        whole = {"format": FORMAT, **facts, "candidates": self.candidates, "cases": hashes}
        (self._folder / "bundle.json").write_text(json.dumps(whole, indent=1), encoding="utf-8")


def open_bundle(path: str | os.PathLike[str]) -> dict[str, Any]:
    """What a bundle holds, its cases checked against their hashes. Raises weft.Error where it is none, or altered."""
    folder = pathlib.Path(path)
    try:
        facts = json.loads((folder / "bundle.json").read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise Error(f"expected a bundle of 'weft tune --bundle', but '{folder}' is none: {error}") from error
    if not isinstance(facts, dict) or facts.get("format") != FORMAT:
        got = facts.get("format") if isinstance(facts, dict) else type(facts).__name__
        raise Error(f"expected a bundle of format {FORMAT}, but '{folder}' has {got}: write it with this Weft")
    if wrong := _wrong(facts):
        raise Error(f"'{folder}/bundle.json': {wrong}")
    for name, digest in facts["cases"].items():
        file = folder / "cases" / name
        if not file.is_file() or hashlib.sha256(file.read_bytes()).hexdigest() != digest:
            raise Error(f"'{file}' is missing, or not what the bundle was written with")
    return facts


def _wrong(facts: Mapping[str, Any]) -> str:
    """What is amiss in a bundle.json, or "". Names of files stay within the bundle."""
    kinds = {"program": str, "name": str, "target": str, "sizes": dict, "candidates": list, "cases": dict}
    for name, kind in kinds.items():
        if not isinstance(facts.get(name), kind):
            return f"expected '{name}' to be {kind.__name__}"
    fields = {"library": str, "ptx": str, "schedules": dict, "checked": list, "counted": list}
    for each in facts["candidates"]:
        if not isinstance(each, dict) or any(not isinstance(each.get(n), kind) for n, kind in fields.items()):
            return f"expected a candidate to have {', '.join(fields)}"
        if any(part not in _PARTS for part in (*each["checked"], *each["counted"])):
            return f"expected functions among {_PARTS}"
    for name in (*facts["cases"], *(each["library"] for each in facts["candidates"])):
        if pathlib.PurePath(name).is_absolute() or ".." in pathlib.PurePath(name).parts:
            return f"expected names of files within the bundle, but got '{name}'"
    return ""


def measure_bundle(path: str | os.PathLike[str], device: Any, out: str | os.PathLike[str]) -> Iterator[dict[str, Any]]:
    """Measure a bundle's candidates on a device, each checked first, and append the records to the file ``out``, each
    as soon as it is there. What ``out`` has of this device already is not measured again. Gives all the records."""
    folder, facts = pathlib.Path(path), open_bundle(path)
    timer = GpuTimer(device)
    before = records.by_key(records.read(out).records if pathlib.Path(out).exists() else ())
    for each in facts["candidates"]:
        key = {
            "ptx": each["ptx"],
            "target": facts["target"],
            "device": timer.name,
            "policy": timer.policy,
            "functions": [facts["name"] + part for part in each["counted"]],
            "sizes": facts["sizes"],
        }
        if known := records.derived(before.get(records.key_of(key), ())):
            yield known
            continue
        library = load(folder / each["library"])
        found = timer.judged(library, facts["name"], str(folder / "cases"), each["checked"], each["counted"])
        of = {"program": facts["program"], "name": facts["name"], "tuned_for": facts["sizes"]}
        record = records.measured(key, {**found, "launches": []}, schedules=each["schedules"], **of)
        records.append(out, [record])
        before[records.key_of(record)] = [record]  # candidates may have the same code
        yield record
