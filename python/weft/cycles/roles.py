# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Warps of a block that do different things: each role its own loop, all on the same units, coupled by barriers.

The addresses of barriers say little where roles compute them in their own ways, so who describes the roles names
them: what each wait is for and what each arrival tells of, in the order of the code. A wait without a name is for a
copy, which is taken to be there. What happened before the loops is given as credits: phases that are over already.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from weft.errors import Error

from .machine import NEVER, Scheduler, SharedTime, Warp
from .rates import Op, Rates

#: of a wait or arrival that is none of the roles'
COPY = ""
#: before the name of a barrier of threads at which all that come wait for one another
TOGETHER = "="


@dataclass(frozen=True)
class Role:
    """The loop of some warps, and the names of its barriers in the order of its code."""

    name: str
    ops: tuple[Op, ...]
    waits: Sequence[str] = ()
    """tries of mbarriers"""
    arrives: Sequence[str] = ()
    """arrivals of threads at mbarriers"""
    tells: Sequence[str] = ()
    """mbarriers told of products"""
    meets: Sequence[str] = ()
    """barriers of threads: who arrives there and goes on, and who waits"""


def _arrives(op: Op) -> bool:
    return op.instruction.name == "SYNCS" and "ARRIVE" in op.instruction.modifiers


def _named(role: Role) -> dict[int, str]:
    """Names by the place in the path. Raises weft.Error where they are not as many as the code has."""
    kinds = (
        ("waits", role.waits, [i for i, op in enumerate(role.ops) if op.waits]),
        ("arrives", role.arrives, [i for i, op in enumerate(role.ops) if _arrives(op)]),
        ("tells", role.tells, [i for i, op in enumerate(role.ops) if op.tells]),
        ("meets", role.meets, [i for i, op in enumerate(role.ops) if op.barrier]),
    )
    found: dict[int, str] = {}
    for kind, names, places in kinds:
        if len(names) != len(places):
            raise Error(f"expected {len(places)} names of what '{role.name}' {kind} for, but got {len(names)}")
        found.update(zip(places, names, strict=True))
    return found


@dataclass
class _Phases:
    """A barrier: when each of its phases was over."""

    need: int
    credit: int
    over: list[float] = field(default_factory=list)
    open: list[float] = field(default_factory=list)

    def arrive(self, time: float) -> None:
        self.open.append(time)
        if len(self.open) == self.need:
            self.over.append(max(self.open))
            self.open.clear()


class Roles(Scheduler):
    """One warp of each role on a scheduler; the others are taken to do as these."""

    def __init__(self, rates: Rates, roles: Sequence[Role], need: Mapping[str, int], credit: Mapping[str, int]) -> None:
        super().__init__(rates, roles[0].ops, 1)
        self.warps = [Warp(i, 0, role.ops) for i, role in enumerate(roles)]
        self.shared = SharedTime()
        self.names = [_named(role) for role in roles]
        every = {name for names in self.names for name in names.values() if name != COPY}
        self.phases = {name: _Phases(need.get(name, 1), credit.get(name, 0)) for name in every}
        self.passed: dict[tuple[int, str], int] = {}

    def _name(self, warp: Warp) -> str:
        return self.names[warp.number].get(warp.at, COPY)

    def _awaited(self, warp: Warp, op: Op) -> tuple[float, str]:
        name = self._name(warp)
        if name == COPY or name.startswith(TOGETHER) or not (op.waits or (op.barrier and op.barrier.waits)):
            return 0.0, ""
        phases = self.phases[name]
        number = self.passed.get((warp.number, name), 0) - phases.credit
        over = phases.over[number] if 0 <= number < len(phases.over) else 0.0 if number < 0 else NEVER
        return over, f"waits for {name}"

    def _turn(self, warp: Warp, op: Op) -> float:
        return 0.0

    def _meet(self, warp: Warp, op: Op, time: float) -> None:
        name = self._name(warp)
        if op.barrier and name.startswith(TOGETHER):
            self._gather(warp, (0, name), self.phases[name].need, op.barrier.waits, time)

    def _tell(self, warp: Warp, time: float) -> None:
        if (name := self._name(warp)) != COPY:
            self.phases[name].arrive(time)

    def _issue(self, warp: Warp, time: float) -> None:
        op, name = warp.ops[warp.at], self._name(warp)
        if name != COPY and not name.startswith(TOGETHER):
            if op.waits or (op.barrier and op.barrier.waits):
                self.passed[warp.number, name] = self.passed.get((warp.number, name), 0) + 1
            elif _arrives(op) or op.barrier:
                self.phases[name].arrive(time + self.rates.barrier)
        super()._issue(warp, time)


def paced(
    rates: Rates,
    roles: Sequence[Role],
    need: Mapping[str, int],
    credit: Mapping[str, int],
    warm: int = 8,
    measured: int = 16,
) -> tuple[float, dict[str, float]]:
    """Cycles of an iteration of all roles together in their steady state, and how busy units are in it."""
    scheduler = Roles(rates, roles, need, credit)
    scheduler.run(warm + measured)
    spans = [warp.began[warm + measured] - warp.began[warm] for warp in scheduler.warps]
    cycles = max(spans) / measured
    busy: dict[str, float] = {}
    for role in roles:
        for op in role.ops:
            busy[op.pipe] = busy.get(op.pipe, 0.0) + op.busy / cycles
            if op.shared:
                busy["shared"] = busy.get("shared", 0.0) + op.shared / cycles
    return cycles, busy
