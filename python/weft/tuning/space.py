# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""The schedules that a kernel may run by, and which of them a target cannot hold.

Of an attention's kernel a schedule is (rows, columns, warps, stages): a program of the kernel holds ``rows`` rows and
walks the other side in steps of ``columns``, on ``warps`` warps, with ``stages`` tiles of it in flight
(docs/Tuning.md). Of wide values it has a fifth number, the channels that a program holds, or takes at once; of others
that is 0 where a sixth says how many programs are a cluster, which is 1 where a seventh, 1, says that one block on each
multiprocessor goes over them. Of another kernel it is its tiling, (rows, warps).
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from weft.targets import Target, target_named, targets

__all__ = [
    "Candidate",
    "Kernel",
    "Schedule",
    "Target",
    "Tiled",
    "axes",
    "candidates",
    "is_backward",
    "kernels",
    "parse",
    "role_of",
    "spelled",
    "target_named",
    "targets",
    "why_not",
]

Schedule = tuple[int, ...]

_ROWS, _COLUMNS, _WARPS, _STAGES = (16, 32, 64, 128, 256), (16, 32, 64, 128), (1, 2, 4, 8), (1, 2, 3, 4)
#: beyond those where sums lie in tensor memory: four warpgroups of 128 rows
_MORE_ROWS, _MORE_WARPS = (512,), (16,)
_PARTS, _PIECES = (128, 256, 384, 512, 768, 1024), (32, 64, 128)  # channels of wide values: held, or taken at once
_CLUSTER = 2  # programs
_PERSISTENT = (0, 1, 1)
_REST = (0, 1, 0)  # the fifth number and those behind it where a schedule leaves them out
_BEYOND = 40  # registers that addresses, masks and the softmax's state take at the very least


@dataclass(frozen=True)
class Kernel:
    """A kernel of an attention as the compiler reports it: its place, its default schedule, its sizes."""

    attend: int
    role: str
    schedule: Schedule
    head_size: int
    value_size: int
    element_bits: int
    group: int
    window_tokens: int
    alone: bool = False
    """Of a gradient: dk and dv are made by a kernel each."""
    may_share: bool = False
    """Programs walk over the same blocks: a cluster may share their copies."""

    @property
    def place(self) -> str:
        """ "0.forward", "0.backward.query" or "0.backward.keys": the name that choices go by."""
        return f"{self.attend}.{self.role}"

    @property
    def is_wide(self) -> bool:
        """Whether its values are taken in parts."""
        return len(self.schedule) > 4 and self.schedule[4] > 0

    @staticmethod
    def of(facts: Mapping[str, Any]) -> Kernel:
        """From what the compiler reports, a dict of the fields."""
        return Kernel(**{**facts, "schedule": tuple(facts["schedule"])})


@dataclass(frozen=True)
class Tiled:
    """A kernel that is no attention's, as the compiler reports it: its place, its tiling, and what it can take."""

    place: str
    """ "forward.rows.0": part, kind, and which of the kind"""
    schedule: Schedule
    rows: tuple[int, ...]
    warps: tuple[int, ...]

    @property
    def role(self) -> str:
        """Its place: no two kernels of a program have one role."""
        return self.place


def kernels(info: Mapping[str, Any]) -> list[Kernel | Tiled]:
    """All that can be tuned of what was compiled: attentions' kernels, then the others."""
    tiled = [
        Tiled(each["place"], tuple(each["tiling"]), tuple(each["rows"]), tuple(each["warps"]))
        for each in info["tilings"]
    ]
    return [*(Kernel.of(facts) for facts in info["schedules"]), *tiled]


@dataclass(frozen=True)
class Candidate:
    """A schedule to try; ``dropped`` says why the target cannot hold it, empty where it may."""

    schedule: Schedule
    dropped: str = ""


def spelled(schedule: Sequence[int]) -> str:
    """ "128x64x4x3": rows, columns, warps, stages; "64x32x8x2x512": and channels; "128x128x8x2x0x2": and programs of a
    cluster; "128x128x8x2x0x1x1": persistent; "32x4": rows, warps."""
    return "x".join(map(str, schedule))


def parse(text: str) -> Schedule:
    """The schedule that a text spells. Raises ValueError."""
    parts = text.split("x")
    fits = (
        len(parts) in (2, 4, 5)
        or (len(parts) == 6 and parts[4] == "0")
        or (len(parts) == 7 and parts[5:] == ["1", "1"])
    )
    if not fits or not all(part.isdigit() for part in parts):
        raise ValueError(
            f"expected a schedule ROWSxCOLUMNSxWARPSxSTAGES such as 128x64x4x3, or with xCHANNELS of wide values, "
            f"or with x0xCLUSTER, or x0x1x1 for a persistent one, or a tiling ROWSxWARPS such as 32x4, but got '{text}'"
        )
    return tuple(map(int, parts))


ROLES = ("forward", "backward.query", "backward.keys", "backward.values")


def is_backward(place: str) -> bool:
    """Whether a kernel is of a program's backward."""
    return "backward" in place.split(".")


def role_of(place: str) -> str:
    """The role in "0.backward.keys" or "backward.keys"; of other kernels the place, such as "forward.rows.0".
    ValueError where there is none of the kind."""
    if re.fullmatch(r"(forward|backward)\.\w+\.\d+", place):
        return place
    number, _, rest = place.partition(".")
    role = rest if number.isdigit() else place
    if role not in ROLES:
        raise ValueError(
            f"expected a role among {', '.join(ROLES)}, one of attention N as N.ROLE, or the place of another kernel "
            f"such as forward.rows.0, but got '{place}'"
        )
    return role


def candidates(kernel: Kernel | Tiled, target: Target, limit: int = 16, timed: bool = False) -> list[Candidate]:
    """The default and its neighbours, nearest first, until ``limit`` of them can be held; with those on the way that
    the target cannot hold. Clusters and persistent kernels are among them where candidates are ``timed``: how long
    blocks of a cluster wait for each other, and what copies for a next program hide, the cost model does not know."""
    found: list[Candidate] = []
    kept = 0
    for schedule in sorted(_space(kernel, target, timed), key=lambda s: (_distance(s, kernel.schedule), s)):
        if kept == limit:
            break
        reason = "" if schedule == kernel.schedule else why_not(schedule, kernel, target)
        kept += not reason
        found.append(Candidate(schedule, reason))
    return found


def axes(kernel: Kernel | Tiled, target: Target) -> list[tuple[int, ...]]:
    """What each number of a kernel's schedules may be."""
    if isinstance(kernel, Tiled):
        return [kernel.rows, kernel.warps]
    rows: tuple[int, ...] = _ROWS
    columns: tuple[int, ...] = _COLUMNS
    warps: tuple[int, ...] = _WARPS
    if target.tensor_columns:
        rows, warps = rows + _MORE_ROWS, warps + _MORE_WARPS
    if kernel.window_tokens:  # tiles are cut from the window, and where that is one tile it is its own keys
        rows = (kernel.schedule[0],)
        columns = (kernel.schedule[1],)
    found: list[tuple[int, ...]] = [rows, columns, warps, _STAGES]
    if kernel.is_wide:
        channels = _PARTS if kernel.role in ("forward", "backward.values") else _PIECES
        whole = (kernel.value_size + 15) // 16 * 16
        found.append(tuple(sorted({min(each, whole) for each in channels})))
    return found


def _space(kernel: Kernel | Tiled, target: Target, timed: bool) -> list[Schedule]:
    space: list[Schedule] = list(itertools.product(*axes(kernel, target)))
    if timed and isinstance(kernel, Kernel):
        shared = [(0, _CLUSTER)] if kernel.may_share and target.most_cluster >= _CLUSTER else []
        persistent = [_PERSISTENT] if target.role_registers and not kernel.is_wide else []
        space += [(*schedule, *more) for more in (*shared, *persistent) for schedule in space]
    return space if kernel.schedule in space else [kernel.schedule, *space]


def _distance(schedule: Schedule, default: Schedule) -> int:
    """How many doublings or halvings lie between two schedules; a stage counts as one."""
    sizes, others = ((*each[:3], *each[4:], *_REST[len(each) - 4 :]) for each in (schedule, default))
    doublings = sum(abs(a.bit_length() - b.bit_length()) for a, b in zip(sizes, others, strict=True))
    return doublings + sum(abs(a - b) for a, b in zip(schedule[3:4], default[3:4], strict=True))


def why_not(schedule: Schedule, kernel: Kernel | Tiled, target: Target) -> str:
    """Why a target cannot hold a schedule, from below: what is certain before it is compiled. Empty where it may."""
    if isinstance(kernel, Tiled):
        fits = len(schedule) == 2 and schedule[0] in kernel.rows and schedule[1] in kernel.warps
        of_rows, of_warps = (", ".join(map(str, each)) for each in (kernel.rows, kernel.warps))
        return "" if fits else f"{kernel.place} takes rows among {of_rows} and warps among {of_warps}"
    if len(schedule) == 2:
        return f"{spelled(schedule)} is a tiling: {kernel.place} takes rows, columns, warps and stages"
    if len(schedule) == 6 and not kernel.may_share:
        return f"a cluster of {schedule[5]}: its programs walk over blocks of their own"
    if len(schedule) == 6 and schedule[5] > target.most_cluster:
        return f"a cluster of {schedule[5]}: the target has clusters of at most {target.most_cluster}"
    if len(schedule) == 7 and not target.role_registers:
        return "persistent: the target has no warps that copy for the others"
    if len(schedule) > 4 and schedule[4] and not kernel.is_wide:
        return f"{schedule[4]} channels: its values of {kernel.value_size} are not taken in parts"
    rows, warps = schedule[0], schedule[2]
    if warps > target.max_warps:
        return f"{warps} warps: a block has at most {target.max_warps}"
    least = target.rows_of_mma()
    if rows < least * warps:
        return f"{rows} rows leave {warps} warps fewer than the {least} of a matrix instruction each"
    # where sums lie in tensor memory, threads hold the scores alone
    what, held = ("scores", rows * schedule[1]) if target.tensor_columns else ("sums", _accumulators(schedule, kernel))
    registers = _BEYOND + held // (warps * target.warp_size)
    if registers > target.registers_per_thread:
        return f"its {what} take {registers} registers of a thread, which has {target.registers_per_thread}"
    if registers * warps * target.warp_size > target.registers_per_processor:
        return f"a block takes more than the {target.registers_per_processor} registers of a multiprocessor"
    shared = _shared(schedule, kernel)
    if shared > target.shared_bytes_per_block:
        return f"its tiles take {shared} bytes of shared memory, and a block has {target.shared_bytes_per_block}"
    return ""


def _accumulators(schedule: Schedule, kernel: Kernel) -> int:
    """Registers of a block that sums and scores take at once, f32 each."""
    rows, columns = schedule[:2]
    values = _values(schedule, kernel)
    match kernel.role:
        case "forward" | "backward.values":
            return rows * (values + columns)
        case "backward.query":
            return rows * (kernel.head_size + columns)
        case _:
            return rows * (kernel.head_size + (0 if kernel.alone else values) + columns)


def _values(schedule: Schedule, kernel: Kernel) -> int:
    """Channels of values that a program holds or takes at once: where it does not say, the least."""
    if not kernel.is_wide:
        return kernel.value_size
    return min(kernel.value_size, schedule[4] if len(schedule) > 4 else min(_PARTS + _PIECES))


def _shared(schedule: Schedule, kernel: Kernel) -> int:
    """Bytes of the rings that the walked side's tiles go through."""
    rows, columns, _, stages = schedule[:4]
    if stages == 1:
        return 0
    if kernel.is_wide and kernel.role in (
        "backward.query",
        "backward.keys",
    ):  # in pieces of both sides, in the inner loop
        elements = (rows + columns) * _values(schedule, kernel)
    else:
        elements = columns * (kernel.head_size + _values(schedule, kernel))
    return stages * elements * kernel.element_bits // 8
