# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""One scheduler of a multiprocessor, cycle by cycle: warps that issue in order, and the units that they share.

A warp issues its next instruction when the stall count of the last one has passed, the scoreboards that it waits for
are released, and its unit has room. Of several warps that could, the one that has waited longest issues; one a cycle.
All four schedulers do the same at the same time, so that what a multiprocessor has once serves each a quarter.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

from weft.errors import Error

from .rates import Op, Rates
from .tensor import Barriers
from .values import Value

NEVER = math.inf


@dataclass
class Stalls:
    """Cycles that a warp spent before an instruction, by reason, over a measured time."""

    cycles: dict[tuple[int, str], float] = field(default_factory=dict)

    def add(self, address: int, reason: str, cycles: float) -> None:
        """Add cycles to an instruction's."""
        if cycles > 0:
            self.cycles[address, reason] = self.cycles.get((address, reason), 0.0) + cycles


@dataclass(frozen=True)
class Steady:
    """What a run measured, per iteration of a warp."""

    cycles: float
    """from one iteration's begin to the next's"""
    matrix: float
    """cycles that the matrix unit worked, of all warps together"""
    busy: dict[str, float]
    """likewise for every unit; "issue" is the scheduler itself"""
    stalls: Stalls
    warps: int


class SharedTime:
    """What of shared memory's time is taken, by windows: products are under way long before theirs begins. Loads and
    stores are served beside them; what both take too much delays the products that follow."""

    def __init__(self) -> None:
        self.taken: dict[int, float] = {}
        self.debt = 0.0

    def load(self, time: float, cycles: float) -> None:
        """A load, store or try of an mbarrier."""
        window = int(time // _WINDOW)
        taken = self.taken[window] = self.taken.get(window, 0.0) + cycles
        self.debt += min(cycles, max(0.0, taken - _WINDOW))

    def paid(self, time: float) -> float:
        """When a product can begin for which what was taken too much has to be made good."""
        owed, self.debt = self.debt, 0.0
        return self.product(time, owed) if owed else time

    def product(self, time: float, cycles: float) -> float:
        """When what a product that begins then reads has been read."""
        window = int(time // _WINDOW)
        while True:
            taken = self.taken.get(window, 0.0)
            room = min(_WINDOW - taken, (window + 1) * _WINDOW - time)
            if room >= cycles:
                self.taken[window] = taken + cycles
                return time + cycles
            if room > 0:
                self.taken[window], cycles = taken + room, cycles - room
            window += 1
            time = float(window * _WINDOW)


_WINDOW = 64  # cycles


class Warp:
    """One warp: where it is in its code, and what it waits for."""

    def __init__(self, number: int, block: int, ops: Sequence[Op]) -> None:
        self.number, self.block, self.ops = number, block, ops
        self.at = self.iteration = 0
        self.ready = 0.0  # by the stall count
        self.last = -1.0
        self.boards: list[list[float]] = [[] for _ in range(6)]  # times of release, in order
        self.groups: list[float] = []  # of matrix instructions, committed
        self.open = 0.0  # end of those not committed
        self.copies = 0.0
        self.began: list[float] = []
        self.holder: dict[int, str] = {}
        self.started = 0.0  # end of the products whose sums are in tensor memory
        self.stored = 0.0  # end of stores to it
        self.told: dict[Value, float] = {}  # when mbarriers know of products
        self.blocked: tuple[int, int | str | None] | None = None  # at a barrier, and which meeting
        self.tokens = 0
        self.sent = 0


class Scheduler:
    """Warps with their code: ``blocks`` resident blocks of ``warps`` warps each, all in the same loop."""

    def __init__(
        self, rates: Rates, ops: Sequence[Op], warps: int, blocks: int = 1, barriers: Barriers | None = None
    ) -> None:
        if not ops:
            raise Error("expected instructions to time, but got none")
        self.rates, self.per_block, self.barriers = rates, warps, barriers
        self.warps = [Warp(w, b, ops) for b in range(blocks) for w in range(warps)]
        self.free: dict[str, float] = {}
        self.queues: dict[str, deque[float]] = {}
        self.shared = SharedTime() if any(op.shared for op in ops) else None
        self.clock = 0.0
        self.meetings: dict[tuple[int, int | str | None], list[float]] = {}
        self.stalls = Stalls()
        self.measuring = False

    # ---- When a warp may issue

    def _earliest(self, warp: Warp) -> tuple[float, str, float]:
        """When a warp's next instruction can be issued, what holds it longest, and since when that alone does."""
        op = warp.ops[warp.at]
        time, reason, since = warp.ready, "stall count", warp.last + 1
        for number in op.instruction.control.wait:
            released = max(warp.boards[number], default=0.0)
            if released > time:
                time, reason, since = released, f"result of {warp.holder.get(number, 'a copy')}", time
        if op.keeps:
            released = self._kept(warp, *op.keeps)
            if released > time:
                reason, since, time = "matrix group" if op.keeps[0][0] == "g" else "copies", time, released
        if warp.blocked is not None:
            return NEVER, "barrier", time
        if op.barrier and op.barrier.waits:
            released = self._turn(warp, op)
            if released > time:
                time, reason, since = released, "barrier", time
        released, what = self._awaited(warp, op)
        if released > time:
            time, reason, since = released, what, time
        room = self._room(op)
        if room > time:
            time, reason, since = room, f"unit {op.pipe}", time
        return time, reason, since

    def _awaited(self, warp: Warp, op: Op) -> tuple[float, str]:
        """When what an mbarrier tells of is there, and what that is. Copies are there."""
        where = self.barriers.at(warp.iteration, warp.at) if op.waits and self.barriers else None
        return (0.0, "") if where is None else (warp.told.get(where, 0.0), "products")

    def _kept(self, warp: Warp, name: str, most: int) -> float:
        pending = warp.groups if name.startswith("gsb") else warp.boards[int(name[2:]) % 6]
        return max(pending[: len(pending) - most], default=0.0) if most < len(pending) else 0.0

    def _room(self, op: Op) -> float:
        """When a unit takes one more."""
        if op.product and op.product.warpgroup and not op.product.tensor:
            return 0.0
        queue = self.queues.get(op.pipe)
        depth = self.rates.queued if op.product and op.product.tensor else self.rates.waiting[op.pipe]
        return math.floor(queue[-depth]) if queue and len(queue) >= depth else 0.0

    # ---- Barriers

    def _ring(self, op: Op) -> bool:
        """Whether a barrier is a turn that warps pass on: its number is in a register, and not all come to it."""
        assert op.barrier
        return op.barrier.number is None and op.barrier.threads > 0

    def _turn(self, warp: Warp, op: Op) -> float:
        assert op.barrier
        if not self._ring(op) or self.per_block == 1:
            return 0.0
        need = self._need(op) - 1
        return 0.0 if warp.tokens + self._credit(warp, need) >= need else NEVER

    def _credit(self, warp: Warp, need: int) -> int:
        """Turns that a warp has been given before the first: from those that come after it."""
        return max(need - warp.number, 0) if warp.iteration == 0 else 0

    def _need(self, op: Op) -> int:
        assert op.barrier
        per_warp = self.rates.warp_size * self.rates.schedulers
        whole = self.per_block if op.barrier.threads == 0 else math.ceil(op.barrier.threads / per_warp)
        return max(1, min(whole, self.per_block))

    def _meet(self, warp: Warp, op: Op, time: float) -> None:
        """A warp arrives at a barrier, and waits there for the others if it is one that waits."""
        barrier = op.barrier
        assert barrier
        if self._ring(op):
            self._pass_on(warp, op)
            return
        self._gather(warp, (warp.block, barrier.number), self._need(op), barrier.waits, time)

    def _gather(self, warp: Warp, key: tuple[int, int | str | None], need: int, waits: bool, time: float) -> None:
        """A warp arrives where so many meet, and stays until they are there if it waits."""
        waiting = self.meetings.setdefault(key, [])
        waiting.append(time)
        if waits:
            warp.blocked = key
        if len(waiting) >= need:
            release = max(waiting) + self.rates.barrier
            waiting.clear()
            for other in self.warps:
                if other.blocked == key:
                    other.blocked, other.ready = None, max(other.ready, release)

    def _pass_on(self, warp: Warp, op: Op) -> None:
        assert op.barrier
        if self.per_block == 1:
            return
        if op.barrier.waits:
            need = self._need(op) - 1
            warp.tokens = max(0, warp.tokens + self._credit(warp, need) - need)
            warp.sent = 0
            return
        warp.sent += 1
        number = (warp.number + warp.sent) % self.per_block
        other = self.warps[warp.block * self.per_block + number]
        other.tokens += 1

    # ---- Issue

    def _issue(self, warp: Warp, time: float) -> None:
        op = warp.ops[warp.at]
        control = op.instruction.control
        if warp.at == 0:
            warp.began.append(time)
        start = max(time, self.free.get(op.pipe, 0.0))
        end = start + op.busy
        if self.shared and op.shared:
            start = self.shared.paid(start)
            end = max(start + op.busy, self.shared.product(start, op.shared))
        elif self.shared and op.pipe == "shared":
            self.shared.load(start, op.busy)
        if op.pipe != "control":
            self.free[op.pipe] = end
            if not (op.product and op.product.warpgroup and not op.product.tensor):
                queue = self.queues.setdefault(op.pipe, deque(maxlen=64))
                queue.append(end)
        self._results(warp, op, start, end, time)
        warp.last, warp.ready = time, time + max(1, control.stall)
        if op.barrier:
            self._meet(warp, op, time)
        warp.at += 1
        if warp.at == len(warp.ops):
            warp.at, warp.iteration = 0, warp.iteration + 1

    def _results(self, warp: Warp, op: Op, start: float, end: float, time: float) -> None:
        control, done, read = op.instruction.control, end - 1 + op.latency, end + 1
        if op.keeps:
            self._close(warp, *op.keeps)
        if op.product and op.product.tensor:  # the queue takes what registers hold at once
            warp.started, read = end, time + self.rates.latency["control"]
        elif op.product and op.product.warpgroup:
            warp.open = end
            if op.commits:
                warp.groups.append(warp.open + op.latency)
        if op.tells:
            self._tell(warp, max(warp.started, time) + self.rates.group)
        if op.copies:
            warp.copies = max(warp.copies, done)
        if op.pipe == "tensor store":
            warp.stored = max(warp.stored, done)
        if control.write is not None:
            release = max(warp.copies, start) if op.ends_copies else max(warp.stored, done) if op.ends_stores else done
            self._hold(warp, control.write, release, op)
        if control.read is not None:
            self._hold(warp, control.read, read, op)

    def _tell(self, warp: Warp, time: float) -> None:
        """An mbarrier is told of a warp's products, which are done then."""
        if self.barriers and (where := self.barriers.at(warp.iteration, warp.at)):
            warp.told[where] = time

    def _hold(self, warp: Warp, number: int, release: float, op: Op) -> None:
        if number >= len(warp.boards):
            return
        board = warp.boards[number]
        if release >= max(board, default=0.0):
            warp.holder[number] = op.pipe
        board.append(release)
        del board[:-16]

    def _close(self, warp: Warp, name: str, most: int) -> None:
        if name.startswith("gsb"):
            warp.groups = warp.groups[len(warp.groups) - most :] if most else []

    def run(self, iterations: int) -> None:
        """Let every warp begin its iteration of that number."""
        while any(len(warp.began) <= iterations for warp in self.warps):
            best, chosen, held = NEVER, None, ("", 0.0)
            for warp in self.warps:
                time, reason, since = self._earliest(warp)
                time = max(math.ceil(time), self.clock) if time < NEVER else NEVER
                if chosen is None or (time, warp.last) < (best, chosen.last):
                    best, chosen, held = time, warp, (reason, since)
            if chosen is None or best == NEVER:
                raise Error("expected warps that go on, but got all of them waiting at barriers")
            self._note(chosen, best, *held)
            self._issue(chosen, best)
            self.clock = best + 1

    def _note(self, warp: Warp, time: float, reason: str, since: float) -> None:
        """Say where a warp's cycles since its last instruction went."""
        if not self.measuring or warp.last < 0:
            return
        address = warp.ops[warp.at].instruction.address
        own = self._earliest(warp)[0]
        self.stalls.add(address, "stall count", min(warp.ready, time) - warp.last - 1)
        if reason != "stall count":
            self.stalls.add(address, reason, min(own, time) - max(since, warp.ready))
        self.stalls.add(address, "other warps", time - max(math.ceil(own), warp.last + 1))


def steady(
    rates: Rates,
    ops: Sequence[Op],
    warps: int,
    blocks: int = 1,
    warm: int = 4,
    measured: int = 8,
    barriers: Barriers | None = None,
    apart: float = 0.0,
) -> Steady:
    """A loop's steady state: ``measured`` iterations after ``warm`` ones. Warps begin so many cycles apart."""
    scheduler = Scheduler(rates, ops, warps, blocks, barriers)
    for number, warp in enumerate(scheduler.warps):
        warp.ready = number * apart
    scheduler.run(warm)
    scheduler.measuring = True
    scheduler.run(warm + measured)
    spans = [warp.began[warm + measured] - warp.began[warm] for warp in scheduler.warps]
    cycles = sum(spans) / len(spans) / measured
    count = len(scheduler.warps)
    busy: dict[str, float] = {"issue": float(len(ops) * count)}
    for op in ops:
        busy[op.pipe] = busy.get(op.pipe, 0.0) + op.busy * count
        if op.shared:
            busy["shared"] = busy.get("shared", 0.0) + op.shared * count
    stalls = Stalls({key: value / measured / count for key, value in scheduler.stalls.cycles.items()})
    return Steady(cycles, busy.get("matrix", 0.0), busy, stalls, count)
