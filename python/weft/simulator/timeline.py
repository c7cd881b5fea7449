# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""A simulated launch's modelled time as trace events, which Perfetto (ui.perfetto.dev) and Chrome show.

The simulator counts and does not time: the times are the cost model's (cost.py), which ranks schedules. All
multiprocessors are alike to the model, so that the first few are drawn. A block's phases share a resource each; the
model lets them overlap, and they are drawn one after another, each by its share of what the block takes.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from weft.folders import new_file
from weft.simulator.cost import LAUNCH_SECONDS, Estimate, Figures, Round, estimate
from weft.targets import Gpu, target_named

MODELLED = "modelled, not timed"
_PROCESSORS = 8  # multiprocessors that are drawn
_MOST_BLOCKS = 20_000  # that are drawn
#: what a phase is, by the resource that the model names
_PHASES = {
    "device memory": "loads: device memory",
    "L2 cache": "loads: L2 cache",
    "shared memory": "shared memory",
    "matrix units": "products: matrix units",
    "instructions": "instructions",
    "special functions": "special functions",
}


@dataclass(frozen=True)
class Timeline:
    """Trace events of launches one after another. ``seconds`` is the sum of their estimates."""

    events: tuple[dict[str, Any], ...]
    seconds: float
    gpu: str

    def as_dict(self) -> dict[str, Any]:
        """The trace in Chrome's JSON form: times in microseconds."""
        about = {"note": MODELLED, "gpu": self.gpu, "seconds": self.seconds}
        return {"traceEvents": list(self.events), "displayTimeUnit": "ns", "otherData": about}

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write the JSON, to be opened in Perfetto."""
        with new_file(path) as file:
            file.write_text(json.dumps(self.as_dict()), encoding="utf-8")


def trace(launches: Sequence[Figures], gpu: Gpu) -> Timeline:
    """The modelled time of launches on a GPU. Raises ValueError where a multiprocessor holds no block of one."""
    events: list[dict[str, Any]] = [_named("process_name", 0, f"launches on {gpu.name} ({MODELLED})")]
    for processor in range(min(_PROCESSORS, gpu.multiprocessors)):
        events.append(_named("process_name", processor + 1, f"multiprocessor {processor} ({MODELLED})"))
    now = 0.0
    for figures in launches:
        found = estimate(figures, target_named(gpu.target), gpu)
        if figures.blocks and not found.resident:
            raise ValueError(f"a multiprocessor of {gpu.name} holds no block of '{figures.kernel}'")
        events += _launch(figures, found, gpu, now)
        now += found.seconds
    return Timeline(tuple(events), now, gpu.name)


def _launch(figures: Figures, found: Estimate, gpu: Gpu, start: float) -> Iterator[dict[str, Any]]:
    facts = {"note": MODELLED, "blocks": figures.blocks, "blocks at once": found.resident, "bound by": found.limit}
    yield _event(figures.kernel, "launch", 0, 0, start, found.seconds, facts)
    if not figures.blocks:
        return
    yield _event("launch latency", "wait", 0, 0, start, LAUNCH_SECONDS)
    now, first = start + LAUNCH_SECONDS, 0
    for each in found.rounds:
        for _ in range(each.count):
            if first < _MOST_BLOCKS:
                yield from _round(figures, found, gpu, each, now, first)
            now += each.seconds
            first += each.present * gpu.multiprocessors


def _round(
    figures: Figures, found: Estimate, gpu: Gpu, each: Round, start: float, first: int
) -> Iterator[dict[str, Any]]:
    """The blocks that the drawn multiprocessors run side by side, with their phases."""
    for slot in range(each.present):
        for processor in range(min(_PROCESSORS, gpu.multiprocessors)):
            number = first + slot * gpu.multiprocessors + processor
            if number < figures.blocks:
                place = (processor + 1, slot)
                yield _event(f"{figures.kernel}, block {number}", "block", *place, start, each.seconds)
                yield from _phases(found, each, place, start)


def _phases(found: Estimate, each: Round, place: tuple[int, int], start: float) -> Iterator[dict[str, Any]]:
    parts = [("wait: first loads", "wait", each.latency)]
    whole = sum(found.resources.values())
    for resource, seconds in found.resources.items():
        parts.append((_PHASES.get(resource, resource), "work", each.busy * seconds / whole if whole else 0.0))
    parts.append(("wait: loads of the loop", "wait", each.waits))
    for name, category, seconds in parts:
        if seconds > 0:
            yield _event(name, category, *place, start, seconds)
            start += seconds


def _event(
    name: str, category: str, process: int, thread: int, start: float, seconds: float, facts: Any = None
) -> dict[str, Any]:
    """A complete event: what began when, in microseconds, and how long it took."""
    event = {"name": name, "cat": category, "ph": "X", "pid": process, "tid": thread}
    event |= {"ts": start * 1e6, "dur": seconds * 1e6}
    return event | ({"args": facts} if facts else {})


def _named(kind: str, process: int, name: str) -> dict[str, Any]:
    return {"name": kind, "ph": "M", "pid": process, "tid": 0, "ts": 0, "args": {"name": name}}
