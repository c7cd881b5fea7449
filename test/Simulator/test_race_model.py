# Part of Weft. SPDX-License-Identifier: Apache-2.0

"""Random accesses and barriers: a race is found in just those phases of a kernel in which a model of what barriers
order has one, and what is named as one is one there."""

from __future__ import annotations

import collections
import re
from dataclasses import dataclass

import numpy as np
import pytest
import weft.simulator as simulator
from snippets import kernel

#: of the memory that is accessed
REGION = 1024
NONE = 0xFFFFFFFF


@dataclass(frozen=True)
class Access:
    """Of each thread the byte that it accesses, or NONE."""

    writes: bool
    unit: int
    count: int
    offsets: np.ndarray

    @property
    def bytes(self) -> int:
        return self.unit * self.count


@dataclass(frozen=True)
class Meeting:
    """A barrier of the lanes of each of some warps; of all warps together if there are none."""

    warps: frozenset[int] = frozenset()


Step = Access | Meeting
BLOCK = Meeting()


def offsets(rng: np.random.Generator, threads: int, size: int) -> np.ndarray:
    """Patterns that kernels have, and any others."""
    places = REGION // size
    thread = np.arange(threads)
    own = thread % places
    pattern = rng.choice(["own", "own", "next warp", "reversed", "strided", "one", "of lanes", "any"])
    index = {
        "own": own,
        "next warp": (thread + 32) % threads % places,
        "reversed": own[::-1],
        "strided": thread * int(rng.integers(1, 9)) % places,
        "one": np.full(threads, rng.integers(places)),
        "of lanes": thread // int(rng.choice([2, 4, 8, 32])),
        "any": rng.integers(0, places, threads),
    }[str(pattern)]
    active = {
        "all": np.full(threads, True),
        "a warp": thread // 32 == rng.integers(threads // 32),
        "a lane": thread == rng.integers(threads),
        "some": rng.random(threads) < rng.random(),
    }[str(rng.choice(["all", "all", "all", "a warp", "a lane", "some"]))]
    return np.where(active, index * size, NONE).astype(np.uint32)


def steps(rng: np.random.Generator, threads: int, unit: int) -> list[Step]:
    """Everything is written, then random ones."""
    places = np.arange(threads, dtype=np.uint32) * 16
    made: list[Step] = []
    for start in range(0, REGION, threads * 16):
        where = places + start
        made.append(Access(True, 4, 4, np.where(where < REGION, where, NONE).astype(np.uint32)))
    made.append(BLOCK)
    for _ in range(int(rng.integers(2, 14))):
        kind = rng.random()
        if kind < 0.35:
            some = frozenset(np.flatnonzero(rng.random(threads // 32) < 0.7).tolist())
            made.append(BLOCK if kind < 0.25 or not some else Meeting(some))
            continue
        size = unit if rng.random() < 0.5 else max(unit, 4)
        count = int(rng.choice([1, 2, 4])) if size == 4 else 1
        made.append(Access(bool(rng.random() < 0.45), size, count, offsets(rng, threads, size * count)))
    return made


def text_of(made: list[Step], threads: int, space: str) -> tuple[str, list[int]]:
    """A kernel whose accesses come from a table in x, in global memory behind it or in shared memory; each step's
    line."""
    table = 4 * threads * sum(isinstance(step, Access) for step in made)
    base = "mov.u32 %r1, s;" if space == "shared" else f"add.s64 %d3, %d0, {table};"
    lines, at, numbers = [base], 0, []
    for step in made:
        if isinstance(step, Meeting):
            bits = sum(1 << warp for warp in step.warps)
            lines.append(
                f"shr.u32 %r4, %r0, 5; shr.u32 %r4, {bits}, %r4; and.b32 %r4, %r4, 1; setp.ne.u32 %p2, %r4, 0;"
            )
            numbers.append(len(lines))
            lines.append("@%p2 bar.warp.sync -1;" if step.warps else "bar.sync 0;")
            continue
        lines.append(f"ld.global.u32 %r2, [%d1+{at}]; setp.ne.u32 %p1, %r2, -1;")
        at += 4 * threads
        if space == "shared":
            lines.append("add.u32 %r3, %r1, %r2;")
        else:
            lines.append("cvt.u64.u32 %d4, %r2; add.s64 %d4, %d3, %d4;")
        place = "[%r3]" if space == "shared" else "[%d4]"
        registers = [f"%h{i}" if step.unit < 4 else f"%r{10 + i}" for i in range(step.count)]
        if step.writes:
            for i, register in enumerate(registers):
                lines.append(
                    f"cvt.u16.u32 {register}, %r0; add.u16 {register}, {register}, {len(numbers) * 512};"
                    if step.unit < 4
                    else f"add.u32 {register}, %r0, {len(numbers) * 65536 + i * 4096};"
                )
        vector = {1: "", 2: ".v2", 4: ".v4"}[step.count]
        value = registers[0] if step.count == 1 else "{" + ", ".join(registers) + "}"
        name = f"{space}{vector}.u{8 * step.unit}"
        numbers.append(len(lines))
        lines.append(f"@%p1 st.{name} {place}, {value};" if step.writes else f"@%p1 ld.{name} {value}, {place};")
    text = kernel("\n".join(lines), shared=REGION if space == "shared" else 0)
    first = text.splitlines().index(base) + 1
    return text, [first + number for number in numbers]


def races(made: list[Step]) -> dict[int, set[frozenset[tuple[int, int]]]]:
    """By the number of barriers of the block before them: pairs of (step, thread) that access the same bytes, one of
    them writing, and that nothing orders."""
    phase, met = 0, collections.Counter()
    touched: dict[int, list[tuple[int, int, bool, int]]] = collections.defaultdict(list)
    found: dict[int, set[frozenset[tuple[int, int]]]] = collections.defaultdict(set)
    for number, step in enumerate(made):
        if step == BLOCK:
            phase += 1
            touched.clear()
        elif isinstance(step, Meeting):
            met.update(step.warps)
        else:
            for thread, offset in enumerate(step.offsets):
                if offset == NONE:
                    continue
                for byte in range(int(offset), int(offset) + step.bytes):
                    for other, by, wrote, meetings in touched[byte]:
                        unordered = by // 32 != thread // 32 or meetings == met[thread // 32]
                        if by != thread and (wrote or step.writes) and unordered:
                            found[phase].add(frozenset({(other, by), (number, thread)}))
                    touched[byte].append((number, thread, step.writes, met[thread // 32]))
    return found


@pytest.mark.parametrize("space", ["shared", "global"])
def test_races_are_those_of_the_model(space):
    seed = int(np.random.SeedSequence().entropy) % 2**32
    print("seed", seed)
    rng = np.random.default_rng(seed)
    racy = clean = 0
    for case in range(120):
        threads, unit = 32 * int(rng.integers(2, 5)), int(rng.choice([2, 4]))
        made = steps(rng, threads, unit)
        text, lines = text_of(made, threads, space)
        table = [step.offsets for step in made if isinstance(step, Access)]
        x = np.concatenate([*table, np.zeros(REGION // 4, np.uint32)]).astype(np.uint32)
        report = simulator.launch(text, "k", 1, threads, [x], seed=int(rng.integers(100)))
        expected = races(made)
        named = set()
        for finding in report.findings + report.advisories:  # one of a scalar that all lanes read is an advisory
            assert finding.kind == f"{space}-race", str(finding)
            step = lines.index(finding.line)
            phase = made[:step].count(BLOCK)
            named.add(phase)
            # Of several readers one is remembered by its lane and place.
            match = re.search(r"warp (\d+)(?:, lane (\d+))?,? \w+ it(?: at line (\d+)| too)", finding.other)
            assert match, finding.other
            warp, lane, line = (int(group) if group else None for group in match.groups())
            me = (step, finding.warp * 32 + finding.lane)
            others = [other for pair in expected[phase] if me in pair for other in pair - {me}]
            assert any(
                thread // 32 == warp and lane in (None, thread % 32) and (line is None or lines[number] == line)
                for number, thread in others
            ), f"case {case}: {finding}\n{text}"
        for phase, pairs in expected.items():
            assert not pairs or phase in named, (
                f"case {case}: none of {len(pairs)} races in phase {phase} is found\n{text}"
            )
        racy += any(expected.values())
        clean += not any(expected.values())
    assert racy >= 20 and clean >= 10, (racy, clean)
