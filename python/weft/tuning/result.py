# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""What a tuning run found: every candidate with its figures, what was chosen, and why each other lost."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from .cost import Estimate, Figures
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
    launches: tuple[Figures, ...] = ()
    estimates: tuple[Estimate, ...] = ()

    @property
    def registers(self) -> int | None:
        return max((each.registers or 0 for each in self.launches), default=None)

    @property
    def spill_bytes(self) -> int | None:
        return sum(each.spill_bytes for each in self.launches) if self.launches else None

    @property
    def shared_bytes(self) -> int | None:
        return max((each.shared_bytes for each in self.launches), default=None)

    @property
    def resident(self) -> int | None:
        return min((each.resident for each in self.estimates), default=None)

    @property
    def instructions(self) -> float | None:
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
        from .table import text

        return text(self)


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
    more = {
        name: mine[name] / theirs[name] for name in mine if theirs.get(name) and mine[name] >= 0.05 * max(mine.values())
    }
    for name, factor in sorted(more.items(), key=lambda item: -item[1])[:2]:
        if factor > 1.02:
            reasons.append(f"{factor:.2f} × {name}")
    if row.resident is not None and winner.resident is not None and _warps(row) < _warps(winner):
        reasons.append(f"{_warps(row)} warps at once, not {_warps(winner)}")
    rounds = _last_round(row), _last_round(winner)
    if not reasons and rounds[0] < rounds[1]:
        reasons.append(f"its last round of blocks fills {rounds[0]:.0%} of the GPU")
    if not reasons:
        reasons.append("waits longer for memory")
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


def _last_round(row: Row) -> float:
    """Of the launch with most instructions, how full its last round of blocks is, taking 108 multiprocessors."""
    pairs = zip(row.launches, row.estimates, strict=True)
    figures, estimate = max(pairs, key=lambda pair: pair[0].warp_instructions, default=(None, None))
    if figures is None or estimate is None or not estimate.resident:
        return 1.0
    rounds = figures.blocks / (108 * estimate.resident)
    return rounds / -(-figures.blocks // (108 * estimate.resident))
