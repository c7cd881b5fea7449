# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Launches in which every warp spins end with a deadlock: at any seed, with loops that read clocks, back off or store
what is there already. Those that wait for time, for a warp that takes long, or for one another in turn, go on."""

from __future__ import annotations

import hopper_kernels as hopper
import numpy as np
import pytest
import weft.simulator as simulator
from hopper_kernels import INIT, bulk_load, expect, wait
from snippets import kernel
from test_findings_hopper import ADDS, COMMIT, FENCED, LOAD, WAIT, ZERO, multiply

#: Of a loop around `L`: what a wait for memory that nobody writes is like.
LOOPS = {
    "plain": "L: ld.volatile.global.u32 %r1, [%d0]; setp.eq.u32 %p1, %r1, 0; @%p1 bra L;",
    "atomic": "L: atom.global.or.b32 %r1, [%d0], 0; setp.eq.u32 %p1, %r1, 0; @%p1 bra L;",
    "lock": """
      mov.u32 %r2, %laneid; setp.ne.u32 %p2, %r2, 0; @%p2 bra E;
    L: atom.global.cas.b32 %r1, [%d0+4], 0, 1; setp.ne.u32 %p1, %r1, 0; @%p1 bra L;
    E:""",
    "stores what is there": """
    L: st.volatile.global.u32 [%d0+8], 7; ld.volatile.global.u32 %r1, [%d0]; setp.eq.u32 %p1, %r1, 0; @%p1 bra L;""",
    "long rounds": """
    L: mov.u32 %r2, 0;
    D: add.u32 %r2, %r2, 1; setp.lt.u32 %p2, %r2, 90; @%p2 bra D;
      ld.volatile.global.u32 %r1, [%d0]; setp.eq.u32 %p1, %r1, 0; @%p1 bra L;""",
    "backs off": """
      mov.u64 %d2, %globaltimer; mov.u32 %r2, 0;
    L: ld.volatile.global.u32 %r1, [%d0]; setp.ne.u32 %p1, %r1, 0; @%p1 bra E;
      setp.ge.u32 %p2, %r2, 16; @%p2 bra B;
      add.u32 %r2, %r2, 1; bra L;
    B: mov.u64 %d3, %globaltimer; sub.s64 %d3, %d3, %d2; shr.u64 %d3, %d3, 2;
      cvt.u32.u64 %r3, %d3; min.u32 %r3, %r3, 1000; nanosleep.u32 %r3; bra L;
    E:""",
    "in steps of time": """
      mov.u32 %r2, %clock;
    L: ld.volatile.global.u32 %r1, [%d0]; setp.ne.u32 %p1, %r1, 0; @%p1 bra E;
      mov.u32 %r3, %clock; sub.u32 %r4, %r3, %r2; setp.lt.u32 %p2, %r4, 70000; @%p2 bra L;
      mov.u32 %r2, %clock; bra L;
    E:""",
    "mbarrier": """
      .shared .align 8 .b8 own[8]; mov.u32 %r1, own; setp.eq.u32 %p1, %r0, 0;
      @%p1 mbarrier.init.shared.b64 [%r1], 300; bar.sync 0;
      mbarrier.arrive.shared.b64 %d3, [%r1]; mov.u64 %d2, %globaltimer;
    L: mov.u64 %d4, %globaltimer; sub.s64 %d4, %d4, %d2;
      mbarrier.test_wait.shared.b64 %p2, [%r1], %d3; @!%p2 bra L;""",
}


@pytest.mark.parametrize("seed", [0, 3, 11])
@pytest.mark.parametrize("name", LOOPS)
def test_who_spins_for_ever_is_found(name, seed):
    text = kernel(LOOPS[name])
    for grid, block in ((1, 32), (3, 256)):
        x = np.array([0, 1, 7], np.uint32)
        report = simulator.launch(text, "k", grid, block, [x], seed=seed, limit=10**8)
        assert "deadlock" in {found.kind for found in report.findings}, (grid, block)
        messages = [found.message for found in report.findings]
        assert any("spins for ever" in message for message in messages), messages
        assert not any("the end of the kernel" in message for message in messages), messages


@pytest.mark.parametrize("seed", [0, 3])
@pytest.mark.parametrize(
    ("clock", "wide", "least"),
    [
        ("%clock", 32, 2_000_000_000),
        ("%clock64", 64, 5_000_000_000),
        ("%globaltimer", 64, 10**13),
        ("%clock64", 64, 10),
    ],
)
def test_waits_for_time_end(clock, wide, least, seed):
    """Five one after the other, in each of which no time but that of the wait itself passes."""
    t = "r" if wide == 32 else "d"
    body = f"""
      mov.u32 %r9, 0;
    N: mov.u{wide} %{t}2, {clock};
    L: mov.u{wide} %{t}3, {clock}; sub.u{wide} %{t}4, %{t}3, %{t}2; setp.lt.u{wide} %p1, %{t}4, {least}; @%p1 bra L;
      add.u32 %r9, %r9, 1; setp.lt.u32 %p2, %r9, 5; @%p2 bra N;
      st.global.u32 [%d1], %r9;"""
    x = np.zeros(64, np.uint32)
    report = simulator.launch(kernel(body), "k", 1, 64, [x], seed=seed, limit=10**8)
    assert not report.findings and (x == 5).all(), list(map(str, report.findings))


@pytest.mark.parametrize("seed", [0, 3])
def test_time_is_not_moved_on_while_a_warp_walks_over_memory(seed):
    """Warp 1 reads by volatile loads for long, then sets what warp 0 waits for with a limit that is never reached."""
    body = """
      setp.ge.u32 %p1, %r0, 32; mov.u32 %r9, 0; @%p1 bra W;
      mov.u64 %d2, %globaltimer;
    L: mov.u64 %d3, %globaltimer; sub.u64 %d4, %d3, %d2; setp.gt.u64 %p2, %d4, 1000000000000; @%p2 trap;
      ld.relaxed.gpu.global.u32 %r1, [%d0]; setp.eq.u32 %p3, %r1, 0; @%p3 bra L;
      bra E;
    W: ld.volatile.global.u32 %r2, [%d0]; add.u32 %r9, %r9, 1; setp.lt.u32 %p2, %r9, 100000; @%p2 bra W;
      setp.eq.u32 %p4, %r0, 32; @%p4 st.relaxed.gpu.global.u32 [%d0], 1;
    E:"""
    x = np.zeros(1, np.uint32)
    report = simulator.launch(kernel(body), "k", 1, 64, [x], seed=seed, limit=10**8)
    assert not report.findings and x[0] == 1, list(map(str, report.findings))


def in_turn(rounds: int) -> str:
    """Two warps go on in turns: each arrives where the other waits."""
    steps = ["@%p0 mbarrier.init.shared.b64 [%r2], 1;\n@%p0 mbarrier.init.shared.b64 [%r3], 1;\nbar.sync 0;"]
    steps.append("and.b32 %r4, %r0, 31; setp.eq.u32 %p2, %r4, 0; setp.lt.u32 %p4, %r0, 32; @!%p4 bra Q;")
    for i in range(rounds):
        steps.append("@%p2 mbarrier.arrive.shared.b64 _, [%r2];\n" + wait(i % 2, "%r3", f"A{i}"))
    steps.append("bra.uni E;\nQ:")
    for i in range(rounds):
        steps.append(wait(i % 2, "%r2", f"B{i}") + "@%p2 mbarrier.arrive.shared.b64 _, [%r3];")
    return "\n".join([*steps, "E:"])


#: What warps do that wait for each other again and again, and the threads of a block: memory stays as it is.
WAITS = {
    "wgmma": (LOAD + ZERO + ADDS + (FENCED + multiply() + "\n" + COMMIT + WAIT) * 40, 256),
    "mbarriers": (in_turn(40), 64),
    "bulk copies": (
        INIT
        + "".join(expect(8192) + bulk_load(8192) + wait(i % 2, label=f"W{i}") + "bar.sync 0;\n" for i in range(40)),
        128,
    ),
    "barriers": ("bar.sync 1, 128; barrier.sync 2;\n" * 40, 128),
    "registers": (
        "setmaxnreg.dec.sync.aligned.u32 24; setmaxnreg.inc.sync.aligned.u32 200;\n" * 20
        + "setmaxnreg.dec.sync.aligned.u32 24;",
        256,
    ),
}


@pytest.mark.parametrize("name", WAITS)
def test_who_waits_for_others_that_go_on_is_not_stuck(name):
    """In many orders: a warp that waited, went on and waits again is none that spins for ever."""
    body, block = WAITS[name]
    text = hopper.kernel(body, shared=8192, attributes=".reqntid 256, 1, 1 .maxnreg 128" if name == "registers" else "")
    for seed in range(300):
        report = simulator.launch(text, "k", 1, block, [np.zeros(2048, np.uint32)], seed=seed)
        assert not report.findings, (seed, report.findings[0])
