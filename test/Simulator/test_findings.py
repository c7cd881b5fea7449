# Part of Weft. SPDX-License-Identifier: Apache-2.0
# ruff: noqa: E501 -- a kernel and its edit stand on one line each
"""Planted bugs, each reported as what it is at its line, and each beside a corrected twin that is clean."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import weft.simulator as simulator
from snippets import HEADER, REGISTERS, kernel, line_of


@dataclasses.dataclass(frozen=True)
class Plant:
    """A faulty text, the mark that its reported line holds, and the edit that mends it."""

    name: str
    kind: str
    body: str
    edit: tuple[str, str]
    mark: str | None = "// BUG"
    shared: int = 0
    block: int = 64
    elements: int = 64
    grid: int = 1
    heap: bool = False

    def text(self, body: str) -> str:
        """A kernel of this body, or of its twin's."""
        text = kernel(body, shared=self.shared)
        return text.replace(".visible", HEAP + ".visible", 1) if self.heap else text


EXCHANGE = """
  mov.u32 %r1, s; shl.b32 %r2, %r0, 2; add.u32 %r3, %r1, %r2;
  ld.global.u32 %r4, [%d1];
"""
NEIGHBOUR = "xor.b32 %r5, %r2, 128; add.u32 %r6, %r1, %r5;"  # the other warp's element
LANE = "xor.b32 %r5, %r2, 4; add.u32 %r6, %r1, %r5;"  # the lane beside
COPY = "mov.u32 %r1, s; shl.b32 %r2, %r0, 4; add.u32 %r3, %r1, %r2; mul.wide.u32 %d2, %r0, 16; add.s64 %d2, %d0, %d2;"

MALLOC = """
  { .param .b64 n; st.param.b64 [n], 16; .param .b64 m; call.uni (m), malloc, (n); ld.param.b64 %d5, [m]; }
  st.u32 [%d5], %r0; ld.u32 %r8, [%d5];
"""
FREE = "{ .param .b64 m; st.param.b64 [m], %d5; call.uni free, (m); }\n"
HEAP = ".extern .func (.param .b64 m) malloc(.param .b64 n);\n.extern .func free(.param .b64 m);\n"
MBARRIER = """
  mov.u32 %r1, s; setp.eq.u32 %p1, %r0, 0; @%p1 mbarrier.init.shared.b64 [%r1], 64; bar.sync 0;
"""
ARRIVE = "mbarrier.arrive.shared.b64 %d3, [%r1];\n"
WAIT = "W: mbarrier.test_wait.shared.b64 %p2, [%r1], %d3;\n@!%p2 bra W;\n"

BLOCK = """
  mov.u32 %r1, %ctaid.x; mad.lo.u32 %r2, %r1, 64, %r0; mul.wide.u32 %d3, %r2, 4; add.s64 %d3, %d0, %d3;
  xor.b32 %r3, %r2, 64; mul.wide.u32 %d4, %r3, 4; add.s64 %d4, %d0, %d4;
"""
# Block 0 writes word 8 and sets the flag, word 0; block 1 waits for it and reads the word.
PUBLISH = "mov.u32 %r1, %ctaid.x; setp.eq.u32 %p1, %r1, 1;\n"
SEND = "st.global.u32 [%d0+32], 7;\n// FENCE\nst.volatile.global.u32 [%d0], 1;\n"
RECEIVE = """R: ld.volatile.global.u32 %r2, [%d0]; setp.ne.u32 %p2, %r2, 1; @%p2 bra R;
membar.gl; ld.global.u32 %r3, [%d0+32]; // BUG
E:
"""

PLANTS = [
    Plant("read past the end", "out-of-bounds", "ld.global.u32 %r1, [%d1+4]; // BUG", ("+4", "")),
    Plant("write before the start", "out-of-bounds", "st.global.u32 [%d1+-4], %r0; // BUG", ("+-4", "")),
    Plant("shared past the end", "out-of-bounds", EXCHANGE + "st.shared.u32 [%r3+4], %r4; // BUG", ("+4", ""), shared=256),
    Plant("null pointer", "out-of-bounds", "mov.u64 %d2, 0;\nld.global.u32 %r1, [%d2]; // BUG", ("mov.u64 %d2, 0", "mov.u64 %d2, %d1")),
    Plant("generic past the end", "out-of-bounds", "ld.u32 %r1, [%d1+64]; // BUG", ("+64", "")),
    Plant("vector at 4 bytes", "misaligned", "ld.global.v2.u32 {%r1, %r2}, [%d0+4]; // BUG", ("+4", "+8")),
    Plant("shared word at a byte", "misaligned", EXCHANGE + "st.shared.u32 [%r1+2], %r4; // BUG", ("+2", "+4"), shared=64, block=1),
    Plant("register never written", "uninitialised", "st.global.u32 [%d1], %r9; // BUG", ("%r9", "%r0")),
    Plant("register written on one way", "uninitialised",
          "setp.lt.u32 %p1, %r0, 5;\n@%p1 mov.u32 %r9, 1;\nst.global.u32 [%d1], %r9; // BUG",
          ("@%p1 mov", "mov.u32 %r9, 0; @%p1 mov")),
    Plant("branch on nothing", "uninitialised", "setp.eq.u32 %p1, %r9, 0;\n@%p1 bra L; // BUG\nL:", ("%r9", "%r0")),
    Plant("address from nothing", "uninitialised", "add.u32 %r9, %r9, 0; mul.wide.u32 %d2, %r9, 4; add.s64 %d2, %d2, %d0;\nld.global.u32 %r1, [%d2]; // BUG",
          ("%r9, %r9, 0", "%r9, %r0, 0")),
    Plant("shared never written", "uninitialised", EXCHANGE + "ld.shared.u32 %r7, [%r3];\nst.global.u32 [%d1], %r7; // BUG",
          ("ld.shared.u32 %r7", "st.shared.u32 [%r3], %r4; ld.shared.u32 %r7"), shared=256),
    Plant("local never written", "uninitialised",
          ".local .align 4 .b8 l[8]; mov.u64 %d2, l;\nld.local.u32 %r7, [%d2+4];\nst.global.u32 [%d1], %r7; // BUG",
          ("ld.local.u32 %r7", "st.local.u32 [%d2+4], %r0; ld.local.u32 %r7")),
    Plant("read before the barrier", "shared-race",
          EXCHANGE + NEIGHBOUR + "st.shared.u32 [%r6], %r4; bar.sync 0;\nst.shared.u32 [%r3], %r0;\nld.shared.u32 %r7, [%r6]; // BUG\nst.global.u32 [%d1], %r7;",
          ("%r0;\n", "%r0; bar.sync 0;\n"), shared=256),
    Plant("overwrite after reading", "shared-race",
          EXCHANGE + NEIGHBOUR + "st.shared.u32 [%r3], %r4; bar.sync 0;\nld.shared.u32 %r7, [%r6];\nst.shared.u32 [%r3], %r0; // BUG",
          ("[%r6];\n", "[%r6]; bar.sync 0;\n"), shared=256),
    Plant("two writers", "shared-race", EXCHANGE + "st.shared.u32 [%r1], %r0; // BUG", ("[%r1], %r0", "[%r3], %r0"), shared=256),
    Plant("lanes without bar.warp.sync", "shared-race",
          EXCHANGE + LANE + "st.shared.u32 [%r3], %r4;\nld.shared.u32 %r7, [%r6]; // BUG\nst.global.u32 [%d1], %r7;",
          ("%r4;\n", "%r4; bar.warp.sync -1;\n"), shared=256, block=32, elements=32),
    Plant("next phase before the readers are done", "shared-race",
          "mov.u32 %r1, s; shl.b32 %r2, %r0, 2; add.u32 %r3, %r1, %r2; setp.eq.u32 %p1, %r0, 0; @%p1 mbarrier.init.shared.b64 [%r1], 64; mov.u32 %r5, 0; bar.sync 0;\n"
          "T: add.u32 %r6, %r0, %r5; and.b32 %r7, %r5, 1;\nst.shared.u32 [%r3+64], %r6; // BUG\nmbarrier.arrive.shared.b64 %d3, [%r1];\n"
          "W: mbarrier.test_wait.parity.shared.b64 %p2, [%r1], %r7; @!%p2 bra W;\nxor.b32 %r8, %r2, 128; add.u32 %r8, %r8, %r1; ld.shared.u32 %r9, [%r8+64]; add.u32 %r5, %r5, 1;\n"
          "setp.lt.u32 %p3, %r5, 3; @%p3 bra T;", ("add.u32 %r5, %r5, 1;", "add.u32 %r5, %r5, 1; bar.sync 0;"), shared=512),
    Plant("chain of three with one block's scope", "global-race",
          "mov.u32 %r1, %ctaid.x; setp.eq.u32 %p1, %r1, 1; @%p1 bra B; setp.eq.u32 %p1, %r1, 2; @%p1 bra C;\nst.global.u32 [%d0+64], 5; st.release.gpu.global.u32 [%d0], 1; bra E;\n"
          "B: ld.relaxed.gpu.global.u32 %r2, [%d0]; setp.ne.u32 %p2, %r2, 1; @%p2 bra B; fence.acq_rel.cta; st.relaxed.gpu.global.u32 [%d0+32], 1; bra E;\n"
          "C: ld.acquire.gpu.global.u32 %r2, [%d0+32]; setp.ne.u32 %p2, %r2, 1; @%p2 bra C;\nld.global.u32 %r3, [%d0+64]; // BUG\nE:", ("acq_rel.cta", "acq_rel.gpu"), grid=3, block=1),
    Plant("warp sync without the writers", "shared-race",
          EXCHANGE + "st.shared.u32 [%r3], %r4;\nsetp.lt.u32 %p1, %r0, 16; @!%p1 bra E;\nbar.warp.sync 0xffff;\nxor.b32 %r5, %r2, 64; add.u32 %r6, %r1, %r5; ld.shared.u32 %r7, [%r6]; // BUG\nst.global.u32 [%d1], %r7;\nE:",
          ("xor.b32 %r5, %r2, 64", "xor.b32 %r5, %r2, 60"), shared=256, block=32, elements=32),
    Plant("word of another group", "global-race",
          "st.global.u32 [%d1], %r0; mov.u32 %r5, 0xffff; setp.ge.u32 %p1, %r0, 16; @%p1 mov.u32 %r5, 0xffff0000;\nbar.warp.sync %r5;\nxor.b32 %r6, %r0, 16; mul.wide.u32 %d2, %r6, 4; add.s64 %d2, %d0, %d2; ld.global.u32 %r7, [%d2]; // BUG",
          ("%r6, %r0, 16", "%r6, %r0, 15"), block=32, elements=32),
    Plant("warp sync where a block sync is due", "shared-race",
          EXCHANGE + NEIGHBOUR + "st.shared.u32 [%r3], %r4;\nbar.warp.sync -1;\nld.shared.u32 %r7, [%r6]; // BUG",
          ("bar.warp.sync -1", "bar.sync 0"), shared=256),
    Plant("copy read before its wait", "async-unwaited",
          COPY + "cp.async.cg.shared.global [%r3], [%d2], 16; cp.async.commit_group;\nld.shared.u32 %r7, [%r3]; // BUG\ncp.async.wait_group 0;",
          ("commit_group;\n", "commit_group; cp.async.wait_group 0;\n"), shared=1024, elements=256),
    Plant("wait for the group before", "async-unwaited",
          COPY + "cp.async.cg.shared.global [%r3], [%d2], 16; cp.async.commit_group;\ncp.async.wait_group 1;\nld.shared.u32 %r7, [%r3]; // BUG\ncp.async.wait_all;",
          ("wait_group 1", "wait_group 0"), shared=1024, elements=256),
    Plant("store into a copy", "async-overwrite",
          COPY + "cp.async.ca.shared.global [%r3], [%d2], 4;\nst.shared.u32 [%r3], %r0; // BUG\ncp.async.wait_all;",
          ("[%d2], 4;\n", "[%d2], 4; cp.async.wait_all;\n"), shared=1024, elements=256),
    Plant("copy into a copy", "async-overwrite",
          COPY + "cp.async.cg.shared.global [%r3], [%d2], 16; cp.async.commit_group;\ncp.async.cg.shared.global [%r3], [%d2], 16; // BUG\ncp.async.wait_all;",
          ("commit_group;\n", "commit_group; cp.async.wait_group 0;\n"), shared=1024, elements=256),
    Plant("exit with a copy", "exit-with-async",
          COPY + "cp.async.cg.shared.global [%r3], [%d2], 16; cp.async.commit_group;\n",
          ("commit_group;", "commit_group; cp.async.wait_group 0;"), mark="ret;", shared=1024, elements=256),
    Plant("exit with an uncommitted copy", "exit-with-async", COPY + "cp.async.cg.shared.global [%r3], [%d2], 16;\n",
          ("16;\n", "16; cp.async.wait_all;\n"), mark="ret;", shared=1024, elements=256),
    Plant("barrier in half a warp", "divergent-aligned", "setp.lt.u32 %p1, %r0, 16;\n@!%p1 bra E;\nbar.sync 0; // BUG\nE:",
          ("%r0, 16", "%r0, 64")),
    Plant("ldmatrix in half a warp", "divergent-aligned",
          EXCHANGE + "st.shared.u32 [%r3], %r4; bar.sync 0;\nsetp.lt.u32 %p1, %r0, 16;\n@!%p1 bra E;\nldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r7}, [%r1]; // BUG\nE:",
          ("%r0, 16", "%r0, 64"), shared=256),
    Plant("barrier that one warp skips", "deadlock",
          "setp.lt.u32 %p1, %r0, 32;\n@%p1 bra A;\nbar.sync 1;\nbra E;\nA: bar.sync 2; // BUG\nE:", ("bar.sync 2", "bar.sync 1")),
    Plant("two barriers crossed", "deadlock",
          "setp.lt.u32 %p1, %r0, 32;\n@%p1 bra A;\nbar.sync 1; bar.sync 2; bra E;\nA: bar.sync 2; // BUG\nbar.sync 1;\nE:",
          ("A: bar.sync 2; // BUG\nbar.sync 1;", "A: bar.sync 1; bar.sync 2;")),
    Plant("counts that differ", "barrier-mismatch",
          "setp.lt.u32 %p1, %r0, 32;\n@%p1 bra A;\nbar.sync 1, 96; // BUG\nbra E;\nA: bar.sync 1, 64;\nE:", ("96", "64")),
    Plant("count never reached", "barrier-mismatch", "bar.sync 1, 128; // BUG", ("128", "64")),
    Plant("atomic past the end", "out-of-bounds", "red.global.add.u32 [%d1+4], 1; // BUG", ("+4", "")),
    Plant("copy from past the end", "out-of-bounds",
          COPY + "cp.async.cg.shared.global [%r3], [%d2+16], 16; // BUG\ncp.async.wait_all;", ("+16", ""), shared=1024, elements=256),
    Plant("double at 4 bytes of shared memory", "misaligned", "mov.u32 %r1, s; shl.b32 %r2, %r0, 3; add.u32 %r3, %r1, %r2;\nst.shared.u64 [%r3+4], %d0; // BUG",
          ("+4", "+8"), shared=1024),
    Plant("copy to 8 bytes of shared memory", "misaligned",
          COPY + "cp.async.cg.shared.global [%r3+8], [%d2], 16; // BUG\ncp.async.wait_all;", ("+8", "+16"), shared=2048, elements=256),
    Plant("read after free", "use-after-free", MALLOC + FREE + "ld.u32 %r9, [%d5]; // BUG\n", (FREE, ""), heap=True),
    Plant("write after free", "use-after-free", MALLOC + FREE + "st.u32 [%d5+4], %r0; // BUG\n", (FREE, ""), heap=True),
    Plant("freed twice", "use-after-free", MALLOC + FREE + FREE.replace("}\n", "} // BUG\n"), (FREE + FREE[:8], FREE[:8]), heap=True),
    Plant("past the end of a block of malloc", "out-of-bounds", MALLOC + "st.u32 [%d5+16], %r0; // BUG\n", ("+16", "+12"), heap=True),
    Plant("malloc's block never written", "uninitialised", MALLOC + "ld.u32 %r9, [%d5+8];\nst.global.u32 [%d1], %r9; // BUG\n", ("[%d5+8]", "[%d5]"), heap=True),
    Plant("mbarrier never initialised", "mbarrier-misuse", "mov.u32 %r1, s; bar.sync 0;\nmbarrier.arrive.shared.b64 %d3, [%r1]; // BUG",
          ("bar.sync", "setp.eq.u32 %p1, %r0, 0; @%p1 mbarrier.init.shared.b64 [%r1], 64; bar.sync"), shared=16),
    Plant("mbarrier for no one", "mbarrier-misuse", "mov.u32 %r1, s; setp.eq.u32 %p1, %r0, 0;\n@%p1 mbarrier.init.shared.b64 [%r1], 0; // BUG",
          ("], 0;", "], 1;"), shared=16),
    Plant("more arrivals than expected", "mbarrier-misuse", MBARRIER + "mbarrier.arrive.shared.b64 %d3, [%r1], 65; // BUG",
          (", 65;", ", 1;"), shared=16),
    Plant("noComplete that completes", "mbarrier-misuse", MBARRIER.replace("64;", "1;") + "@!%p1 bra E;\nmbarrier.arrive.noComplete.shared.b64 %d3, [%r1], 1; // BUG\nE:",
          (".noComplete.shared.b64 %d3, [%r1], 1", ".shared.b64 %d3, [%r1]"), shared=16),
    Plant("a state from long ago", "mbarrier-misuse",
          MBARRIER + ARRIVE + "mov.u64 %d4, %d3;\n" + WAIT + ARRIVE + WAIT.replace("W", "U") + ARRIVE
          + "mbarrier.test_wait.shared.b64 %p2, [%r1], %d4; // BUG\n", ("%p2, [%r1], %d4", "%p2, [%r1], %d3"), shared=16),
    Plant("an assertion", "trap", "setp.ne.u32 %p1, %r0, 7;\n@%p1 bra E;\ntrap; // BUG\nE:", ("%r0, 7", "%r0, 99")),
    Plant("lock that nobody gives back", "deadlock", "L: atom.global.cas.b32 %r1, [%d0], 0, 1;\nsetp.eq.u32 %p1, %r1, 99;\n@!%p1 bra L; // BUG", ("%p1, %r1, 99", "%p1, %r1, %r1"),
          mark=None),
    Plant("blocks that add without atomics", "global-race", "ld.global.u32 %r1, [%d1]; add.u32 %r1, %r1, 1;\nst.global.u32 [%d1], %r1; // BUG",
          ("ld.global.u32 %r1, [%d1]; add.u32 %r1, %r1, 1;\nst.global.u32 [%d1], %r1;", "red.global.add.u32 [%d1], 1;"), grid=4),
    Plant("blocks that read each other's results", "global-race",
          BLOCK + "st.global.u32 [%d3], %r0;\nld.global.u32 %r7, [%d4]; // BUG\n", ("[%d4]", "[%d3]"), grid=4, elements=256),
    Plant("a flag without a fence", "global-race", PUBLISH + "@%p1 bra R;\n" + SEND + "bra E;\n" + RECEIVE, ("// FENCE", "membar.gl;"), grid=2, block=1),
    Plant("a flag read without a fence", "global-race", PUBLISH.replace("// FENCE", "") + "@%p1 bra R;\n" + SEND.replace("// FENCE", "membar.gl;") + "bra E;\n" + RECEIVE.replace("membar.gl; ", "// FENCE\n"),
          ("// FENCE", "membar.gl;"), grid=2, block=1),
    Plant("a release of block scope", "global-race", PUBLISH + "@%p1 bra R;\n" + SEND.replace("// FENCE\nst.volatile.global", "st.release.cta.global") + "bra E;\n" + RECEIVE,
          ("release.cta", "release.gpu"), grid=2, block=1),
    Plant("an atomic of block scope", "global-race", "red.relaxed.cta.global.add.u32 [%d0], 1; // BUG", (".cta", ".gpu"), grid=2),
    Plant("threads of a block without a barrier", "global-race", "xor.b32 %r2, %r0, 32; mul.wide.u32 %d2, %r2, 4; add.s64 %d2, %d0, %d2;\nst.global.u32 [%d1], %r0;\nld.global.u32 %r7, [%d2]; // BUG\n",
          ("%r0;\nld", "%r0; bar.sync 0;\nld")),
    Plant("lanes that write one word", "global-race", "st.global.u32 [%d0], %r0; // BUG", ("[%d0]", "[%d1]")),
    Plant("a relaxed flag in shared memory", "shared-race",
          "mov.u32 %r1, s; setp.eq.u32 %p1, %r0, 0; @%p1 st.shared.u32 [%r1], 0; bar.sync 0; setp.ge.u32 %p2, %r0, 32; @%p2 bra R;\n"
          "@!%p1 bra E; st.shared.u32 [%r1+4], %r0;\n// FENCE\natom.relaxed.cta.shared.exch.b32 %r9, [%r1], 1;\nbra E;\n"
          "R: ld.acquire.cta.shared.u32 %r2, [%r1]; setp.eq.u32 %p3, %r2, 0; @%p3 bra R;\nld.shared.u32 %r3, [%r1+4]; // BUG\nE:", ("// FENCE", "membar.cta;"), shared=16),
    Plant("more than the stack", "out-of-bounds", "mov.u64 %d2, 16000;\nalloca.u64 %d3, %d2; // BUG\nalloca.u64 %d4, %d2; // BUG\nst.local.u32 [%d3], %r0;",
          ("%d2, 16000", "%d2, 8000"), mark="%d4, %d2; // BUG"),
    Plant("memory of the stack never written", "uninitialised", "mov.u64 %d2, 64;\nalloca.u64 %d3, %d2, 16;\nst.local.u32 [%d3+4], %r0;\nld.local.u32 %r7, [%d3]; st.global.u32 [%d1], %r7; // BUG",
          ("[%d3]", "[%d3+4]")),
    Plant("trap", "trap", "setp.eq.u32 %p1, %r0, 3;\n@%p1 trap; // BUG", ("%r0, 3", "%r0, 99")),
]  # fmt: skip


def run(text: str, plant: Plant, **options) -> simulator.Report:
    x = np.arange(plant.elements, dtype=np.uint32)
    return simulator.launch(text, "k", plant.grid, plant.block, [x], **options)


@pytest.mark.parametrize("plant", PLANTS, ids=lambda plant: plant.name)
def test_planted_bug_is_found_and_its_twin_is_clean(plant):
    text = plant.text(plant.body)
    report = run(text, plant)
    found = [finding for finding in report.findings if finding.kind == plant.kind]
    assert found, f"expected {plant.kind}, but got {[str(f) for f in report.findings]}"
    assert not plant.mark or line_of(text, plant.mark) in {finding.line for finding in found}, [
        str(finding) for finding in found
    ]
    assert all(finding.kernel == "k" and finding.cta[0] < plant.grid for finding in found)
    assert {finding.kind for finding in report.findings} == {plant.kind}, [str(finding) for finding in report.findings]

    assert plant.edit[0] in plant.body
    twin = plant.text(plant.body.replace(*plant.edit, 1))
    for seed in (0, 5):
        clean = run(twin, plant, seed=seed)
        assert not clean.findings, [str(finding) for finding in clean.findings]


def test_a_phase_that_never_ends_says_who_is_missing():
    text = kernel(MBARRIER.replace("64;", "65;") + ARRIVE + WAIT, shared=16)
    report = run(text, PLANTS[0])
    assert {finding.kind for finding in report.findings} == {"deadlock", "mbarrier-misuse"}
    assert {finding.line for finding in report.findings} == {line_of(text, "W:")}
    for finding in report.findings:
        assert "phase 0 and has 64 of 65 arrivals" in finding.message, finding.message


def test_both_sides_of_a_race_are_named():
    plant = next(plant for plant in PLANTS if plant.name == "read before the barrier")
    text = kernel(plant.body, shared=plant.shared)
    write, read = line_of(text, "st.shared", 1), line_of(text, "// BUG")
    for finding in run(text, plant).findings:
        other = {write: read, read: write}[finding.line]
        assert f"at line {other}" in finding.other and f"warp {1 - finding.warp}," in finding.other


def test_source_line_through_loc():
    text = kernel("ld.global.u32 %r1, [%d1+4];").replace("  ret;", "  ret;", 1)
    text = text.replace("ld.global.u32 %r1", ".loc 1 42 3\n  ld.global.u32 %r1") + '.file 1 "add.py"\n'
    plant = PLANTS[0]
    assert run(text, plant).findings[0].source == "add.py:42"


def test_one_value_from_many_threads_is_an_advisory():
    text = kernel(EXCHANGE + "mov.u32 %r9, 7; st.shared.u32 [%r1], %r9;", shared=256)
    report = run(text, PLANTS[0])
    assert not report.findings and report.advisories[0].kind == "shared-race"


def test_checks_can_be_chosen():
    plant = next(plant for plant in PLANTS if plant.name == "two writers")
    text = kernel(plant.body, shared=plant.shared)
    assert not run(text, plant, checks="none").findings
    assert not run(text, plant, checks="uninitialised,async").findings
    assert run(text, plant, checks="races").findings
    half = next(plant for plant in PLANTS if plant.name == "barrier in half a warp")
    assert not run(kernel(half.body), half, checks="races,async,uninitialised").findings
    out = PLANTS[0]
    assert run(kernel(out.body), out, checks="none").findings, "bounds are always checked"


def test_copies_are_visible_only_after_the_wait():
    body = (
        COPY
        + """
      mov.u32 %r7, 99; st.shared.v4.u32 [%r3], {%r7, %r7, %r7, %r7};
      cp.async.cg.shared.global [%r3], [%d2], 16; cp.async.commit_group;
      ld.shared.u32 %r8, [%r3];
      cp.async.wait_group 0;
      ld.shared.u32 %r9, [%r3];
      st.global.v2.u32 [%d2], {%r8, %r9};"""
    )
    x = np.arange(128, dtype=np.uint32)
    simulator.launch(kernel(body, shared=512), "k", 1, 32, [x], checks="none")
    assert (x[0::4] == 99).all() and (x[1::4] == np.arange(0, 128, 4)).all()


SPIN = """
L: atom.global.cas.b32 %r1, [%d0], 0, 1;
  setp.ne.u32 %p1, %r1, 0;
  @%p1 bra L;
  ld.volatile.global.u32 %r2, [%d0+4];
  add.u32 %r2, %r2, 1;
  st.volatile.global.u32 [%d0+4], %r2;
  membar.gl;
  atom.global.exch.b32 %r3, [%d0], 0;"""


def test_spin_lock_inside_a_warp_ends():
    x = np.zeros(64, np.uint32)
    report = simulator.launch(kernel(SPIN), "k", 3, 64, [x])
    assert x[1] == 3 * 64 and x[0] == 0 and not report.findings


def test_grid_barrier_ends():
    body = """
      setp.ne.u32 %p1, %r0, 0; @%p1 bra E;
      atom.global.add.u32 %r1, [%d0], 1;
    L: ld.volatile.global.u32 %r2, [%d0];
      setp.lt.u32 %p2, %r2, 20; @%p2 bra L;
    E: bar.sync 0;"""
    x = np.zeros(64, np.uint32)
    for threads in (1, 2):
        x[:] = 0
        report = simulator.launch(kernel(body), "k", 20, 64, [x], threads=threads)
        assert x[0] == 20 and not report.findings


def test_bank_conflicts_are_counted():
    body = "mov.u32 %r1, s; mul.lo.u32 %r2, %r0, STRIDE; add.u32 %r3, %r1, %r2; st.shared.u32 [%r3], %r0;"
    for stride, wavefronts in ((4, 1), (8, 2), (128, 32), (132, 1)):
        text = kernel(body.replace("STRIDE", str(stride)), shared=32 * 132)
        counters = simulator.launch(text, "k", 1, 32, [np.zeros(64, np.uint32)]).counters
        assert (counters["shared_wavefronts"], counters["shared_wavefronts_ideal"]) == (wavefronts, 1), stride


def test_sectors_are_counted():
    body = "mul.wide.u32 %d2, %r0, STRIDE; add.s64 %d2, %d0, %d2; ld.global.u32 %r1, [%d2];"
    for stride, sectors in ((4, 4), (8, 8), (32, 32), (0, 1)):
        counters = simulator.launch(
            kernel(body.replace("STRIDE", str(stride))), "k", 1, 32, [np.zeros(256, np.uint32)]
        ).counters
        assert counters["global_sectors_read"] == sectors


def test_header_is_a_module_of_its_own():
    text = HEADER + ".visible .entry k()\n{" + REGISTERS + "ret;\n}\n"
    assert simulator.launch(text, "k", 1, 1, []).counters["warp_instructions"] == 1
