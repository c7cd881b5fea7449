# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Lanes that meet at shuffles, votes and warp barriers, each at its own copy of the instruction or in groups."""

from __future__ import annotations

import numpy as np
import pytest
import weft.simulator as simulator
from snippets import kernel, line_of
from weft.compiler.ptxas import assemble, find_tool

# Even and odd lanes come to different copies, with operands in other registers.
APART = """
  and.b32 %r1, %r0, 1; setp.eq.u32 %p1, %r1, 1; mul.lo.u32 %r2, %r0, 3; mov.u32 %r20, 31; cvt.u64.u32 %d5, %r1;
  setp.lt.u32 %p5, %r0, 9;
  @%p1 bra O;
  EVEN
  bra.uni J;
O: add.u32 %r4, %r0, 100; xor.b32 %r5, %r0, 7; mov.u32 %r6, -1; not.pred %p6, %p5;
  ODD
J: st.global.u32 [%d1], %r3;
"""
LANES = np.arange(32)
VALUES = np.where(LANES % 2, LANES + 100, LANES * 3)

CASES = {
    "shuffle": (
        "xor.b32 %r7, %r0, 5; shfl.sync.idx.b32 %r3|%p2, %r2, %r7, %r20, 0xffffffff;",
        "shfl.sync.idx.b32 %r3|%p3, %r4, %r5, 31, %r6; @!%p3 mov.u32 %r3, 0;",
        np.where(LANES % 2, VALUES[LANES ^ 7], VALUES[LANES ^ 5]),
    ),
    "vote": (
        "vote.sync.ballot.b32 %r3, %p5, 0xffffffff;",
        "vote.sync.ballot.b32 %r3, !%p6, %r6;",
        np.full(32, 0x1FF),
    ),
    "match": (
        "match.any.sync.b64 %r3, %d5, -1;",
        "mov.u64 %d6, 0; match.any.sync.b64 %r3, %d6, -1;",
        np.full(32, 0xFFFFFFFF),
    ),
    "reduction": (
        "redux.sync.add.s32 %r3, %r2, -1;",
        "redux.sync.add.s32 %r3, %r4, %r6;",
        np.full(32, VALUES.sum()),
    ),
    "guarded": (
        "setp.ne.u32 %p4, %r0, 4; mov.u32 %r3, 1; @%p4 redux.sync.add.s32 %r3, %r2, 0xffffffef;",
        "redux.sync.add.s32 %r3, %r4, 0xffffffef;",
        np.where(LANES == 4, 1, VALUES.sum() - VALUES[4]),
    ),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("seed", [0, 3])
def test_copies_of_an_instruction(name, seed):
    even, odd, want = CASES[name]
    x = np.zeros(32, np.uint32)
    text = kernel(APART.replace("EVEN", even).replace("ODD", odd))
    report = simulator.launch(text, "k", 1, 32, [x], seed=seed)
    assert not report.findings, list(map(str, report.findings))
    np.testing.assert_array_equal(x, want.astype(np.uint32))


def test_other_qualifiers_do_not_meet():
    text = kernel(
        APART.replace("EVEN", "redux.sync.add.s32 %r3, %r2, -1;").replace("ODD", "redux.sync.min.s32 %r3, %r4, %r6;")
    )
    report = simulator.launch(text, "k", 1, 32, [np.zeros(32, np.uint32)])
    assert {finding.kind for finding in report.findings} == {"divergent-aligned"}


UNROLLED = """
  ld.global.u32 %r1, [%d1]; mov.u32 %r2, 0; setp.gt.s32 %p1, %r1, 0; vote.sync.ballot.b32 %r3, %p1, -1;
  @!%p1 bra E;
  setp.lt.s32 %p2, %r1, 2; @%p2 bra R;
M: redux.sync.add.s32 %r4, %r1, %r3; add.u32 %r2, %r2, %r4; sub.u32 %r1, %r1, 1; setp.gt.s32 %p1, %r1, 0;
  vote.sync.ballot.b32 %r3, %p1, %r3;
  redux.sync.add.s32 %r5, %r1, %r3; add.u32 %r2, %r2, %r5; sub.u32 %r1, %r1, 1; setp.gt.s32 %p1, %r1, 0;
  vote.sync.ballot.b32 %r3, %p1, %r3;
  setp.gt.s32 %p3, %r1, 1; @%p3 bra M;
R: setp.lt.s32 %p2, %r1, 1; @%p2 bra E;
  redux.sync.add.s32 %r4, %r1, %r3; add.u32 %r2, %r2, %r4; sub.u32 %r1, %r1, 1; setp.gt.s32 %p1, %r1, 0;
  vote.sync.ballot.b32 %r3, %p1, %r3;
E: bar.warp.sync -1; st.global.u32 [%d1], %r2;
"""


def test_a_loop_unrolled_around_them():
    x = np.random.default_rng(5).integers(0, 8, 32).astype(np.uint32)
    # Each turn adds the sum of what the lanes that still run have left.
    want = [sum(np.maximum(x.astype(int) - turn, 0).sum() for turn in range(count)) for count in x]
    report = simulator.launch(kernel(UNROLLED), "k", 1, 32, [x])
    assert not report.findings, list(map(str, report.findings))
    np.testing.assert_array_equal(x, want)


def test_groups_wait_for_their_own_lanes():
    """Groups of eight at one bar.warp.sync: the second's other half is late, and waits for the first group's word."""
    body = """
      .shared .align 4 .b8 flag[4]; mov.u32 %r1, s; mov.u32 %r9, flag; shl.b32 %r2, %r0, 2; add.u32 %r3, %r1, %r2;
      setp.eq.u32 %p1, %r0, 0; @%p1 st.shared.u32 [%r9], 0; bar.warp.sync -1;
      and.b32 %r4, %r0, 24; mov.u32 %r5, 255; shl.b32 %r5, %r5, %r4;
      sub.u32 %r6, %r0, 12; setp.lt.u32 %p2, %r6, 4; @!%p2 bra S;
    W: ld.acquire.cta.shared.u32 %r7, [%r9]; setp.eq.u32 %p3, %r7, 0; @%p3 bra W;
    S: st.shared.u32 [%r3], %r0;
      bar.warp.sync %r5;
      xor.b32 %r6, %r2, 28; add.u32 %r6, %r1, %r6; ld.shared.u32 %r8, [%r6];
      @%p1 st.release.cta.shared.u32 [%r9], 1;
      st.global.u32 [%d1], %r8;"""
    for seed in (0, 4):
        x = np.zeros(32, np.uint32)
        report = simulator.launch(kernel(body, shared=128), "k", 1, 32, [x], seed=seed, limit=10**7)
        assert not report.findings, list(map(str, report.findings))
        np.testing.assert_array_equal(x, LANES ^ 7)


LEAVING = {
    "vote": ("vote.sync.ballot.b32 %r3, 1, -1;", 0xFFFF),
    "shuffle": ("shfl.sync.idx.b32 %r3, %r0, 3, 31, -1;", 3),
    "match": ("match.any.sync.b32 %r3, 1, -1;", 0xFFFF),
    "reduction": ("redux.sync.add.s32 %r3, %r0, -1;", sum(range(16))),
    "barrier": ("bar.warp.sync -1; mov.u32 %r3, 5;", 5),
}
#: Half of the warp ends before the others' instruction, after it has been waited for, and at the kernel's own end.
WAYS = {
    "before": "setp.lt.u32 %p1, %r0, 16; @!%p1 ret; THEIRS",
    "late": "setp.lt.u32 %p1, %r0, 16; @%p1 bra A; mov.u32 %r9, 9;"
    " W: sub.u32 %r9, %r9, 1; setp.ne.u32 %p3, %r9, 0; @%p3 bra W; ret; A: THEIRS",
    "at the end": "setp.lt.u32 %p1, %r0, 16; @!%p1 bra E; THEIRS E:",
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", LEAVING)
def test_lanes_that_have_ended_are_not_waited_for(name, way):
    """PTX ISA 9.7.13: "until all non-exited threads corresponding to membermask have executed" it."""
    instruction, want = LEAVING[name]
    text = kernel(WAYS[way].replace("THEIRS", instruction + "st.global.u32 [%d1], %r3;"))
    for seed in range(4):
        x = np.zeros(32, np.uint32)
        report = simulator.launch(text, "k", 1, 32, [x], seed=seed, limit=10**6)
        assert not report.findings, list(map(str, report.findings))
        np.testing.assert_array_equal(x, np.where(LANES < 16, want, 0))


@pytest.mark.parametrize("seed", range(4))
def test_a_barrier_of_the_block_after_lanes_have_ended(seed):
    """What seed the rest of the warp came before or after their `ret` by makes no difference; one that they only jump
    past is another matter."""
    for way, kinds in (("before", set()), ("late", set()), ("at the end", {"divergent-aligned"})):
        text = kernel(WAYS[way].replace("THEIRS", "bar.sync 0; st.global.u32 [%d1], %r0;"))
        report = simulator.launch(text, "k", 1, 32, [np.zeros(32, np.uint32)], seed=seed, limit=10**6)
        assert {finding.kind for finding in report.findings} == kinds, (way, list(map(str, report.findings)))


def test_live_lanes_are_waited_for():
    """The twin: the other half does not end but waits for what never comes."""
    body = "setp.lt.u32 %p1, %r0, 16; @%p1 bra A; redux.sync.min.s32 %r3, %r0, -1; ret;"
    body += "A: redux.sync.add.s32 %r3, %r0, -1;"
    report = simulator.launch(kernel(body), "k", 1, 32, [np.zeros(32, np.uint32)], limit=10**6)
    assert {finding.kind for finding in report.findings} == {"divergent-aligned"}


def blackwell(body: str, target: str = "sm_100a") -> str:
    return kernel(body).replace(".version 8.0", ".version 8.8").replace("sm_80", target)


REDUCE = "ld.global.f32 %f1, [%d1];\nredux.sync.{form}.f32 %f2, %f1, {members}; // BUG\nst.global.f32 [%d1], %f2;"


def float_reduction(form: str, members: str, target: str = "sm_100a", before: str = "") -> str:
    return blackwell(before + REDUCE.format(form=form, members=members), target)


@pytest.mark.parametrize("modifiers", ["", ".abs", ".NaN", ".abs.NaN"])
@pytest.mark.parametrize("operation", ["min", "max"])
def test_reductions_of_float32(operation, modifiers, seed):
    """A NaN is left out unless .NaN asks for it, -0 is below 0, .abs gives a magnitude; groups of eight lanes."""
    random = np.random.default_rng(seed)
    x = random.standard_normal((4, 8)).astype(np.float32)
    x[1, random.integers(8)], x[2] = np.nan, -np.nan
    x[3] = np.where(np.arange(8) == random.integers(8), 0.0, -0.0) * (1 if operation == "max" else -1)
    given = np.abs(x) if "abs" in modifiers else x
    keep = {"min": np.minimum if "NaN" in modifiers else np.fmin, "max": np.maximum if "NaN" in modifiers else np.fmax}
    expected = keep[operation].reduce(given, axis=1)
    expected[3] = 0.0 if "abs" in modifiers or operation == "max" else -0.0
    expected[np.isnan(expected)] = np.uint32(0x7FFFFFFF).view(np.float32)
    groups = "and.b32 %r4, %r0, 24; mov.u32 %r5, 255; shl.b32 %r5, %r5, %r4;\n"
    text = float_reduction(operation + modifiers, "%r5", before=groups)
    assert not simulator.launch(text, "k", 1, 32, [x.reshape(-1)], seed=seed).findings
    np.testing.assert_array_equal(x.view(np.uint32), np.repeat(expected[:, None], 8, 1).view(np.uint32))
    assert x[0, 0] and np.isnan(x[2]).all() and np.isnan(x[1, 0]) == ("NaN" in modifiers)
    if find_tool("ptxas"):
        assemble(text, "sm_100a")


@pytest.mark.parametrize("target", ["sm_80", "sm_90a", "sm_100", "sm_110a", "sm_120a"])
def test_targets_without_reductions_of_float32_refuse_them(target):
    text = float_reduction("max", "-1", target)
    line = line_of(text, "// BUG")
    with pytest.raises(simulator.SimulatorError, match=rf"line {line}.*redux.sync.max.f32.*'{target}'"):
        simulator.launch(text, "k", 1, 32, [np.zeros(32, np.float32)])


@pytest.mark.parametrize("target", ["sm_100f", "sm_103a"])
def test_targets_of_its_family_have_them(target):
    x = np.arange(32, dtype=np.float32)
    assert not simulator.launch(float_reduction("max", "-1", target), "k", 1, 32, [x]).findings
    assert (x == 31).all()


@pytest.mark.parametrize("form", ["add", "and", "max.ftz"])
def test_forms_that_the_isa_does_not_have_are_refused(form):
    with pytest.raises(simulator.SimulatorError, match="redux"):
        simulator.launch(float_reduction(form, "-1"), "k", 1, 32, [np.zeros(32, np.float32)])


WIDTHS = "and.b32 %r1, %r0, 24; mov.u32 %r2, {width}; shl.b32 %r2, %r2, %r1;\n"
#: What comes before, and the members: at fault, and mended.
MASKS = {
    "groups that overlap": ((WIDTHS.format(width="0x1ff"), "%r2"), (WIDTHS.format(width="0xff"), "%r2")),
    "lane that its reduction leaves out": (("", "0xfffffffe"), ("", "-1")),
    "masks that disagree": (
        ("mov.u32 %r2, -1; setp.lt.u32 %p1, %r0, 16; @%p1 mov.u32 %r2, 0xffff;\n", "%r2"),
        ("mov.u32 %r2, -1;\n", "%r2"),
    ),
}


@pytest.mark.parametrize("name", MASKS)
def test_masks_of_reductions_of_float32(name):
    def launched(before: str, members: str) -> tuple[str, simulator.Report]:
        text = float_reduction("min.NaN", members, before=before)
        return text, simulator.launch(text, "k", 1, 32, [np.arange(32, dtype=np.float32)], limit=10**6)

    text, report = launched(*MASKS[name][0])
    assert {(found.kind, found.line) for found in report.findings} == {("barrier-mismatch", line_of(text, "// BUG"))}
    assert not launched(*MASKS[name][1])[1].findings


def test_what_nothing_wrote_in_a_reduction_of_float32():
    """Of a group in which one lane's number was never written, every lane's result counts as unwritten."""
    body = "setp.ne.u32 %p1, %r0, 3; @%p1 mov.f32 %f1, 0f3F800000; redux.sync.max.f32 %f2, %f1, -1;\n"
    body += "st.global.f32 [%d1], RESULT; // BUG"
    text = blackwell(body.replace("RESULT", "%f2"))
    report = simulator.launch(text, "k", 1, 32, [np.zeros(32, np.float32)])
    assert {(found.kind, found.line) for found in report.findings} == {("uninitialised", line_of(text, "// BUG"))}
    mended = blackwell(body.replace("RESULT", "%f2").replace("@%p1 mov", "mov"))
    assert not simulator.launch(mended, "k", 1, 32, [np.zeros(32, np.float32)]).findings


@pytest.mark.parametrize("odd", ["redux.sync.min.f32 %f2, %f1, -1;", "redux.sync.max.NaN.f32 %f2, %f1, -1;"])
def test_reductions_of_other_qualifiers_do_not_meet(odd):
    branches = "and.b32 %r1, %r0, 1; setp.eq.u32 %p1, %r1, 1; mov.f32 %f1, 0f3F800000; @%p1 bra O;\n"
    branches += f"redux.sync.max.f32 %f2, %f1, -1; bra.uni J;\nO: {odd}\nJ: st.global.f32 [%d1], %f2;"
    report = simulator.launch(blackwell(branches), "k", 1, 32, [np.zeros(32, np.float32)], limit=10**6)
    assert {finding.kind for finding in report.findings} == {"divergent-aligned"}
    same = blackwell(branches.replace(odd, "redux.sync.max.f32 %f2, %f1, -1;"))
    assert not simulator.launch(same, "k", 1, 32, [np.zeros(32, np.float32)]).findings
