# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""The figures of one launch: what the simulator counted of it, and what ptxas says of its kernel."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import weft.simulator
from weft.compiler import entries, ptxas
from weft.simulator.cost import Figures


@dataclass(frozen=True)
class Compiled:
    """What a launch's counters do not tell of its kernel."""

    name: str
    warps: int
    stages: int
    shared_bytes: int
    registers: int | None
    spill_bytes: int
    code: int
    columns: int
    """of tensor memory"""


def compiled(ptx: str, target: str, kernels: Iterable[Mapping[str, Any]]) -> dict[str, Compiled]:
    """Kernels of PTX, each described by "entry", "num_warps", "num_stages" and "shared_bytes", by entry, with what
    ptxas says of them, where it is there: None as registers where it is not."""
    described = {each["entry"]: each for each in kernels}
    resources = ptxas.figures(ptx, target, list(described)) or {}
    return {entry: _compiled(ptx, each, resources.get(entry)) for entry, each in described.items()}


def fingerprints(ptx: str, info: Mapping[str, Any]) -> dict[str, str]:
    """What is run of each kernel, by entry: its code, and how plans launch it."""
    grids: dict[str, set[tuple[str, ...]]] = {}
    for program in info["programs"]:
        for launch in program["variants"][0]["launches"]:
            grids.setdefault(launch["kernel"], set()).add(tuple(map(str, launch["grid"])))
    codes = entries.fingerprints(ptx, grids)
    return {
        each[
            "entry"
        ]: f"{codes[each['entry']]} {each['num_warps']} {each['shared_bytes']} {sorted(grids[each['entry']])}"
        for each in info["kernels"]
        if each["entry"] in grids
    }


def _compiled(ptx: str, kernel: Mapping[str, Any], resources: ptxas.Figures | None) -> Compiled:
    return Compiled(
        name=kernel["entry"],
        warps=kernel["num_warps"],
        stages=kernel["num_stages"],
        shared_bytes=kernel["shared_bytes"],
        registers=resources.registers if resources else None,
        spill_bytes=resources.spill_bytes if resources else 0,
        code=(resources.instructions if resources else None) or _instructions(ptx, kernel["entry"]),
        columns=entries.tensor_columns(ptx, kernel["entry"]),
    )


def _instructions(ptx: str, entry: str) -> int:
    body = ptx.partition(f".entry {entry}(")[2].partition("\n}")[0]
    return len(re.findall(r";\s*$", body, re.M))


def figures(kernel: Compiled, report: weft.simulator.Report, blocks: int, ran: int, **known: Any) -> Figures:
    """The figures of a launch of ``blocks`` blocks, of which ``ran`` were counted, and what is ``known`` better."""
    return report.figures(
        times=blocks / ran,
        kernel=kernel.name,
        blocks=blocks,
        warps=kernel.warps,
        stages=kernel.stages,
        shared_bytes=kernel.shared_bytes,
        registers=kernel.registers,
        spill_bytes=kernel.spill_bytes,
        code=kernel.code,
        columns=kernel.columns,
        **known,
    )
