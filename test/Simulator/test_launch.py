# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""weft.simulator.launch: arguments, errors, results that do not depend on threads or seeds."""

from __future__ import annotations

import pathlib
import subprocess
import sys

import numpy as np
import pytest
import weft.simulator as simulator
from snippets import HEADER, kernel, line_of

STORE_ID = kernel("st.global.u32 [%d1], %r0;")


def test_array_is_changed_in_place():
    x = np.zeros(64, np.uint32)
    report = simulator.launch(STORE_ID, "k", 1, 64, [x])
    assert (x == np.arange(64)).all()
    assert not report.findings
    assert report.counters["global_sectors_written"] == 8
    assert report.counters["by_class"]["global_store"] == 2


def test_path_and_part_of_an_array(tmp_path):
    path = tmp_path / "k.ptx"
    path.write_text(STORE_ID)
    base = np.full((2, 64), 7, np.uint32)
    simulator.launch(path, "k", (1, 1, 1), (64,), [base[1]])
    assert (base[0] == 7).all() and (base[1] == np.arange(64)).all()


def test_registers_of_128_bits():
    text = kernel(
        """
        .reg .b128 %q<3>; .shared .align 16 .b8 t[512];
        mul.wide.u32 %d2, %r0, 16; add.s64 %d2, %d0, %d2; mov.u32 %r1, t; shl.b32 %r2, %r0, 4; add.u32 %r1, %r1, %r2;
        ld.global.b128 %q0, [%d2]; mov.b128 {%d3, %d4}, %q0; mov.b128 %q1, {%d4, %d3}; st.shared.b128 [%r1], %q1;
        ld.shared.b128 %q2, [%r1]; mov.b128 %q0, %q2; st.global.b128 [%d2], %q0;"""
    )
    x = np.arange(128, dtype=np.uint32).reshape(32, 4)
    report = simulator.launch(text, "k", 1, 32, [x])
    assert (x == np.arange(128).reshape(32, 2, 2)[:, ::-1].reshape(32, 4)).all() and not report.findings
    misplaced = simulator.launch(text.replace("[%d2]; mov", "[%d2+8]; mov"), "k", 1, 16, [x])
    assert {finding.kind for finding in misplaced.findings} == {"misaligned"}


def test_arrays_that_overlap_share_memory():
    text = kernel(
        "ld.param.u64 %d2, [y];\nld.global.u32 %r1, [%d2];\nadd.u32 %r1, %r1, 1;\nst.global.u32 [%d0], %r1;",
        parameters=".param .u64 x, .param .u64 y",
    )
    base = np.arange(8, dtype=np.uint32)
    report = simulator.launch(text, "k", 1, 1, [base[0:6], base[5:8]])
    assert base[0] == 6 and not report.findings


def test_scalars_and_structs_by_value():
    text = kernel(
        """
        ld.param.s32 %r1, [a]; st.global.u32 [%d0], %r1;
        ld.param.f32 %f1, [b]; st.global.f32 [%d0+4], %f1;
        ld.param.s8 %r2, [c]; st.global.u32 [%d0+8], %r2;
        ld.param.v2.u32 {%r3, %r4}, [s+8]; st.global.v2.u32 [%d0+16], {%r3, %r4};""",
        parameters=".param .u64 x, .param .s32 a, .param .f32 b, .param .s8 c, .param .align 8 .b8 s[16]",
    )
    x = np.zeros(8, np.uint32)
    struct = np.zeros(1, dtype=[("p", "u8"), ("q", "u4", 2)])
    struct["q"] = [11, 12]
    report = simulator.launch(text, "k", 1, 1, [x, np.int32(-5), np.float32(1.5), np.int8(-2), struct[0]])
    assert x.view(np.int32)[0] == -5 and x.view(np.float32)[1] == 1.5 and x.view(np.int32)[2] == -2
    assert list(x[4:6]) == [11, 12]
    assert not report.findings


def test_structs_that_point_to_arrays():
    text = kernel(
        """
        ld.param.u64 %d1, [s+8]; ld.param.u32 %r1, [s+16]; ld.param.u32 %r2, [s];
        ld.global.u32 %r3, [%d1]; add.u32 %r3, %r3, %r1; add.u32 %r3, %r3, %r2; st.global.u32 [%d0], %r3;
        st.global.u32 [%d1+4], %r3;""",
        parameters=".param .u64 x, .param .align 8 .b8 s[24]",
    )
    x, y = np.zeros(4, np.uint32), np.arange(5, 9, dtype=np.uint32)
    for given, first in ((y, 5), (y[2:], 7)):
        report = simulator.launch(text, "k", 1, 1, [x, (np.int8(3), given, np.int32(100))])
        assert not report.findings and x[0] == given[1] == first + 103
    with pytest.raises(simulator.SimulatorError, match="expected a struct of 24 bytes for 's', but got members of 16"):
        simulator.launch(text, "k", 1, 1, [x, (y, np.int32(1))])
    with pytest.raises(simulator.SimulatorError, match="as member 1 of the struct 's', but got int"):
        simulator.launch(text, "k", 1, 1, [x, (y, 1)])


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "expected a '.version' directive"),
        (HEADER + "banana", "line 4, column 1: expected a directive"),
        (kernel("frob.u32 %r1, %r2;"), "'frob.u32' is not supported"),
        (kernel("add.q32 %r1, %r2, %r3;"), "but got '.q32'"),
        (kernel("add.u32 %r1, %r2;"), "expected at least 3 operands"),
        (kernel("add.u32 %d1, %r2, %r3;"), "expected a 32-bit register, but '%d1' is a .b64"),
        (kernel("add.u32 %r1, %r2, %nosuch;"), "'%nosuch' is none"),
        (kernel("add.u32 %r1, %r2, -%r3;"), "expected no '-' before '%r3'"),
        (kernel("vadd.u32.u32.u32 %r1, %r2.b4, %r3;"), "expected '.b0' to '.b3', '.h0' or '.h1', but got '.b4'"),
        (kernel("vadd4.u32.u32.u32 %r1, %r2.b321, %r3, %r4;"), "expected a selector of 4 elements"),
        (kernel("vmad.s32.s32.u32.po %r1, -%r2, %r3, %r4;"), "expected one of '.po'"),
        (kernel("alloca.u64 %d2, %d3, 24;"), "expected an alignment that is a power of two"),
        (kernel(".reg .b128 %q<2>; ld.global.v2.b128 {%q0, %q1}, [%d0];"), "expected a single .b128"),
        (kernel(".reg .b128 %q<2>; mov.b128 %q0, %d1;"), "expected a .b128 register or two 64-bit ones"),
        (kernel("bra nowhere;"), "expected a label, but got 'nowhere'"),
        (kernel("wgmma.fence.sync.aligned;"), "'wgmma.fence.sync.aligned' on 'sm_80' is not supported"),
    ],
)
def test_bad_ptx_is_refused_with_its_line(text, words):
    with pytest.raises(simulator.SimulatorError, match=r"line|version") as error:
        simulator.launch(text or "\n", "k", 1, 32, [np.zeros(1)])
    assert words in str(error.value)
    if text.startswith(HEADER + ".visible"):
        assert f"line {line_of(text, '  ret;') - 1}," in str(error.value)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"entry": "no"}, "no entry 'no'"),
        ({"args": []}, "expected 1 arguments"),
        ({"args": ["a"]}, "expected an array or a number for 'x'"),
        ({"args": [np.zeros(32, object)]}, "expected an array of numbers, but got one of Python's objects"),
        ({"block": 2000}, "expected a block of 1 to 1024 threads"),
        ({"block": 0}, "expected a block of 1 to 1024 threads"),
        ({"grid": (1, 70000)}, "expected a grid"),
        ({"shared": 1 << 20}, "bytes of shared memory"),
        ({"checks": "typo"}, "but got 'typo'"),
        ({"cluster": 2}, "expected a target with clusters, sm_90 or later, but got sm_80"),
    ],
)
def test_bad_launches_are_refused(arguments, words):
    given = {"entry": "k", "grid": 1, "block": 32, "args": [np.zeros(32, np.uint32)]} | arguments
    with pytest.raises(simulator.SimulatorError, match=r".") as error:
        simulator.launch(STORE_ID, **given)
    assert words in str(error.value)


def test_required_block_is_checked():
    text = STORE_ID.replace("(.param .u64 x)", "(.param .u64 x)\n.reqntid 64")
    with pytest.raises(simulator.SimulatorError, match="requires blocks of 64 x 1 x 1"):
        simulator.launch(text, "k", 1, 32, [np.zeros(32, np.uint32)])


def test_results_and_counters_do_not_depend_on_threads_or_seed():
    body = """
      mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ntid.x; mad.lo.u32 %r3, %r1, %r2, %r0;
      mul.wide.u32 %d2, %r3, 4; add.s64 %d2, %d0, %d2;
      and.b32 %r4, %r3, 7; mov.u32 %r5, 0;
    L: add.u32 %r5, %r5, %r4; setp.lt.u32 %p1, %r5, 40; setp.eq.u32 %p2, %r4, 0;
      @%p2 bra E; @%p1 bra L;
    E: st.global.u32 [%d2], %r5;"""
    results = []
    for threads, seed in ((1, 0), (4, 0), (2, 99)):
        x = np.zeros(37 * 96, np.uint32)
        report = simulator.launch(kernel(body), "k", 37, 96, [x], threads=threads, seed=seed)
        assert not report.findings
        results.append((x.tobytes(), report.counters))
    assert results[0] == results[1] == results[2]
    expected = [0 if lane % 8 == 0 else -(-40 // (lane % 8)) * (lane % 8) for lane in range(37 * 96)]
    assert (np.frombuffer(results[0][0], np.uint32) == expected).all()
    assert results[0][1]["divergent_branches"] > 0


@pytest.mark.parametrize("sample", [1, 8, 16, 511, 512, 1000])
def test_a_sample_of_blocks_is_spread_over_the_grid(sample):
    body = """
      mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ctaid.y; mad.lo.u32 %r3, %r2, 16, %r1;
      mul.wide.u32 %d2, %r3, 4; add.s64 %d2, %d0, %d2; add.u32 %r4, %r0, 1; st.global.u32 [%d2], %r4;"""
    x = np.zeros((32, 16), np.uint32)
    report = simulator.launch(kernel(body), "k", (16, 32), 1, [x], sample=sample)
    ran = min(sample, 512)
    assert not report.findings and x.sum() == ran
    whole = simulator.launch(kernel(body), "k", (16, 32), 1, [np.zeros_like(x)])
    assert report.counters["warp_instructions"] * 512 == whole.counters["warp_instructions"] * ran
    if ran >= 16:  # as many of each column as can be, so that no end of the grid counts for more
        assert x.sum(0).max() - x.sum(0).min() <= 1


def test_import_is_cheap():
    code = "import sys; sys.path.insert(0, sys.argv[1]); import weft.simulator; sys.exit('numpy' in sys.modules)"
    package = pathlib.Path(simulator.__file__).parents[2]
    assert subprocess.run([sys.executable, "-c", code, package], check=False).returncode == 0


def test_schedules_show_what_depends_on_order():
    last_block_wins = kernel(
        "mov.u32 %r1, %ctaid.x; ld.global.u32 %r2, [%d0]; mad.lo.u32 %r2, %r2, 3, %r0; st.global.u32 [%d0], %r2;"
    )
    for text, kinds in ((last_block_wins, {"global-race"}), (STORE_ID, set())):
        x = np.zeros(64, np.uint32)
        report = simulator.launch(text, "k", 1, 64, [x], schedules=8, seed=3, threads=1)
        assert {finding.kind for finding in report.findings} == kinds


def test_a_kernel_that_is_refused_leaves_the_others():
    refused = kernel("elect.sync %r1|%p1, 0xffffffff;", name="other").removeprefix(HEADER)
    x = np.zeros(64, np.uint32)
    assert not simulator.launch(STORE_ID + refused, "k", 1, 64, [x]).findings
    assert (x == np.arange(64)).all()
    line = line_of(STORE_ID + refused, "elect")
    with pytest.raises(simulator.SimulatorError, match=f"line {line}, .*'elect.sync'"):
        simulator.launch(STORE_ID + refused, "other", 1, 64, [x])
    with pytest.raises(simulator.SimulatorError, match=r"'elect.sync'"):
        simulator.launch(HEADER + refused, "other", 1, 64, [x])


def test_grid_workspace():
    """%envreg1 and 2: where a cooperative launch's barrier lies, at 4 bytes behind the workspace's size."""
    body = """
      mov.b32 %r1, %envreg1; mov.b32 %r2, %envreg2; mov.b64 %d2, {%r2, %r1};
      atom.add.acq_rel.gpu.u32 %r3, [%d2+4], 1;
    L: ld.acquire.gpu.u32 %r4, [%d2+4]; setp.lt.u32 %p1, %r4, 400; @%p1 bra L;
      ld.u32 %r5, [%d2]; setp.eq.u32 %p2, %r5, 0; @%p2 trap;"""
    # More blocks than run at once unless they wait for each other.
    report = simulator.launch(kernel(body), "k", 400, 1, [np.zeros(1, np.uint32)], threads=1)
    assert not report.findings


def test_blocks_beyond_what_a_gpu_holds_wait_for_ever():
    body = """
      atom.add.u32 %r3, [%d0], 1;
    L: ld.volatile.u32 %r4, [%d0]; setp.lt.u32 %p1, %r4, 150; @%p1 bra L;"""
    given = {"threads": 1, "checks": "none", "shared": 160 << 10}  # one block for each multiprocessor
    report = simulator.launch(kernel(body), "k", 150, 1, [np.zeros(1, np.uint32)], **given)
    assert {finding.kind for finding in report.findings} == {"deadlock"}


@pytest.mark.parametrize("schedules", [1, 3])
def test_heap_blocks_come_in_any_order(schedules):
    body = """
      { .param .b64 n; st.param.b64 [n], 16; .param .b64 m; call.uni (m), malloc, (n); ld.param.b64 %d5, [m]; }
      st.u32 [%d5], %r0; ld.u32 %r1, [%d5]; st.global.u32 [%d1], %r1;
      { .param .b64 m; st.param.b64 [m], %d5; call.uni free, (m); }"""
    heap = ".extern .func (.param .b64 m) malloc(.param .b64 n);\n.extern .func free(.param .b64 m);\n"
    x = np.zeros(64, np.uint32)
    text = kernel(body).replace(".visible", heap + ".visible")
    report = simulator.launch(text, "k", 1, 64, [x], seed=7, schedules=schedules)
    assert not report.findings and (x == np.arange(64)).all()


def test_spinning_with_stores_to_local_memory_ends():
    body = """
      .local .align 4 .b8 own[4]; mov.u64 %d2, own; cvta.local.u64 %d2, %d2;
    L: st.u32 [%d2], %r0; ld.volatile.global.u32 %r1, [%d0]; setp.eq.u32 %p1, %r1, 0; @%p1 bra L;"""
    report = simulator.launch(kernel(body), "k", 1, 32, [np.zeros(1, np.uint32)], limit=10**8)
    assert "spins for ever" in report.findings[0].message


def test_a_long_round_of_a_spin_loop_starves_nobody():
    """Lane 0 leaves the loop, and sets what the others wait for behind it; a round of theirs takes several turns."""
    body = """
      setp.eq.u32 %p1, %r0, 0;
    L: mov.u32 %r1, 0;
    D: add.u32 %r1, %r1, 1; setp.lt.u32 %p2, %r1, 400; @%p2 bra D;
      @%p1 bra E;
      ld.relaxed.gpu.global.u32 %r2, [%d0]; setp.eq.u32 %p3, %r2, 0; @%p3 bra L;
    E: @%p1 st.relaxed.gpu.global.u32 [%d0], 1;"""
    x = np.zeros(1, np.uint32)
    report = simulator.launch(kernel(body), "k", 1, 32, [x], limit=10**6)
    assert not report.findings and x[0] == 1, list(map(str, report.findings))
