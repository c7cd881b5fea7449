# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Accesses of one instruction that lie otherwise each time, or the same way again: values, wavefronts and sectors."""

import numpy as np
import pytest
import weft.simulator as simulator
from snippets import HEADER

LANES, WARPS, TURNS = 32, 6, 24
#: bytes of shared memory of a warp, and of its part of `data`
REGION = 4096
TYPES = {2: ".u16 {0}", 4: ".u32 {0}", 8: ".v2.u32 {{{0}, {1}}}", 16: ".v4.u32 {{{0}, {1}, {2}, {3}}}"}


def text(width: int) -> str:
    """Each turn a lane reads `width` bytes where `table` says, of shared and of device memory, and writes them, plus 1,
    where another table says."""
    kind = TYPES[width].partition(" ")[0]

    def registers(letter: str) -> str:
        return TYPES[width].partition(" ")[2].format(*(f"%{letter}{i}" for i in range(4)))

    def each(operation: str) -> str:
        return " ".join(operation.format(i=i) for i in range(max(1, width // 4)))

    return f"""{HEADER}.visible .entry k(.param .u64 table, .param .u64 data, .param .u64 sums)
{{
  .reg .pred %p; .reg .b32 %r<12>; .reg .b32 %a<4>; .reg .b32 %b<4>; .reg .b64 %d<8>;
  .shared .align 16 .b8 s[{REGION * WARPS}];
  ld.param.u64 %d0, [table]; ld.param.u64 %d1, [data]; ld.param.u64 %d2, [sums];
  mov.u32 %r0, %tid.x; mul.wide.u32 %d3, %r0, 8; add.s64 %d0, %d0, %d3;
  mov.u32 %r1, s; shr.u32 %r2, %r0, 5; mul.lo.u32 %r2, %r2, {REGION}; add.u32 %r1, %r1, %r2;
  cvt.u64.u32 %d4, %r2; add.s64 %d1, %d1, %d4;
  and.b32 %r3, %r0, 31; shl.b32 %r3, %r3, 4; mov.u32 %r4, 0;
F: add.u32 %r5, %r1, %r3; st.shared.v4.u32 [%r5], {{%r3, %r5, %r0, %r3}}; add.u32 %r3, %r3, 512;
  setp.lt.u32 %p, %r3, {REGION}; @%p bra F;
  mov.u32 %r6, 0; mov.u32 %r7, 0;
L: ld.global.v2.u32 {{%r8, %r9}}, [%d0]; add.s64 %d0, %d0, {8 * LANES * WARPS};
  add.u32 %r10, %r1, %r8; add.u32 %r11, %r1, %r9; cvt.u64.u32 %d5, %r8; add.s64 %d5, %d1, %d5;
  cvt.u64.u32 %d6, %r9; add.s64 %d6, %d1, %d6;
  ld.shared{kind} {registers("a")}, [%r10]; ld.global{kind} {registers("b")}, [%d5];
  {each("mad.lo.u32 %r7, %r7, 3, %a{i}; mad.lo.u32 %r7, %r7, 5, %b{i};")}
  {each("add.u32 %a{i}, %a{i}, 1; add.u32 %b{i}, %b{i}, 1;")}
  st.shared{kind} [%r11], {registers("a")}; st.global{kind} [%d6], {registers("b")};
  add.u32 %r6, %r6, 1; setp.lt.u32 %p, %r6, {TURNS}; @%p bra L;
  mul.wide.u32 %d3, %r0, 4; add.s64 %d2, %d2, %d3; st.global.u32 [%d2], %r7;
  ret;
}}
"""


def table(random: np.random.Generator, width: int) -> np.ndarray:
    """[TURNS, WARPS, LANES, 2] bytes to read and to write, those to write all different: of one turn what was of the
    one before, some bytes on, or anew."""
    places = REGION // width

    def fresh(differ: bool) -> np.ndarray:
        kind = random.integers(4)
        if kind == 0:
            return np.arange(LANES)
        if kind == 1:
            return np.arange(LANES) ^ random.integers(LANES)
        if kind == 2:
            return np.arange(LANES) * random.integers(1, places // LANES)
        return random.choice(places, LANES, replace=not differ)

    found = np.empty((TURNS, WARPS, LANES, 2), np.uint32)
    for warp in range(WARPS):
        for way in range(2):
            offsets = fresh(way == 1) * width
            for turn in range(TURNS):
                room = (REGION - width - int(offsets.max())) // width
                if room and random.random() < 0.6:
                    offsets = offsets + width * random.integers(room + 1)
                    if random.random() < 0.3:
                        offsets = offsets - offsets.min()
                else:
                    offsets = fresh(way == 1) * width
                found[turn, warp, :, way] = offsets
    return found


def wavefronts(offsets: np.ndarray, width: int) -> int:
    """By banks of 4 bytes: of the lanes that go together, the most different words that one bank has."""
    together = LANES * 4 // max(width, 4)
    total = 0
    for lanes in offsets.reshape(-1, together):
        words = {int(byte) // 4 for offset in lanes for byte in range(offset, offset + width, min(width, 4))}
        banks = np.bincount([word % 32 for word in words])
        total += int(banks.max())
    return total


def sectors(offsets: np.ndarray) -> int:
    return len({int(offset) // 32 for offset in offsets})


def run_by_hand(where: np.ndarray, data: np.ndarray, width: int) -> tuple[np.ndarray, np.ndarray]:
    """The bytes of `data` afterwards, and every thread's sum."""
    element = np.uint16 if width == 2 else np.uint32
    sums = np.zeros(WARPS * LANES, np.uint64)
    after = data.copy()
    for warp in range(WARPS):
        start = warp * REGION
        lane = np.arange(LANES, dtype=np.uint32)
        rows = np.arange(0, REGION, 512, dtype=np.uint32)[:, None] + 16 * lane
        shared = np.stack([rows, rows + start, np.broadcast_to(lane + LANES * warp, rows.shape), rows], -1)
        shared = np.ascontiguousarray(shared, np.uint32).view(np.uint8).reshape(-1)
        own = after[start : start + REGION]
        for turn in range(TURNS):
            reads, writes = where[turn, warp, :, 0], where[turn, warp, :, 1]
            values = [
                np.stack([np.ascontiguousarray(m[o : o + width]).view(element) for o in reads]) for m in (shared, own)
            ]
            at = slice(LANES * warp, LANES * (warp + 1))
            for i in range(values[0].shape[1]):
                for value, factor in zip(values, (3, 5), strict=True):
                    sums[at] = (sums[at] * np.uint64(factor) + value[:, i]) % np.uint64(2**32)
            for memory, value in zip((shared, own), values, strict=True):
                for offset, new in zip(writes, value + element(1), strict=True):
                    memory[offset : offset + width] = new.astype(element).view(np.uint8)
    return after, sums.astype(np.uint32)


@pytest.mark.parametrize("checks", ["all", "none"])
@pytest.mark.parametrize("width", TYPES)
def test_shapes_that_change(width, checks, seed):
    random = np.random.default_rng(seed)
    where = table(random, width)
    data = random.integers(0, 256, WARPS * REGION, np.uint8)
    wanted, sums = run_by_hand(where, data, width)
    found = np.zeros(WARPS * LANES, np.uint32)
    report = simulator.launch(text(width), "k", 1, WARPS * LANES, [where, data, found], checks=checks)
    counters = report.counters
    assert not [each for each in report.findings if each.kind != "shared-race" and each.kind != "global-race"]
    assert np.array_equal(data, wanted) and np.array_equal(found, sums)
    filled = WARPS * (REGION // 512) * 4
    expected = filled + sum(wavefronts(each, width) for each in where.transpose(0, 1, 3, 2).reshape(-1, LANES))
    assert counters["shared_wavefronts"] == expected
    read = sum(sectors(each) for each in where[..., 0].reshape(-1, LANES)) + TURNS * WARPS * 8
    assert counters["global_sectors_read"] == read
    assert counters["global_sectors_written"] == WARPS * 4 + sum(
        sectors(each) for each in where[..., 1].reshape(-1, LANES)
    )
