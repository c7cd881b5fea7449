# Part of Weft. SPDX-License-Identifier: Apache-2.0
# ruff: noqa: E501 -- a kernel and its edit stand on one line each
"""Planted bugs in PTX written by hand."""

from __future__ import annotations

import dataclasses

from snippets import kernel


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
    zero: bool = False
    """The buffer begins as zeros, not as 0, 1, 2, ..."""
    functions: str = ""
    wrong: str = ""
    """What stands for the edit's place in the faulty text, where that is a name."""
    also: tuple[str, ...] = ()
    """Further kinds that the same fault is."""

    def text(self, body: str) -> str:
        """A kernel of this body, or of its twin's."""
        text = kernel(body, shared=self.shared)
        return text.replace(".visible", (HEAP if self.heap else "") + self.functions + ".visible", 1)

    @property
    def faulty(self) -> str:
        return self.text(self.body.replace(self.edit[0], self.wrong) if self.wrong else self.body)

    @property
    def twin(self) -> str:
        assert self.edit[0] in self.body
        return self.text(self.body.replace(*self.edit, 1))


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

KEEPERS = """
.func (.param .b64 m) keep_own(.param .b64 given) {
  .local .align 4 .b8 own[8]; .reg .b64 %d<4>;
  mov.u64 %d1, own; st.local.u32 [%d1], 7; st.local.u32 [%d1+4], 7; st.param.b64 [m], %d1; ret;
}
.func (.param .b64 m) keep_given(.param .b64 given) {
  .reg .b64 %d<4>; ld.param.b64 %d1, [given]; st.param.b64 [m], %d1; ret;
}
"""
KEEP = """.local .align 4 .b8 mine[8]; mov.u64 %d4, mine; st.local.u32 [%d4], 5; st.local.u32 [%d4+4], 5;
  { .param .b64 g; st.param.b64 [g], %d4; .param .b64 m; call (m), KEEPER, (g); ld.param.b64 %d5, [m]; }\n"""
# The second reads what the first call of it wrote.
TWICE = """
.func (.param .b64 m) once() { .reg .b64 %d<4>; mov.u64 %d1, 3; st.param.b64 [m], %d1; ret; }
.func (.param .b64 m) twice() {
  .local .align 8 .b8 own[8]; .reg .b64 %d<4>;
  ld.local.u64 %d1, [own]; st.param.b64 [m], %d1; st.local.u64 [own], %d1; mov.u64 %d2, 1; st.local.u64 [own], %d2; ret;
}
"""
CHECKS = """
.func must_be_small(.param .b32 n) {
  .reg .pred %p<2>; .reg .b32 %r<2>; ld.param.b32 %r1, [n]; setp.lt.u32 %p1, %r1, 60; @%p1 ret;
  trap;
}
.func may_be_any(.param .b32 n) { ret; }
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
    Plant("read beyond by a vector", "misaligned", "shl.b32 %r1, %r0, 3; cvt.u64.u32 %d2, %r1; add.s64 %d2, %d0, %d2;\nld.global.v4.u32 {%r2, %r3, %r4, %r5}, [%d2]; // BUG", ("%r0, 3", "%r0, 4"), elements=512),
    Plant("atomic at a byte", "misaligned", "red.global.add.u32 [%d0+1], 1; // BUG", ("+1", "+4")),
    Plant("local word at a half", "misaligned", ".local .align 8 .b8 l[16]; mov.u64 %d2, l; st.local.u32 [%d2], %r0; st.local.u32 [%d2+4], %r0;\nld.local.u32 %r7, [%d2+2]; // BUG", ("+2", "+4")),
    Plant("memory of the stack after its restore", "use-after-free",
          "mov.u64 %d2, 64; stacksave.u64 %d4;\nalloca.u64 %d3, %d2, 16; st.local.u32 [%d3], %r0; stackrestore.u64 %d4;\nld.local.u32 %r7, [%d3]; st.global.u32 [%d1], %r7; // BUG", (" stackrestore.u64 %d4;", "")),
    Plant("stack written after its restore", "use-after-free",
          "mov.u64 %d2, 64; stacksave.u64 %d4;\nalloca.u64 %d3, %d2, 16; stackrestore.u64 %d4; cvta.local.u64 %d5, %d3;\nst.u32 [%d5+8], %r0; // BUG", (" stackrestore.u64 %d4;", "")),
    Plant("variable of a function that returned", "use-after-free", KEEP + "ld.local.u32 %r7, [%d5]; // BUG\nst.global.u32 [%d1], %r7;", ("KEEPER", "keep_given"), wrong="keep_own", functions=KEEPERS),
    Plant("frame of a function, through a generic address", "use-after-free", KEEP + "cvta.local.u64 %d5, %d5; st.u32 [%d5+4], %r0; // BUG\n", ("KEEPER", "keep_given"), wrong="keep_own", functions=KEEPERS),
    Plant("variable of a second call read before it is written", "uninitialised",
          "shl.b32 %r2, %r0, 3; cvt.u64.u32 %d2, %r2; add.s64 %d2, %d0, %d2; { .param .b64 m; call (m), once; } { .param .b64 m; call (m), twice; } { .param .b64 m; call (m), twice; ld.param.b64 %d5, [m]; }\nst.global.u64 [%d2], %d5; // BUG", ("twice; ld", "once; ld"), elements=128, functions=TWICE),
    Plant("guard of a store never written", "uninitialised", "setp.lt.u32 %p1, %r0, 5; @%p1 setp.eq.u32 %p2, %r0, 3;\n@%p2 st.global.u32 [%d1], %r0; // BUG",
          ("@%p1 setp", "setp.ne.u32 %p2, %r0, %r0; @%p1 setp")),
    Plant("guard of a load never written", "uninitialised", "@%p2 ld.global.u32 %r1, [%d1]; // BUG", ("@%p2 ld", "setp.eq.u32 %p2, %r0, 1; @%p2 ld")),
    Plant("guard of an atomic never written", "uninitialised", "not.pred %p3, %p2;\n@%p3 red.global.add.u32 [%d0], 1; // BUG", ("not.pred %p3, %p2", "setp.eq.u32 %p3, %r0, 1")),
    Plant("atomics on shared memory that nobody wrote", "uninitialised",
          "mov.u32 %r1, s;\nred.shared.add.u32 [%r1], 1; bar.sync 0; ld.shared.u32 %r2, [%r1];\nst.global.u32 [%d1], %r2; // BUG",
          ("s;\n", "s; setp.eq.u32 %p1, %r0, 0; @%p1 st.shared.u32 [%r1], 0; bar.sync 0;\n"), shared=16),
    Plant("largest of shared memory that nobody wrote", "uninitialised",
          "mov.u32 %r1, s;\natom.shared.max.u32 %r2, [%r1], %r0;\nst.global.u32 [%d1], %r2; // BUG",
          ("s;\n", "s; setp.eq.u32 %p1, %r0, 0; @%p1 atom.shared.exch.b32 %r3, [%r1], 0; bar.sync 0;\n"), shared=16),
    Plant("atomics on the heap that nobody wrote", "uninitialised", MALLOC + "red.add.u32 [%d5+4], 1; // BUG\n", ("[%d5+4]", "[%d5]"), heap=True),
    Plant("shuffle from a lane that is not there", "uninitialised",
          "setp.ge.u32 %p1, %r0, 16; @%p1 bra E; shfl.sync.down.b32 %r2, %r0, 8, 31, 0xffff;\nst.global.u32 [%d1], %r2; // BUG\nE:", (", 8, 31", ", 8, 15"), block=32, elements=32),
    Plant("copy read by a matrix load", "async-unwaited",
          COPY + "cp.async.cg.shared.global [%r3], [%d2], 16;\nldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r4, %r5, %r6, %r7}, [%r3]; // BUG\ncp.async.wait_all;",
          ("16;\n", "16; cp.async.wait_all;\n"), shared=1024, elements=256),
    Plant("another thread's copy", "async-unwaited",
          COPY + "cp.async.cg.shared.global [%r3], [%d2], 16;\nbar.sync 0; xor.b32 %r4, %r3, 512;\nld.shared.u32 %r7, [%r4]; // BUG\ncp.async.wait_all;",
          ("16;\n", "16; cp.async.wait_all;\n"), shared=1024, elements=256, also=("shared-race",)),
    Plant("atomic on a copy", "async-unwaited",
          COPY + "cp.async.ca.shared.global [%r3], [%d2], 4; cp.async.commit_group;\natom.shared.add.u32 %r7, [%r3], 1; // BUG\ncp.async.wait_group 0;",
          ("commit_group;\n", "commit_group; cp.async.wait_group 0;\n"), shared=1024, elements=256, also=("async-overwrite",)),
    Plant("source of a copy written", "async-overwrite",
          COPY + "cp.async.cg.shared.global [%r3], [%d2], 16;\nst.global.u32 [%d2+8], %r0; // BUG\ncp.async.wait_all;", ("16;\n", "16; cp.async.wait_all;\n"), shared=1024, elements=256),
    Plant("source of a copy written by another thread, behind a barrier", "async-overwrite",
          COPY + "cp.async.cg.shared.global [%r3], [%d2], 16;\nbar.sync 0; xor.b32 %r4, %r0, 32; mul.wide.u32 %d3, %r4, 16; add.s64 %d3, %d0, %d3;\nst.global.u32 [%d3], %r0; // BUG\nbar.sync 0; cp.async.wait_all;",
          ("16;\n", "16; cp.async.wait_all;\n"), shared=1024, elements=256),
    Plant("source of a copy added to", "async-overwrite",
          COPY + "cp.async.ca.shared.global [%r3], [%d2], 8; cp.async.commit_group;\nred.global.add.u32 [%d2+4], 1; // BUG\ncp.async.wait_group 0;",
          ("commit_group;\n", "commit_group; cp.async.wait_group 0;\n"), shared=1024, elements=256),
    Plant("some threads wait", "exit-with-async", COPY + "cp.async.cg.shared.global [%r3], [%d2], 16; setp.lt.u32 %p1, %r0, 40; @!%p1 bra E;\ncp.async.wait_all;\nE:",
          ("%r0, 40", "%r0, 64"), mark="ret;", shared=1024, elements=256),
    Plant("wait for all but one group", "exit-with-async",
          COPY + "cp.async.cg.shared.global [%r3], [%d2], 16; cp.async.commit_group; cp.async.wait_group 1;\n", ("wait_group 1", "wait_group 0"), mark="ret;", shared=1024, elements=256),
    Plant("exit in the middle", "exit-with-async",
          COPY + "cp.async.cg.shared.global [%r3], [%d2], 16; setp.eq.u32 %p1, %r0, 5;\n@%p1 exit; // BUG\ncp.async.wait_all;", ("\n@%p1 exit; // BUG", ""), shared=1024, elements=256),
    Plant("copies of the last turn", "exit-with-async",
          COPY + "mov.u32 %r9, 0;\nL: cp.async.wait_all; cp.async.cg.shared.global [%r3], [%d2], 16; add.u32 %r9, %r9, 1; setp.lt.u32 %p1, %r9, 3; @%p1 bra L;\n// LAST\n", ("// LAST", "cp.async.wait_all;"),
          mark="ret;", shared=1024, elements=256),
    Plant("more threads than it counts", "mbarrier-misuse", MBARRIER.replace("64;", "32;") + ARRIVE.replace("\n", " // BUG\n") + WAIT, ("b64 [%r1], 32", "b64 [%r1], 64"), shared=16),
    Plant("an arrival too many in a later phase", "mbarrier-misuse",
          MBARRIER + ARRIVE + WAIT + "@%p1 mbarrier.arrive.shared.b64 %d4, [%r1]; // EXTRA\n" + ARRIVE.replace("\n", " // BUG\n") + WAIT.replace("W", "U"),
          ("@%p1 mbarrier.arrive.shared.b64 %d4, [%r1]; // EXTRA\n", ""), shared=16, also=("deadlock",)),
    Plant("initialised twice", "mbarrier-misuse",
          MBARRIER + ARRIVE + WAIT + "bar.sync 0;\n@%p1 mbarrier.init.shared.b64 [%r1], 64; // BUG\nbar.sync 0;" + ARRIVE + WAIT.replace("W", "U"),
          ("bar.sync 0;\n@%p1 mbarrier.init", "bar.sync 0; @%p1 mbarrier.inval.shared.b64 [%r1];\n@%p1 mbarrier.init"), shared=16),
    Plant("count of another instance", "mbarrier-misuse", "mov.u32 %r1, s; setp.eq.u32 %p1, %r0, 0;\n@!%p1 bra E; mbarrier.init.shared.b64 [%r1], 8; mbarrier.init.shared.b64 [%r1+OFF], 4; // BUG\nE:",
          ("OFF", "8"), wrong="0", shared=16),
    Plant("warp 0 waits for a word that warp 1 never writes", "deadlock",
          "mov.u32 %r1, s; setp.eq.u32 %p1, %r0, 0; @%p1 st.shared.u32 [%r1], 0; bar.sync 0; setp.ge.u32 %p2, %r0, 32; @%p2 bra E;\nL: ld.acquire.cta.shared.u32 %r2, [%r1]; setp.eq.u32 %p3, %r2, 0; @%p3 bra L;\nbra F;\nE: // SET\nF:",
          ("// SET", "st.release.cta.shared.u32 [%r1], 1;"), mark=None, shared=16),
    Plant("block 0 waits for block 1's flag, which is another word", "deadlock",
          PUBLISH + "@%p1 bra R;\nL: ld.acquire.gpu.global.u32 %r2, [%d0+8]; setp.ne.u32 %p2, %r2, 99; @%p2 bra L;\nbra E;\nR: st.release.gpu.global.u32 [%d0+12], 99;\nE:", ("[%d0+12]", "[%d0+8]"), mark=None, grid=2, block=1),
    Plant("flag set behind a warp barrier that needs the one who waits", "deadlock",
          "mov.u32 %r1, s; setp.eq.u32 %p1, %r0, 0; @%p1 st.shared.u32 [%r1], 0; bar.warp.sync -1; @!%p1 bra S;\nL: ld.acquire.cta.shared.u32 %r2, [%r1]; setp.eq.u32 %p3, %r2, 0; @%p3 bra L;\nbra J;\n"
          "S: bar.warp.sync -1; setp.eq.u32 %p2, %r0, 1; @%p2 st.release.cta.shared.u32 [%r1], 1;\nJ:", ("S: bar.warp.sync -1", "S: bar.warp.sync -2"), mark=None, shared=16, block=32, elements=32),
    Plant("two locks in two orders", "deadlock",
          "mov.u32 %r1, %ctaid.x; shl.b32 %r1, %r1, 2; xor.b32 %r2, %r1, 4; cvt.u64.u32 %d2, %r1; cvt.u64.u32 %d3, %r2; add.s64 %d2, %d2, %d0; add.s64 %d3, %d3, %d0; st.release.gpu.global.u32 [%d2+64], 1;\n"
          "G: ld.acquire.gpu.global.u32 %r3, [%d3+64]; setp.ne.u32 %p1, %r3, 1; @%p1 bra G;\nA: atom.acquire.gpu.global.cas.b32 %r4, [%d2], 0, 1; setp.ne.u32 %p2, %r4, 0; @%p2 bra A;\n// RELEASE\n"
          "B: atom.acquire.gpu.global.cas.b32 %r5, [%d3], 0, 1; setp.ne.u32 %p3, %r5, 0; @%p3 bra B;\nred.release.gpu.global.add.u32 [%d3], -1;", ("// RELEASE", "red.release.gpu.global.add.u32 [%d2], -1;"),
          mark=None, grid=2, block=1, zero=True),
    Plant("bar.red that meets bar.sync", "barrier-mismatch",
          "setp.lt.u32 %p1, %r0, 32;\n@%p1 bra A;\nbar.red.popc.u32 %r3, 1, %p1; // BUG\nbra E;\nA: bar.sync 1;\nE:", ("bar.red.popc.u32 %r3, 1, %p1;", "bar.sync 1, 64;")),
    Plant("reductions of two kinds", "barrier-mismatch",
          "setp.lt.u32 %p1, %r0, 32;\n@%p1 bra A;\nbar.red.or.pred %p2, 1, %p1; // BUG\nbra E;\nA: bar.red.and.pred %p2, 1, %p1;\nE:", (".or.", ".and.")),
    Plant("lane that its shuffle leaves out", "barrier-mismatch", "shfl.sync.idx.b32 %r2, %r0, 3, 31, 0xfffffffe; // BUG\nst.global.u32 [%d1], %r2;", ("0xfffffffe", "-1")),
    Plant("lane that its warp barrier leaves out", "barrier-mismatch", "bar.warp.sync 0xffff; // BUG", ("0xffff", "-1")),
    Plant("votes whose masks disagree", "barrier-mismatch", "mov.u32 %r2, -1; setp.lt.u32 %p1, %r0, 16;\n@%p1 mov.u32 %r2, 0xffff; vote.sync.ballot.b32 %r3, %p1, %r2; // BUG", ("@%p1 mov.u32 %r2, 0xffff;", "")),
    Plant("groups that overlap", "barrier-mismatch",
          "and.b32 %r1, %r0, 24; mov.u32 %r2, WIDTH; shl.b32 %r2, %r2, %r1; redux.sync.add.s32 %r3, %r0, %r2; // BUG", ("WIDTH", "0xff"), block=32, wrong="0x1ff"),
    Plant("product in half a warp", "divergent-aligned",
          "mov.u32 %r8, 0; mov.f32 %f1, 0f00000000; setp.lt.u32 %p1, %r0, 48;\n@!%p1 bra E;\nmma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%f4, %f5, %f6, %f7}, {%r8, %r8}, {%r8}, {%f1, %f1, %f1, %f1}; // BUG\nE:", ("%r0, 48", "%r0, 64")),
    Plant("barrier that odd lanes skip", "divergent-aligned", "and.b32 %r1, %r0, 1; setp.eq.u32 %p1, %r1, PARITY; @%p1 bra E;\nbar.sync 0; // BUG\nE: st.global.u32 [%d1], %r0;", ("PARITY", "2"), wrong="1"),
    Plant("barrier in a loop of different lengths", "divergent-aligned",
          "mov.u32 %r1, 0;\nL: bar.sync 0; // BUG\nadd.u32 %r1, %r1, 1; setp.lt.u32 %p1, %r1, TURNS; @%p1 bra L;\nst.global.u32 [%d1], %r1;", ("TURNS", "9"), wrong="%r0"),
    Plant("guarded reduction", "divergent-aligned", "setp.lt.u32 %p1, %r0, 20;\n@%p1 bar.red.popc.u32 %r3, 0, %p1; // BUG\nst.global.u32 [%d1], %r0;", ("@%p1 bar", "bar")),
    Plant("jump through a table past its end", "trap", "T: .branchtargets A, B;\nand.b32 %r1, %r0, 3;\nbrx.idx %r1, T; // BUG\nA: st.global.u32 [%d1], %r0;\nB:", ("%r0, 3", "%r0, 1")),
    Plant("call through no function's address", "trap", "mov.u64 %d5, once; setp.eq.u32 %p1, %r0, 4; @%p1 mov.u64 %d5, WHERE;\nP: .callprototype (.param .b64 _) _ ();\n{ .param .b64 m; call (m), %d5, (), P; // BUG\n}", ("WHERE", "once"), wrong="%d0", functions=TWICE),
    Plant("trap in a function", "trap", "{ .param .b32 n; st.param.b32 [n], %r0; call must_be_small, (n); }", ("must_be_small", "may_be_any"), mark="trap;", functions=CHECKS),
]  # fmt: skip
