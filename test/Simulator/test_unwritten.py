# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Values that nothing wrote, followed exactly: using them is a finding, carrying them along is none."""

from __future__ import annotations

import numpy as np
import pytest
import weft.simulator as simulator
from snippets import kernel, line_of

HALF_WRITTEN = """
  .local .align 8 .b8 own[16]; mov.u64 %d2, own; st.local.u32 [%d2], %r0;
  ld.local.u64 %d3, [%d2]; mov.b64 %d4, %d3; st.local.u64 [%d2+8], %d4;
"""
LANES = "setp.ge.u32 %p1, %r0, 16; @!%p1 mov.u32 %r9, 0;\n"  # %r9 is written in lanes 0 to 15
PRODUCT = """
  mov.f32 %f1, 0f00000000; mov.u32 %r8, 0;
  mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%f4, %f5, %f6, %f7}, {A0, A1}, {B}, {%f1, %f1, %f1, C};
"""
ROWS = LANES + PRODUCT.replace("A0", "%r9").replace("A1", "%r8").replace("B", "%r8").replace("C", "%f1")
COLUMNS = LANES + PRODUCT.replace("A0", "%r8").replace("A1", "%r8").replace("B", "%r9").replace("C", "%f1")
SUMS = PRODUCT.replace("A0", "%r8").replace("A1", "%r8").replace("B", "%r8").replace("C", "%f9")
LAST = "and.b32 %r1, %r0, 3; setp.lt.u32 %p2, %r1, 2;\n"  # %p2 in lanes whose columns are below 4
TILE = """
  mov.u32 %r1, s; shl.b32 %r2, %r0, 4; add.u32 %r2, %r1, %r2; mov.u32 %r3, 0; setp.lt.u32 %p1, %r0, 4;
  @%p1 st.shared.v4.u32 [%r2], {%r3, %r3, %r3, %r3}; bar.warp.sync -1; and.b32 %r4, %r2, 0x7f; add.u32 %r4, %r1, %r4;
"""
# Rows of 16 bytes in shared memory, of which the first half is written; %r2 is that of row %r7 = lane % 8.
HALVES = """
  mov.u32 %r1, s; and.b32 %r7, %r0, 7; shl.b32 %r2, %r7, 4; add.u32 %r2, %r1, %r2; cvt.u16.u32 %h1, %r0;
  setp.lt.u32 %p3, %r0, 8; @%p3 st.shared.v2.u32 [%r2], {%r0, %r0}; bar.warp.sync -1;
"""

# Each is a finding at the marked line with the first of two texts, and clean with the second.
CASES = {
    "half of a word": (
        HALF_WRITTEN + "ld.local.u32 %r4, [%d2+AT];\nst.global.u32 [%d1], %r4; // BUG",
        ("AT", "12", "8"),
    ),
    "half of a register": (
        HALF_WRITTEN + "mov.b64 {%r4, %r5}, %d4;\nst.global.u32 [%d1], HALF; // BUG",
        ("HALF", "%r5", "%r4"),
    ),
    "narrowed": (
        HALF_WRITTEN + "shr.u64 %d5, %d4, BY; cvt.u32.u64 %r4, %d5;\nst.global.u32 [%d1], %r4; // BUG",
        ("BY", "32", "0"),
    ),
    "packed": (
        HALF_WRITTEN
        + "mov.b64 {%r4, %r5}, %d4; mov.b64 %d5, {%r0, PART}; shr.u64 %d5, %d5, 32; cvt.u32.u64 %r6, %d5;\n"
        + "st.global.u32 [%d1], %r6; // BUG",
        ("PART", "%r5", "%r4"),
    ),
    "a sum's lower half": (
        HALF_WRITTEN + "add.u64 %d5, %d4, 1; mov.b64 {%r4, %r5}, %d5;\nst.global.u32 [%d1], HALF; // BUG",
        ("HALF", "%r5", "%r4"),
    ),
    "carries go upwards": (
        HALF_WRITTEN
        + "shl.b64 %d5, %d4, 32; sub.u64 %d5, %d5, %d1; mov.b64 {%r4, %r5}, %d4; sub.u32 %r6, HALF, %r0;\n"
        "st.global.u32 [%d1], %r6; // BUG",
        ("HALF", "%r5", "%r4"),
    ),
    "what is above a carry": (
        "cvt.u16.u32 %h1, %r0; mov.b32 %r4, PAIR; mad.lo.u32 %r4, %r4, 3, %r0; mov.b32 {%h2, %h3}, %r4;\n"
        "st.global.b16 [%d1], %h2; // BUG",
        ("PAIR", "{%h7, %h1}", "{%h1, %h7}"),
    ),
    "shifted by some bits": (
        "cvt.u16.u32 %h1, %r0; mov.b32 %r4, {%h7, %h1}; shr.u32 %r4, %r4, BY; mov.b32 {%h2, %h3}, %r4;\n"
        "st.global.b16 [%d1], %h2; // BUG",
        ("BY", "1", "16"),
    ),
    "exclusive or": (
        "cvt.u16.u32 %h1, %r0; mov.b32 %r4, {%h7, %h1}; xor.b32 %r4, %r4, %r0; not.b32 %r4, %r4;\n"
        "mov.b32 {%h2, %h3}, %r4;\nst.global.b16 [%d1], HALF; // BUG",
        ("HALF", "%h2", "%h3"),
    ),
    "masked to a byte": (
        HALF_WRITTEN
        + "mov.b64 {%r4, %r5}, %d4; and.b32 %r6, HALF, 255; add.u32 %r6, %r6, %r0;\nst.global.u32 [%d1], %r6; // BUG",
        ("HALF", "%r5", "%r4"),
    ),
    "bit field": (
        HALF_WRITTEN
        + "mov.b64 {%r4, %r5}, %d4; bfe.u32 %r6, HALF, 8, 16; add.u32 %r6, %r6, %r0;\nst.global.u32 [%d1], %r6; // BUG",
        ("HALF", "%r5", "%r4"),
    ),
    "bytes picked": (
        HALF_WRITTEN + "mov.b64 {%r4, %r5}, %d4; prmt.b32 %r6, %r4, %r5, PICK;\nst.global.u32 [%d1], %r6; // BUG",
        ("PICK", "0x7654", "0x3120"),
    ),
    "converted into a pair": (
        "mov.f32 %f1, 0f3F800000; cvt.rn.f16x2.f32 %r4, %f9, %f1; fma.rn.f16x2 %r4, %r4, %r4, %r4;\n"
        "mov.b32 {%h2, %h3}, %r4;\nst.global.b16 [%d1], HALF; // BUG",
        ("HALF", "%h3", "%h2"),
    ),
    "arithmetic on pairs": (
        "cvt.u16.u32 %h1, %r0; mov.b32 %r4, {%h7, %h1}; neg.f16x2 %r4, %r4; add.f16x2 %r4, %r4, %r0;\n"
        "mov.b32 {%h2, %h3}, %r4;\nst.global.b16 [%d1], HALF; // BUG",
        ("HALF", "%h2", "%h3"),
    ),
    "half of a vector in shared memory": (
        "mov.u32 %r1, s; shl.b32 %r2, %r0, 3; add.u32 %r2, %r1, %r2; st.shared.v2.b32 [%r2], {%r0, %r9};\n"
        "ld.shared.v2.b32 {%r4, %r5}, [%r2];\nst.global.u32 [%d1], HALF; // BUG",
        ("HALF", "%r5", "%r4"),
    ),
    "zero times what nothing wrote": (
        "mul.lo.s32 %r4, FACTOR, 0;\nst.global.u32 [%d1], %r4; // BUG",
        ("FACTOR", "%r9", "%r0"),
    ),
    "how many bytes are copied": (
        "mov.u32 %r1, s; shl.b32 %r2, %r0, 2; add.u32 %r2, %r1, %r2; mul.lo.s32 %r4, COUNT, 0;\n"
        "cp.async.ca.shared.global [%r2], [%d1], 4, %r4; cp.async.wait_all; ld.shared.u32 %r5, [%r2];\n"
        "st.global.u32 [%d1], %r5; // BUG",
        ("COUNT", "%r9", "%r0"),
    ),
    "selected": (
        "setp.eq.u32 %p1, %r0, %r0; selp.b32 %r4, FIRST, %r9, %p1;\nst.global.u32 [%d1], %r4; // BUG",
        ("FIRST", "%r8", "%r0"),
    ),
    "selected by a negation": (
        "setp.ne.u32 %p1, %r0, %r0; selp.b32 %r4, FIRST, %r9, !%p1;\nst.global.u32 [%d1], %r4; // BUG",
        ("FIRST", "%r8", "%r0"),
    ),
    "row of a product": (ROWS + "NOT%p1 st.global.f32 [%d1], %f4; // BUG", ("NOT", "@", "@!")),
    "the other rows": (ROWS + "st.global.f32 [%d1], SUM; // BUG", ("SUM", "%f5", "%f6")),
    "column of a product": (COLUMNS + LAST + "NOT%p2 st.global.f32 [%d1], %f6; // BUG", ("NOT", "@!", "@")),
    "accumulator": (SUMS + "st.global.f32 [%d1], SUM; // BUG", ("SUM", "%f7", "%f6")),
    "row by ldmatrix": (
        TILE + "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r5}, [%r4];\nsetp.lt.u32 %p2, %r0, 16;\n"
        "NOT%p2 st.global.u32 [%d1], %r5; // BUG",
        ("NOT", "@!", "@"),
    ),
    "row by ldmatrix.trans": (
        TILE + "ldmatrix.sync.aligned.m8n8.x1.trans.shared.b16 {%r5}, [%r4];\n" + LAST
        + "NOT%p2 st.global.u32 [%d1], %r5; // BUG",
        ("NOT", "@!", "@"),
    ),
    "half of a row by ldmatrix": (
        HALVES + "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r5}, [%r2];\n" + LAST
        + "NOT%p2 st.global.u32 [%d1], %r5; // BUG",
        ("NOT", "@!", "@"),
    ),
    "half of a row by ldmatrix.trans": (
        HALVES + "ldmatrix.sync.aligned.m8n8.x1.trans.shared.b16 {%r5}, [%r2];\nsetp.lt.u32 %p2, %r0, 16;\n"
        "NOT%p2 st.global.u32 [%d1], %r5; // BUG",
        ("NOT", "@!", "@"),
    ),
    "one element of a row by ldmatrix.trans": (
        HALVES.replace("st.shared.v2.u32 [%r2], {%r0, %r0}", "st.shared.u16 [%r2+6], %h1")
        + "ldmatrix.sync.aligned.m8n8.x1.trans.shared.b16 {%r5}, [%r2]; shr.u32 %r6, %r0, 2;\n"
        "setp.eq.u32 %p2, %r6, COLUMN;\n@%p2 st.global.u32 [%d1], %r5; // BUG",
        ("COLUMN", "2", "3"),
    ),
    "rows by movmatrix": (
        LANES + "movmatrix.sync.aligned.m8n8.trans.b16 %r5, %r9;\n" + LAST
        + "NOT%p2 st.global.u32 [%d1], %r5; // BUG",
        ("NOT", "@!", "@"),
    ),
    "rows by stmatrix": (
        LANES + HALVES + "stmatrix.sync.aligned.m8n8.x1.shared.b16 [%r2], {%r9}; bar.warp.sync -1;\n"
        "ld.shared.u32 %r5, [%r2]; setp.lt.u32 %p2, %r7, 4;\nNOT%p2 st.global.u32 [%d1], %r5; // BUG",
        ("NOT", "@!", "@"),
    ),
    "rows by stmatrix.trans": (
        LANES + HALVES + "stmatrix.sync.aligned.m8n8.x1.trans.shared.b16 [%r2], {%r9}; bar.warp.sync -1;\n"
        "ld.shared.v4.u32 {%r3, %r4, %r5, %r6}, [%r2];\nst.global.u32 [%d1], PAIR; // BUG",
        ("PAIR", "%r5", "%r4"),
    ),
    # The first element is written, and no other value of the warp was ever unwritten.
    "element of a vector": (
        "mov.u32 %r1, s; shl.b32 %r2, %r0, 4; add.u32 %r2, %r1, %r2; st.shared.v2.u32 [%r2], {%r0, %r0};\n"
        "ld.shared.v4.u32 {%r4, %r5, %r6, %r7}, [%r2];\nst.global.u32 [%d1], ELEMENT; // BUG",
        ("ELEMENT", "%r6", "%r5"),
    ),
    "vote of a group": (
        "setp.ge.u32 %p1, %r0, 16; @!%p1 mov.u32 %r9, 0; mov.u32 %r2, 0xffff; @%p1 mov.u32 %r2, 0xffff0000;\n"
        "redux.sync.add.s32 %r3, %r9, %r2;\nNOT%p1 st.global.u32 [%d1], %r3; // BUG",
        ("NOT", "@", "@!"),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_only_what_is_used_counts(name):
    body, (place, wrong, right) = CASES[name]
    text = kernel(body.replace(place, wrong), shared=512)
    report = simulator.launch(text, "k", 1, 32, [np.zeros(64, np.uint32)])
    assert [(found.kind, found.line) for found in report.findings] == [("uninitialised", line_of(text, "// BUG"))]
    clean = simulator.launch(kernel(body.replace(place, right), shared=512), "k", 1, 32, [np.zeros(64, np.uint32)])
    assert not clean.findings, list(map(str, clean.findings))


def test_padding_reaches_memory():
    text = kernel(HALF_WRITTEN + "mul.wide.u32 %d5, %r0, 8; add.s64 %d5, %d0, %d5; st.global.u64 [%d5], %d4;")
    x = np.zeros((32, 2), np.uint32)
    assert not simulator.launch(text, "k", 1, 32, [x]).findings
    assert (x[:, 0] == np.arange(32)).all()
