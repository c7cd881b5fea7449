# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Runs PTX on the CPU, strictly: any PTX text, NumPy arrays as device buffers, a report of what is wrong and what it
costs.

    report = weft.simulator.launch(ptx, "add", grid=8, block=128, args=[x, y, z, np.int32(n)])
    assert not report.findings
"""

from __future__ import annotations

import dataclasses
import functools
import math
import os
import pathlib
import re
from collections.abc import Sequence
from typing import Any, NamedTuple

from weft.native import load as _load
from weft.simulator.arguments import Buffer, packed
from weft.simulator.cost import Figures, gpu_of
from weft.simulator.profile import Line, Profile
from weft.simulator.tensor_maps import SimulatorError, TensorMap, buffer_of, tensor_map
from weft.simulator.timeline import Timeline, trace
from weft.simulator.traffic import Touched
from weft.targets import Gpu

__all__ = [
    "Finding",
    "Launch",
    "Line",
    "Profile",
    "Report",
    "SimulatorError",
    "TensorMap",
    "Timeline",
    "launch",
    "tensor_map",
]


@dataclasses.dataclass(frozen=True)
class Finding:
    """One thing wrong with a program, at one place; ``count`` says how often it was seen there."""

    kind: str
    message: str
    kernel: str
    line: int
    source: str
    cta: tuple[int, int, int]
    warp: int
    lane: int
    other: str
    count: int

    def __str__(self) -> str:
        place = f"line {self.line}" + (f" ({self.source})" if self.source else "")
        return f"{self.kind}: {place}: {self.message}"


@dataclasses.dataclass(frozen=True)
class Launch:
    """What was launched: the facts of a kernel's time that no counter has."""

    kernel: str
    target: str
    """that the PTX names"""
    grid: tuple[int, int, int]
    """of blocks: of a persistent kernel no more than the multiprocessors, where the launch gave that of its programs"""
    blocks: int
    """how many of the grid's ran"""
    threads: int
    """of a block"""
    shared_bytes: int
    """of a block, those that the PTX declares included"""
    stages: int
    """how many tiles of a loop are on their way or worked on at once: 1 without asynchronous copies"""
    instructions: int
    """in the PTX"""


@dataclasses.dataclass(frozen=True)
class Report:
    """What a launch found, counted and printed."""

    findings: list[Finding]
    advisories: list[Finding]
    counters: dict[str, Any]
    profile: Profile
    output: str
    launch: Launch

    def timeline(self, gpu: str | Gpu | None = None, **known: Any) -> Timeline:
        """The launch's modelled time on a GPU, by default the first of the PTX's target, as trace events for Perfetto.
        ``known`` is what ``figures`` takes."""
        return trace([self.figures(**known)], self.gpu(gpu))

    def figures(self, times: float | None = None, **known: Any) -> Figures:
        """What the cost model is fed with: counters, ``times`` as many, by default those of the whole grid where only
        some of its blocks ran; more are of further batches and heads, which share nothing with these. ``known`` are
        fields that are known better, such as ``registers=168`` from ptxas."""
        facts, total = self.launch, self.profile.total()
        whole = math.prod(facts.grid) / max(facts.blocks, 1)
        times = whole if times is None else times
        traffic = self.profile.traffic(times)
        found = Figures(
            kernel=facts.kernel,
            blocks=math.prod(facts.grid),
            warps=-(-facts.threads // 32),
            stages=facts.stages,
            shared_bytes=facts.shared_bytes,
            registers=None,
            spill_bytes=0,
            code=facts.instructions,
            warp_instructions=total.warp_instructions * times,
            special=self.counters["by_class"].get("special", 0) * times,
            mma_macs=self.profile.matrix_products(times),
            sectors=traffic.sectors,
            bytes=traffic.once,
            shared_wavefronts=total.shared_wavefronts * times,
            barriers=(self.counters["barriers"] + self._waits_of_one_warp()) * times,
            added=traffic.added,
            held=self.profile.traffic(whole).held,
        )
        return dataclasses.replace(found, **known)

    def _waits_of_one_warp(self) -> int:
        """How often the warp of a block of one has waited for its copies: it does so at barriers of its own lanes."""
        if self.launch.threads > 32:
            return 0
        return sum(line.warp_instructions for line in self.profile if line.text.startswith("bar.warp.sync"))

    def gpu(self, named: str | Gpu | None = None) -> Gpu:
        """The GPU of that name, or the first of the PTX's target."""
        return named if isinstance(named, Gpu) else gpu_of(self.launch.target, named)


def launch(
    ptx: str | os.PathLike[str],
    entry: str,
    grid: int | Sequence[int],
    block: int | Sequence[int],
    args: Sequence[Any],
    *,
    shared: int = 0,
    cluster: int | Sequence[int] = (1, 1, 1),
    checks: str = "all",
    seed: int = 0,
    schedules: int = 1,
    threads: int = 0,
    limit: int = 0,
    sample: int = 0,
    memory: Sequence[Any] = (),
    approximations: str = "close",
) -> Report:
    """Run one entry of PTX, a text or the path of a file.

    args: NumPy arrays are device buffers, changed in place (arrays that overlap share their memory); NumPy scalars
    and Python numbers are passed by value, np.void as structs, tuples of arrays, tensor maps, bytes and NumPy scalars
    as structs with C's layout, tensor maps as their 128 bytes. bf16 and fp8 travel as uint16 and uint8.
    checks: "all", "none", or some of uninitialised, races, async, barriers; bounds are always checked.
    seed: 0 runs warps in order, others interleave them; schedules: how many interleavings to run and compare.
    threads: CPU threads, 0 for all; results do not depend on it.
    limit: warp instructions after which the launch ends with a deadlock finding, 0 for none.
    sample: how many of the grid's blocks run, spread over all of it; 0 for all. Counters are theirs alone.
    memory: NumPy arrays that the kernel reaches by their addresses, as tables of pointers hold them. They stay where
    they are, without guards around them, and so do arguments that overlap them.
    approximations: "close", or "loose": what ``ex2.approx`` and the like give is as far off as PTX allows.
    Raises SimulatorError where the PTX or the launch is no good; a program at fault gives findings instead.
    """
    for option, chosen, such in (("checks", checks, "all"), ("approximations", approximations, "loose")):
        if not isinstance(chosen, str):
            raise SimulatorError(f"expected '{option}' to be text, such as '{such}', but got {chosen!r}")
    _whole("seed", seed, None)
    for option, value, least in (
        *(("shared", shared, 0), ("schedules", schedules, 1), ("threads", threads, 0)),
        *(("limit", limit, 0), ("sample", sample, 0)),
    ):
        _whole(option, value, least)
    reached = _buffers(memory)
    text, name = _read(ptx)
    module = _module(text, name, approximations)
    parameters = module.parameters(entry)
    if parameters is None:
        raise SimulatorError(f"no entry '{entry}' in {name}: it has {', '.join(map(repr, module.entries)) or 'none'}")
    if len(args) != len(parameters):
        raise SimulatorError(f"expected {len(parameters)} arguments of '{entry}', but got {len(args)}")
    given = [packed(value, *parameter) for value, parameter in zip(args, parameters, strict=True)]
    raw = module.launch(
        entry,
        given,
        grid=_three(grid),
        block=_three(block),
        cluster=_three(cluster),
        shared=shared,
        checks=checks,
        seed=seed & (2**64 - 1),
        schedules=schedules,
        threads=threads,
        limit=limit,
        sample=sample,
        memory=reached,
    )
    return Report(
        findings=[Finding(**finding) for finding in raw["findings"]],
        advisories=[Finding(**finding) for finding in raw["advisories"]],
        counters=raw["counters"],
        profile=Profile(entry, raw["profile"], [Touched(*each) for each in raw["touched"]]),
        output=raw["output"],
        launch=_launched(text, entry, (raw["grid"], _three(block)), shared, sample),
    )


def _launched(text: str, entry: str, sizes: tuple[Sequence[int], Sequence[int]], shared: int, sample: int) -> Launch:
    grid, block = (tuple(each) for each in sizes)
    written = _written(text, entry)
    count = math.prod(grid)
    return Launch(
        kernel=entry,
        target=written.target,
        grid=(grid[0], grid[1], grid[2]),
        blocks=min(sample or count, count),
        threads=math.prod(block),
        shared_bytes=shared + written.shared_bytes,
        stages=written.stages,
        instructions=written.instructions,
    )


class _Written(NamedTuple):
    """The facts of a launch that the PTX has."""

    target: str
    shared_bytes: int
    stages: int
    instructions: int


@functools.lru_cache(maxsize=64)
def _written(text: str, entry: str) -> _Written:
    named = re.search(r"^\s*\.target\s+(\w+)", text, re.M)
    body = text.partition(f".entry {entry}(")[2].partition("\n}")[0]
    static = re.findall(r"^\s*\.shared\s.*?\.[busf](\d+)\s+\w+\[(\d+)\]", text, re.M)
    pending = [int(count) for count in re.findall(r"cp\.async\.wait_group\s+(\d+)", body)]
    return _Written(
        target=named[1] if named else "",
        shared_bytes=sum(int(bits) // 8 * int(number) for bits, number in static),
        stages=max(pending) + 2 if pending else 1,
        instructions=len(re.findall(r"^\s*[^.\s/].*;\s*$", body, re.M)),
    )


@functools.lru_cache(maxsize=64)
def _module(text: str, name: str, approximations: str = "close") -> Any:
    return _load("_simulator").parse(text, name, approximations)


def _read(ptx: str | os.PathLike[str]) -> tuple[str, str]:
    if isinstance(ptx, str) and ("\n" in ptx or ".version" in ptx):
        return ptx, "<ptx>"
    path = pathlib.Path(ptx)
    try:
        return path.read_text(encoding="latin-1"), str(path)
    except OSError as error:
        raise SimulatorError(f"cannot read PTX from '{path}': {error.strerror}") from error


def _whole(option: str, value: Any, least: int | None) -> None:
    """Refuse an option that is no integer of at least ``least``, of as many bits as the simulator has for it."""
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise SimulatorError(f"expected '{option}' to be an integer, but got {value!r}")
    if least is not None and not least <= value < 2**32:
        raise SimulatorError(f"expected '{option}' to be from {least} to {2**32 - 1}, but got {value}")


def _buffers(memory: Sequence[Any]) -> list[Buffer]:
    """What a launch's memory is, of arrays."""
    import numpy as np

    if not isinstance(memory, (list, tuple)) or not all(isinstance(each, np.ndarray) for each in memory):
        raise SimulatorError(f"expected 'memory' to be a list of arrays, but got {memory!r}")
    return [buffer_of(each) for each in memory]


def _three(counts: int | Sequence[int]) -> list[int]:
    whole = [counts] if hasattr(counts, "__index__") else counts
    if not isinstance(whole, Sequence) or not all(hasattr(count, "__index__") for count in whole):
        raise SimulatorError(f"expected one to three integers, but got {counts!r}")
    given = [int(count) for count in whole]
    if not 1 <= len(given) <= 3 or any(not 0 <= count < 2**32 for count in given):
        raise SimulatorError(f"expected one to three counts, but got {counts!r}")
    return given + [1] * (3 - len(given))
