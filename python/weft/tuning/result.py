# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""What a tuning run found: every candidate with its figures, what was chosen, and why each other lost."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from weft.simulator.cost import Estimate, Figures

from . import table
from .space import Schedule, spelled


@dataclass(frozen=True)
class Row:
    """One candidate. ``status`` is "chosen", "lost", "dropped" (the target cannot hold it) or "refused" (it does not
    compile, or is wrong); ``reason`` says why it is not chosen."""

    place: str
    schedule: Schedule
    status: str
    reason: str
    seconds: float | None
    default: bool
    reused: bool
    """taken from an earlier run"""
    code: str = ""
    """the hash of its PTX"""
    launches: tuple[Figures, ...] = ()
    estimates: tuple[Estimate, ...] = ()

    @property
    def registers(self) -> int | None:
        """The most registers a thread that one of its launches takes; None where nothing ran."""
        return max((each.registers or 0 for each in self.launches), default=None)

    @property
    def spill_bytes(self) -> int | None:
        """Bytes a thread that are spilled, summed over its launches; None where nothing ran."""
        return sum(each.spill_bytes for each in self.launches) if self.launches else None

    @property
    def shared_bytes(self) -> int | None:
        """The most shared memory a block that one of its launches takes, in bytes; None where nothing ran."""
        return max((each.shared_bytes for each in self.launches), default=None)

    @property
    def resident(self) -> int | None:
        """The fewest blocks on a multiprocessor at once among its launches; None without an estimate."""
        return min((each.resident for each in self.estimates), default=None)

    @property
    def instructions(self) -> float | None:
        """Warp instructions, summed over its launches; None where nothing ran."""
        return sum(each.warp_instructions for each in self.launches) if self.launches else None


@dataclass(frozen=True)
class Result:
    """A tuning run of one program for one bucket of sizes. ``str()`` of it is a table."""

    program: str
    target: str
    device: str
    """what ranked the candidates: "A100 SXM4 80 GB, by the cost model", or the GPU that timed them"""
    sizes: Mapping[str, int]
    bucket: str
    guards: list[dict[str, Any]]
    seed: int
    rows: tuple[Row, ...]
    schedules: Mapping[str, Schedule]
    """what was chosen, by place, where it is not the default"""
    seconds: float
    """of the program's functions together, as chosen"""
    default_seconds: float
    measured: int
    """candidates that were measured in this run; that the choice is run once more as a whole does not count"""
    reused: int
    """candidates whose measurements were there"""
    elapsed: float
    notes: tuple[str, ...] = field(default=())

    def as_dict(self) -> dict[str, Any]:
        """Everything, ready for JSON."""
        whole = asdict(self)
        for row, given in zip(whole["rows"], self.rows, strict=True):
            row["schedule"] = spelled(given.schedule)
        whole["schedules"] = {place: spelled(schedule) for place, schedule in self.schedules.items()}
        return whole

    def __str__(self) -> str:
        return table.text(self)


def why_lost(row: Row, winner: Row) -> str:
    """What made a candidate slower than the winner, in a few words."""
    assert row.seconds is not None and winner.seconds is not None
    times = row.seconds / winner.seconds
    if times <= 1.005:
        return "as fast, but for less than what is told apart" if winner.default else "as fast as the chosen one"
    reasons = []
    if (row.spill_bytes or 0) > (winner.spill_bytes or 0):
        reasons.append(f"spills {row.spill_bytes} bytes")
    mine, theirs = _resources(row), _resources(winner)
    # those that cost most more time first
    more = sorted((name for name in mine if theirs.get(name)), key=lambda name: theirs[name] - mine[name])
    for name in more[:2]:
        if mine[name] > 1.02 * theirs[name]:
            reasons.append(f"{mine[name] / theirs[name]:.2f} × {name}")
    if _warps(row) < _warps(winner):
        reasons.append(f"{_warps(row)} warps at once, not {_warps(winner)}")
    if _filled(row) < _filled(winner) - 0.05:
        reasons.append(f"its blocks fill {_filled(row):.0%} of the GPU, not {_filled(winner):.0%}")
    if not reasons:
        together = sum(mine.values()) / (sum(theirs.values()) or 1.0)
        reasons.append(
            f"{together:.2f} × all resources" if together > 1.005 else "resources wait for one another longer"
        )
    return f"{times:.2f} × the time: {', '.join(reasons)}"


def _resources(row: Row) -> dict[str, float]:
    total: dict[str, float] = {}
    for each in row.estimates:
        for name, seconds in each.resources.items():
            total[name] = total.get(name, 0.0) + seconds
    return total


def _warps(row: Row) -> int:
    """Warps on a multiprocessor at once, in the launch that has fewest."""
    pairs = zip(row.launches, row.estimates, strict=True)
    return min((figures.warps * estimate.resident for figures, estimate in pairs), default=0)


def _filled(row: Row) -> float:
    """How much of the GPU the blocks of the longest launch fill."""
    longest = max(row.estimates, key=lambda each: each.seconds, default=None)
    return longest.filled if longest else 1.0
