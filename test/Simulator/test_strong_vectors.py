# Part of Weft. SPDX-License-Identifier: Apache-2.0
# ruff: noqa: E501 -- instructions of one step stand on one line
"""Relaxed and volatile accesses to 16 bytes, of which the halves belong together: a value and its flag."""

from __future__ import annotations

import numpy as np
import pytest
import weft.simulator as simulator
from hopper_kernels import kernel as hopper

ROUNDS = 6000
#: A load, and instructions that leave its first and last element in %r4 and %r5; what stores both.
CASES = {
    "v2.u64": (
        "ld.relaxed.gpu.global.v2.u64 {%d4, %d5}, [%d6]; cvt.u32.u64 %r4, %d4; cvt.u32.u64 %r5, %d5;",
        "cvt.u64.u32 %d8, %r8; st.relaxed.gpu.global.v2.u64 [%d6], {%d8, %d8};",
    ),
    "v4.u32": (
        "ld.volatile.global.v4.u32 {%r4, %r6, %r7, %r5}, [%d6];",
        "st.volatile.global.v4.u32 [%d6], {%r8, %r8, %r8, %r8};",
    ),
    "b128": (
        "ld.acquire.gpu.global.b128 %q1, [%d6]; mov.b128 {%d4, %d5}, %q1; cvt.u32.u64 %r4, %d4; cvt.u32.u64 %r5, %d5;",
        "cvt.u64.u32 %d8, %r8; mov.b128 %q1, {%d8, %d8}; st.release.gpu.global.b128 [%d6], %q1;",
    ),
}


@pytest.mark.parametrize("checks", ["all", "none"])
@pytest.mark.parametrize("name", CASES)
def test_both_halves_are_read_at_once(name, checks):
    """Block 0 counts in each lane's 16 bytes; block 1, which runs at the same time, counts where it sees two numbers."""
    load, store = CASES[name]
    text = hopper(f"""
      .reg .b128 %q<2>;
      mad.wide.u32 %d6, %r0, 16, %d0; mov.u32 %r8, 0; mov.u32 %r9, 0; mov.u32 %r10, %ctaid.x; setp.eq.u32 %p1, %r10, 0;
      @!%p1 bra R;
    W: add.u32 %r8, %r8, 1; {store} setp.lt.u32 %p2, %r8, {ROUNDS}; @%p2 bra W;
      ret;
    R: {load} setp.ne.u32 %p3, %r4, %r5; @%p3 add.u32 %r9, %r9, 1; setp.lt.u32 %p2, %r4, {ROUNDS}; @%p2 bra R;
      mad.wide.u32 %d7, %r0, 4, %d0; st.global.u32 [%d7+512], %r9;""")
    x = np.zeros(160, np.uint32)
    report = simulator.launch(text, "k", 2, 32, [x], checks=checks)
    assert not report.findings, [str(each) for each in report.findings]
    assert (x[128:] == 0).all(), x[128:]
    assert (x[:128:4] == ROUNDS).all()


RELEASES = {
    "vector": "st.release.gpu.global.v4.u32 [%d0], {%r8, %r8, %r8, %r8};",
    "fence": "fence.acq_rel.gpu; st.relaxed.gpu.global.v2.u64 [%d0], {%d8, %d8};",
    "word": "st.release.gpu.global.u32 [%d0+8], %r8;",
}
ACQUIRES = {
    "vector": "ld.acquire.gpu.global.v4.u32 {%r5, %r6, %r4, %r7}, [%d0];",
    "pair": "ld.acquire.gpu.global.v2.u64 {%d4, %d5}, [%d0]; cvt.u32.u64 %r4, %d5;",
    "word": "ld.acquire.gpu.global.u32 %r4, [%d0+8];",
    "other word": "ld.acquire.gpu.global.u32 %r4, [%d0+8]; ld.relaxed.gpu.global.u32 %r4, [%d0+8];",
}


@pytest.mark.parametrize("acquire", ACQUIRES)
@pytest.mark.parametrize("release", RELEASES)
def test_an_element_orders_as_a_word_does(release, acquire):
    """What is released with the third element is acquired with it, in a vector or alone; not by another element."""
    text = hopper(f"""
      mov.u32 %r8, 1; mov.u64 %d8, 1; mov.u32 %r10, %ctaid.x; setp.eq.u32 %p1, %r10, 0;
      @!%p1 bra R;
      st.global.u32 [%d0+64], 7; {RELEASES[release]}
      ret;
    R: {ACQUIRES[acquire]} setp.ne.u32 %p2, %r4, 1; @%p2 bra R;
      ld.global.u32 %r9, [%d0+64]; st.global.u32 [%d0+128], %r9;""")
    x = np.zeros(33, np.uint32)
    report = simulator.launch(text, "k", 2, 1, [x])
    assert not report.findings and x[32] == 7, [str(each) for each in report.findings]
    astray = text.replace("ld.acquire.gpu.global.u32 %r4, [%d0+8]", "ld.acquire.gpu.global.u32 %r4, [%d0+16]")
    if acquire == "other word":
        report = simulator.launch(astray, "k", 2, 1, [np.zeros(33, np.uint32)])
        assert [each.kind for each in report.findings] == ["global-race"]
