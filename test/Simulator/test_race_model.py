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
    """A barrier of the lanes of each of some warps, or of these warps together, of a number that no other has; of all
    warps together if there are none."""

    warps: frozenset[int] = frozenset()
    number: int = 0


Step = Access | Meeting
BLOCK = Meeting()
NAMED = range(1, 16)


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
        "of lanes": thread // int(rng.choice([2, 4, 8, 32])) % places,
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
    block = float(rng.choice([0.25, 0.05]))
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
            number = sum(isinstance(step, Meeting) for step in made) if kind < block + (0.35 - block) / 2 else 0
            made.append(BLOCK if kind < block or not some else Meeting(some, number if number in NAMED else 0))
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
            some = f"bar.sync {step.number}, {32 * len(step.warps)};" if step.number else "bar.warp.sync -1;"
            lines.append(f"@%p2 {some}" if step.warps else "bar.sync 0;")
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


@dataclass(frozen=True)
class Touch:
    """One thread's access to a byte, and how many meetings its warp had taken part in."""

    step: int
    thread: int
    writes: bool
    meetings: int


class Knowledge:
    """How many meetings of each warp every warp knows of: what was done before them happened before."""

    def __init__(self, warps: int) -> None:
        self.known = np.zeros((warps, warps), int)
        self.met = np.zeros(warps, int)

    def together(self, warps: list[int]) -> None:
        self.met[warps] += 1
        own = np.zeros_like(self.known)
        own[warps, warps] = self.met[warps]
        self.known[warps] = np.maximum(self.known, own)[warps].max(0)

    def orders(self, touch: Touch, warp: int) -> bool:
        return bool(self.known[warp, touch.thread // 32] > touch.meetings)


def races(made: list[Step], warps: int) -> dict[int, set[frozenset[tuple[int, int]]]]:
    """By the number of barriers of the block before them: pairs of (step, thread) that access the same bytes, one of
    them writing, and that nothing orders."""
    phase, knowledge = 0, Knowledge(warps)
    touched: dict[int, list[Touch]] = collections.defaultdict(list)
    found: dict[int, set[frozenset[tuple[int, int]]]] = collections.defaultdict(set)
    for number, step in enumerate(made):
        if step == BLOCK:
            phase += 1
            touched.clear()
        elif isinstance(step, Meeting):
            for group in [sorted(step.warps)] if step.number else [[warp] for warp in step.warps]:
                knowledge.together(group)
        else:
            for thread, offset in enumerate(step.offsets):
                if offset == NONE:
                    continue
                mine = Touch(number, thread, step.writes, int(knowledge.met[thread // 32]))
                for byte in range(int(offset), int(offset) + step.bytes):
                    for other in touched[byte]:
                        unordered = other.thread != thread and not knowledge.orders(other, thread // 32)
                        if (other.writes or step.writes) and unordered:
                            found[phase].add(frozenset({(other.step, other.thread), (number, thread)}))
                    touched[byte].append(mine)
    return found


def is_sure(pair: frozenset[tuple[int, int]], made: list[Step]) -> bool:
    """Whether a race must be found: of lanes of one warp not where another warp's read, ordered before the write, may
    be what is remembered."""
    (_, one), (_, other) = pair
    return one // 32 != other // 32 or not any(isinstance(step, Meeting) and step.number for step in made)


@pytest.mark.parametrize("space", ["shared", "global"])
def test_races_are_those_of_the_model(space):
    seed = int(np.random.SeedSequence().entropy) % 2**32
    print("seed", seed)
    rng = np.random.default_rng(seed)
    racy = clean = 0
    for case in range(120):
        threads, unit = 32 * int(rng.integers(2, 7)), int(rng.choice([2, 4]))
        made = steps(rng, threads, unit)
        text, lines = text_of(made, threads, space)
        table = [step.offsets for step in made if isinstance(step, Access)]
        x = np.concatenate([*table, np.zeros(REGION // 4, np.uint32)]).astype(np.uint32)
        report = simulator.launch(text, "k", 1, threads, [x], seed=int(rng.integers(100)))
        expected = races(made, threads // 32)
        named = set()
        for finding in report.findings + report.advisories:  # one of a scalar that all lanes read is an advisory
            assert finding.kind == f"{space}-race", str(finding)
            step = lines.index(finding.line)
            phase = made[:step].count(BLOCK)
            named.add(phase)
            # Of several readers one is remembered by its lane and place.
            match = re.search(r"warp (\d+)(?:, lane (\d+))?,? \w+ it(?: at line (\d+)| too| again)", finding.other)
            assert match, finding.other
            warp, lane, line = (int(group) if group else None for group in match.groups())
            me = (step, finding.warp * 32 + finding.lane)
            others = [other for pair in expected[phase] if me in pair for other in pair - {me}]
            assert any(
                thread // 32 == warp and lane in (None, thread % 32) and (line is None or lines[number] == line)
                for number, thread in others
            ), f"case {case}: {finding}\n{text}"
        for phase, pairs in expected.items():
            assert not any(is_sure(pair, made) for pair in pairs) or phase in named, (
                f"case {case}: none of {len(pairs)} races in phase {phase} is found\n{text}"
            )
        racy += any(expected.values())
        clean += not any(expected.values())
    assert racy >= 20 and clean >= 10, (racy, clean)


def readers(rng: np.random.Generator, threads: int) -> list[Step]:
    """A word that some threads read, one after another or in no order, and one writes at the end."""

    def one(writes: bool) -> Access:
        thread = int(rng.integers(threads))
        return Access(writes, 4, 1, np.where(np.arange(threads) == thread, 0, NONE).astype(np.uint32))

    made: list[Step] = [one(True), BLOCK]
    for _ in range(int(rng.integers(3, 9))):
        if rng.random() < 0.5:
            some = rng.choice(threads // 32, size=int(rng.integers(2, threads // 32 + 1)), replace=False)
            made.append(Meeting(frozenset(some.tolist()), len(made)))
        else:
            made.append(one(False))
    return [*made, one(True)]


@pytest.mark.parametrize("space", ["shared", "global"])
def test_none_of_several_readers_is_forgotten(space):
    """Some reads are ordered before the write, and before one another, others not."""
    seed = int(np.random.SeedSequence().entropy) % 2**32
    print("seed", seed)
    rng = np.random.default_rng(seed)
    racy = 0
    for case in range(600):
        threads = 32 * int(rng.integers(3, 7))
        made = readers(rng, threads)
        text, _ = text_of(made, threads, space)
        table = [step.offsets for step in made if isinstance(step, Access)]
        x = np.concatenate([*table, np.zeros(REGION // 4, np.uint32)]).astype(np.uint32)
        report = simulator.launch(text, "k", 1, threads, [x], seed=int(rng.integers(100)))
        pairs = races(made, threads // 32)[1]
        assert {finding.kind for finding in report.findings} <= {f"{space}-race"}, report.findings
        assert pairs or not report.findings, f"case {case}: {report.findings[0]}\n{text}"
        assert report.findings or not any(is_sure(pair, made) for pair in pairs), f"case {case}: {pairs}\n{text}"
        racy += any(is_sure(pair, made) for pair in pairs)
    assert 200 < racy < 500, racy


@dataclass(frozen=True)
class Read:
    """By one lane of a warp, before the block meets or behind that."""

    block: int
    warp: int
    lane: int
    late: bool


def read_by_blocks(reads: list[Read], writer: int, blocks: int | None) -> str:
    """Blocks of three warps that read a word, meet and, of so many blocks where that is said, count themselves; one
    block's first thread, which waits for all that count, writes it."""
    lines = ["mov.u32 %r1, %ctaid.x;"]

    def only(block: int, thread: int, then: str) -> None:
        lines.append(f"setp.eq.u32 %p1, %r0, {thread}; setp.eq.and.u32 %p1, %r1, {block}, %p1; {then}")

    def some(late: bool) -> None:
        for read in reads:
            if read.late == late:
                only(read.block, 32 * read.warp + read.lane, "@%p1 ld.global.u32 %r2, [%d0];")

    some(late=False)
    lines.append("bar.sync 0;")
    if blocks is not None:
        lines.append("setp.eq.u32 %p2, %r0, 0; @%p2 red.release.gpu.global.add.u32 [%d0+128], 1;")
    some(late=True)
    only(writer, 0, "@!%p1 bra E;")
    if blocks is not None:
        lines.append(f"W: ld.acquire.gpu.global.u32 %r3, [%d0+128]; setp.lt.u32 %p3, %r3, {blocks}; @%p3 bra W;")
    lines.append("st.global.u32 [%d0], %r1; E:")
    return kernel("\n".join(lines))


@pytest.mark.parametrize("counted", [False, True])
def test_no_reader_in_another_block_is_forgotten(counted):
    seed = int(np.random.SeedSequence().entropy) % 2**32
    print("seed", seed)
    rng = np.random.default_rng(seed)
    racy = 0
    for case in range(200):
        blocks = int(rng.integers(2, 6))
        reads = [
            Read(block, warp, int(rng.integers(1, 32)), bool(warp and counted and rng.random() < 0.15))
            for block in range(blocks)
            for warp in range(3)
            if rng.random() < (0.5 if counted or block == 0 else 0.15)
        ]
        text = read_by_blocks(reads, 0, blocks if counted else None)
        x, shape = np.zeros(64, np.uint32), (blocks, 96)
        report = simulator.launch(text, "k", *shape, [x], seed=int(rng.integers(100)))
        expected = any(read.late or (read.block and not counted) for read in reads)
        assert {finding.kind for finding in report.findings} <= {"global-race"}, report.findings
        assert bool(report.findings) == expected, f"case {case}: {reads} {report.findings}\n{text}"
        racy += expected
    assert 30 < racy < 180, racy


def test_a_scalar_that_is_read_hides_no_other_reader():
    """Warp 0 reads a word as a scalar, by all its lanes, which is an advisory; one lane of warp 1 reads it too."""
    text = kernel(
        """shr.u32 %r1, %r0, 5; setp.eq.u32 %p0, %r1, 0; setp.eq.u32 %p1, %r0, 35; setp.eq.u32 %p2, %r0, 64;
        @%p0 ld.global.u32 %r2, [%d0];
        @%p1 ld.global.u32 %r2, [%d0];
        @%p2 st.global.u32 [%d0], %r1;"""
    )
    report = simulator.launch(text, "k", 1, 96, [np.zeros(32, np.uint32)], seed=0)
    assert [finding.kind for finding in report.findings] == ["global-race"], report.advisories
    assert "warp 1, lane 3 read it" in report.findings[0].other
