# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""What a kernel cost, by source line and as a whole, and the least time that a GPU needs for it."""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, overload

from weft.simulator import profile_picture, profile_table
from weft.simulator.traffic import Touched, Traffic, touched_bytes
from weft.targets import Gpu, gpu_named

#: instructions that change memory where it lies, and do not write it over
_ADDITIONS = ("red.", "atom.", "cp.reduce.")


@dataclasses.dataclass(frozen=True)
class Line:
    """What one instruction of the PTX cost, or, in sums, several of them."""

    line: int
    source: str
    text: str
    kind: str
    warp_instructions: int = 0
    thread_instructions: int = 0
    global_sectors_read: int = 0
    global_sectors_written: int = 0
    global_sectors_ideal: int = 0
    global_bytes: int = 0
    shared_wavefronts: int = 0
    shared_wavefronts_ideal: int = 0
    mma_macs: int = 0
    barrier_waits: int = 0
    divergent_branches: int = 0

    @property
    def added(self) -> int:
        """Of the sectors written, those changed in place, by an atomic or a bulk reduction."""
        return self.global_sectors_written if self.text.startswith(_ADDITIONS) else 0

    @property
    def flops(self) -> int:
        """Floating-point operations outside matrix instructions; a fused multiply-add counts two, a pair twice."""
        if self.kind not in ("float", "half", "double"):
            return 0
        words = self.text.split(".")
        each = {"fma": 2, "mad": 2, "add": 1, "sub": 1, "mul": 1, "max": 1, "min": 1, "div": 1, "rcp": 1}.get(
            words[0], 0
        )
        return each * (2 if words[-1].endswith("x2") else 1) * self.thread_instructions

    @property
    def matrix_type(self) -> str:
        """The type of a matrix instruction's factors, empty for others."""
        if self.mma_macs == 0:
            return ""
        known = [word for word in self.text.split(".") if word in _MATRIX_TYPES]
        return _MATRIX_TYPES[known[1] if len(known) > 2 else known[-1]] if known else "f16"


_MATRIX_TYPES = {
    "f16": "f16", "bf16": "bf16", "tf32": "tf32", "f64": "f64", "s8": "s8", "u8": "s8", "s4": "s4", "u4": "s4",
    "b1": "b1", "f32": "f32", "s32": "s32", "e4m3": "e4m3", "e5m2": "e5m2",
}  # fmt: skip

COUNTS = [field.name for field in dataclasses.fields(Line) if field.type == "int" and field.name != "line"]


@dataclasses.dataclass(frozen=True)
class SourceLine:
    """The instructions of one source line (or, without line information, one PTX line) together."""

    place: str
    """"file:line", or "PTX line 12"."""
    total: Line
    by_kind: dict[str, int]
    """Warp instructions by class."""


@dataclasses.dataclass(frozen=True)
class Bound:
    """What one resource of a GPU needs at least, in seconds."""

    resource: str
    seconds: float


@dataclasses.dataclass(frozen=True)
class Roofline:
    """The least time for a kernel on a GPU: the longest of what its resources need."""

    gpu: Gpu
    bounds: list[Bound]
    """Longest first."""
    operations: int
    """Floating-point and matrix operations."""
    bytes: int
    """Moved between the L2 cache and memory."""

    @property
    def limit(self) -> Bound:
        """The resource that decides."""
        return self.bounds[0]

    @property
    def intensity(self) -> float:
        """Operations per byte."""
        return self.operations / self.bytes if self.bytes else float("inf")


class Profile(Sequence[Line]):
    """The executed instructions in the PTX's order: a sequence of Line with sums, a table, JSON and a picture."""

    def __init__(
        self,
        kernel: str,
        lines: Sequence[Line] | Callable[[], Sequence[Mapping[str, Any]]],
        touched: Sequence[Touched] | None = None,
    ) -> None:
        """``lines``, or what gives their fields when they are first asked for: of most launches nobody does.
        ``touched`` are the allocations that the kernel accessed; without, all that it asks for is memory's."""
        self.kernel = kernel
        self._given = lines
        self.touched = None if touched is None else tuple(touched)

    @functools.cached_property
    def _lines(self) -> list[Line]:
        return [Line(**line) for line in self._given()] if callable(self._given) else list(self._given)

    def __reduce__(self) -> tuple[type[Profile], tuple[str, list[Line], tuple[Touched, ...] | None]]:
        return type(self), (self.kernel, self._lines, self.touched)

    @overload
    def __getitem__(self, index: int) -> Line: ...
    @overload
    def __getitem__(self, index: slice) -> list[Line]: ...
    def __getitem__(self, index: int | slice) -> Line | list[Line]:
        return self._lines[index]

    def __len__(self) -> int:
        return len(self._lines)

    def __iter__(self) -> Iterator[Line]:
        return iter(self._lines)

    def total(self) -> Line:
        """All of the kernel."""
        return _sum(self._lines, "")

    def by_source(self) -> list[SourceLine]:
        """Sums by source line, the one with most warp instructions first."""
        groups: dict[str, list[Line]] = {}
        for line in self._lines:
            groups.setdefault(line.source or f"PTX line {line.line}", []).append(line)
        rows = [SourceLine(place, _sum(lines, place), _kinds(lines)) for place, lines in groups.items()]
        return sorted(rows, key=lambda row: -row.total.warp_instructions)

    def by_kind(self) -> dict[str, int]:
        """Warp instructions by class, most first."""
        return _kinds(self._lines)

    def roofline(self, gpu: str | Gpu | None = None, times: float = 1.0) -> Roofline:
        """The least time on a GPU: what issue, arithmetic, matrix units, caches and memory each need. ``times`` as much
        as was counted: a grid's blocks over those that ran.

        Sectors are counted where they leave the multiprocessors, and all are the L2 cache's. Memory's are those that
        the kernel touches, each once, where the cache holds them, and all of them where it does not (traffic.py): too
        long where what it holds is what is asked for next.
        """
        described = gpu if isinstance(gpu, Gpu) else gpu_named(gpu)
        total = self.total()
        traffic = self.traffic(times)
        cycles = described.clock * 1e9 / times
        flops = {kind: times * sum(line.flops for line in self if line.kind in kinds) for kind, kinds in _UNITS.items()}
        bounds = [
            Bound("instruction issue", total.warp_instructions / (described.schedulers * cycles)),
            Bound("shared memory", total.shared_wavefronts / (described.multiprocessors * cycles)),
            Bound("L2 cache", traffic.l2_seconds(described)),
            Bound("global memory", traffic.memory_seconds(described)),
            Bound("float32 arithmetic", flops["float32"] / (described.float32 * 1e9)),
            Bound("float64 arithmetic", flops["float64"] / (described.float64 * 1e9)),
        ]
        macs = self.matrix_products(times)
        for kind, count in macs.items():
            rate = described.matrix.get(kind, described.matrix["f16"])
            bounds.append(Bound(f"{kind} matrix units", 2 * count / (rate * 1e9)))
        bounds = sorted((bound for bound in bounds if bound.seconds > 0), key=lambda bound: -bound.seconds)
        operations = sum(flops.values()) + 2 * sum(macs.values())
        moved = round(traffic.memory_bytes(described))
        return Roofline(described, bounds or [Bound("nothing", 0.0)], round(operations), moved)

    def traffic(self, times: float = 1.0) -> Traffic:
        """What is asked for and touched, ``times`` as much as was counted; where what is touched was not counted,
        memory gives all that is asked for."""
        total = self.total()
        sectors = times * (total.global_sectors_read + total.global_sectors_written)
        once = math.inf if self.touched is None else touched_bytes(self.touched, times)
        return Traffic(sectors, times * sum(line.added for line in self), once, held=once)

    def matrix_products(self, times: float = 1.0) -> dict[str, float]:
        """Multiply-adds of matrix instructions by the type of their factors, ``times`` as many as were counted."""
        found: dict[str, float] = {}
        for line in self:
            if line.mma_macs:
                found[line.matrix_type] = found.get(line.matrix_type, 0) + line.mma_macs * times
        return found

    def as_dict(self, gpu: str | Gpu | None = None) -> dict[str, Any]:
        """Everything, ready for JSON."""
        roofline = self.roofline(gpu)
        return {
            "kernel": self.kernel,
            "total": {name: getattr(self.total(), name) for name in COUNTS},
            "by_class": self.by_kind(),
            "source_lines": [
                {"place": row.place, "by_class": row.by_kind} | {name: getattr(row.total, name) for name in COUNTS}
                for row in self.by_source()
            ],
            "instructions": [dataclasses.asdict(line) for line in self],
            "roofline": {
                "gpu": roofline.gpu.name,
                "source": roofline.gpu.source,
                "operations": roofline.operations,
                "bytes": roofline.bytes,
                "intensity": roofline.intensity if roofline.bytes else None,
                "limit": roofline.limit.resource,
                "bounds": {bound.resource: bound.seconds for bound in roofline.bounds},
            },
        }

    def table(self, gpu: str | Gpu | None = None, rows: int = 20) -> str:
        """Text for a terminal: the costliest source lines, the whole, and the roofline."""
        return profile_table.render(self, gpu, rows)

    def draw(self, path: Any, gpu: str | Gpu | None = None, rows: int = 16) -> None:
        """A picture: .svg, .png or .pdf by the path's ending. Needs matplotlib."""
        profile_picture.draw(self, path, gpu, rows)


_UNITS: dict[str, tuple[str, ...]] = {"float32": ("float", "half"), "float64": ("double",)}


def _sum(lines: Sequence[Line], place: str) -> Line:
    counts = {name: sum(getattr(line, name) for line in lines) for name in COUNTS}
    return Line(line=min((line.line for line in lines), default=0), source=place, text="", kind="", **counts)


def _kinds(lines: Sequence[Line]) -> dict[str, int]:
    counts: dict[str, int] = {}
    for line in lines:
        counts[line.kind] = counts.get(line.kind, 0) + line.warp_instructions
    by_count: Callable[[tuple[str, int]], int] = lambda item: -item[1]  # noqa: E731
    return dict(sorted(counts.items(), key=by_count))
