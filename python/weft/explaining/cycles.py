# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""The loops of what was compiled, by the loop model: behind ``weft explain --cycles``."""

from __future__ import annotations

import dataclasses
import pathlib
from collections.abc import Iterable
from typing import Any

from weft.cycles.report import KernelCycles, LoopCycles, of_ptx
from weft.targets import Gpu

from .way import Way

_SHOWN = 6  # places where warps wait
_LEAST = 0.005  # of the time: what a unit must be busy, or a wait take, to be named


def cycles(way: Way, gpu: Gpu) -> list[KernelCycles]:
    """The loops of every kernel. Raises weft.Error as ``weft.cycles.report.of_ptx`` does."""
    return of_ptx(way.ptx, way.target, gpu, way.info["kernels"])


def as_dicts(kernels: Iterable[KernelCycles]) -> list[dict[str, Any]]:
    """Plain data: all that is known of each kernel, loop and instruction."""
    found = []
    for kernel in kernels:
        described = dataclasses.asdict(kernel)
        for loop, plain in zip(kernel.loops, described["loops"], strict=True):
            plain |= {"limit": loop.limit, "waits": loop.waits}
        found.append(described)
    return found


def text(kernels: Iterable[KernelCycles]) -> str:
    """For readers: the loops that no other is in, each with what bounds it and where its warps wait."""
    lines = []
    for kernel in kernels:
        lines.append(f"{kernel.name} on {kernel.gpu}: {_count(kernel.warps, 'warp')} a block, "
                     f"{_count(kernel.resident, 'block')} a multiprocessor")  # fmt: skip
        shown = [loop for loop in kernel.loops if loop.inner]
        lines += [line for loop in shown for line in _of_loop(loop)] if shown else ["  no loop"]
    lines.append(
        "modelled, not timed: every load hits the L2 cache, every wait for a copy finds it there; no clock, no power"
    )
    return "\n".join(lines)


def _of_loop(loop: LoopCycles) -> Iterable[str]:
    head = f"  loop at {loop.first:04x}: {loop.cycles:,.0f} cycles, {loop.instructions} instructions a warp"
    if loop.matrix_cycles:
        busy, times = loop.matrix_cycles / loop.cycles, loop.cycles / loop.matrix_cycles
        head += f"; matrix units {loop.matrix_cycles:,.0f}, busy {busy:.0%}, {times:.2f} × their time"
    if abs(loop.apart / loop.cycles - 1) > _LEAST:
        head += f"; {loop.apart:,.0f} cycles where warps begin apart"
    yield f"{head}; bound by {loop.limit}"
    units = sorted(((name, share) for name, share in loop.busy.items() if share >= _LEAST), key=lambda each: -each[1])
    yield "    busy: " + ", ".join(f"{name} {share:.0%}" for name, share in units)
    waits = [f"{reason} {count:,.0f}" for reason, count in loop.waits.items() if count >= _LEAST * loop.cycles]
    yield "    a warp waits: " + (", ".join(waits) or "never")
    for place, cycles, reason in _places(loop)[:_SHOWN]:
        yield f"    {cycles:8,.0f}  {place}: {reason}"


def _places(loop: LoopCycles) -> list[tuple[str, float, str]]:
    """Source lines by the cycles that a warp waits there, most first, with the longest reason; instructions, where all
    come from one line."""
    found: dict[str, dict[str, float]] = {}
    several = len({line.place for line in loop.lines}) > 1
    for line in loop.lines:
        file, _, number = line.place.rpartition(":")
        place = f"{pathlib.Path(file).name}:{number}" if file and several else f"{line.address:04x} {line.text}"
        for reason, cycles in line.waits.items():
            reasons = found.setdefault(place, {})
            reasons[reason] = reasons.get(reason, 0.0) + cycles
    rows = [(place, sum(waits.values()), max(waits, key=lambda each: waits[each])) for place, waits in found.items()]
    return sorted(rows, key=lambda row: (-row[1], row[0]))


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"
