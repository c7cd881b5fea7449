# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Warpgroups that take turns by named barriers."""

from __future__ import annotations

import numpy as np
import pytest
import weft.simulator as simulator
from hopper_kernels import kernel

#: Two warpgroups write the same word in turn, four times each: each waits at its own barrier, and then gives the other
#: the turn. The first begins with one that it gave itself.
TURNS = """
  shr.u32 %r4, %r0, 7; add.u32 %r5, %r4, 1; sub.u32 %r6, 2, %r4; mov.u32 %r7, 0; setp.eq.u32 %p2, %r4, 0;
  @!%p2 bra L;
  bar.arrive 1, 256;
FIRST
L: bar.sync %r5, 256;
  and.b32 %r8, %r0, 127; setp.eq.u32 %p3, %r8, 0; @!%p3 bra N;
  ld.shared.u32 %r9, [%r1]; mad.lo.u32 %r9, %r9, 3, %r5; st.shared.u32 [%r1], %r9;
N: bar.arrive %r6, 256;
  add.u32 %r7, %r7, 1; setp.lt.u32 %p4, %r7, 4; @%p4 bra L;
  @!%p2 bra E; bar.sync 1, 256;
E: bar.sync 0; @%p0 ld.shared.u32 %r9, [%r1]; @%p0 st.global.u32 [%d0], %r9;
"""
BEGIN = "@%p0 st.shared.u32 [%r1], 0;\nbar.sync 0;\n"


@pytest.mark.parametrize("seed", [0, 1, 2, 5, 9])
def test_warpgroups_take_turns(seed):
    x = np.zeros(4, np.uint32)
    text = kernel(BEGIN + TURNS.replace("FIRST", ""))
    report = simulator.launch(text, "k", 1, 256, [x], seed=seed, limit=10**5)
    assert not report.findings, [str(finding) for finding in report.findings]
    expected = 0
    for group in (1, 2) * 4:
        expected = 3 * expected + group
    assert x[0] == expected % 2**32


def test_a_turn_that_is_given_twice_is_found():
    text = kernel(BEGIN + TURNS.replace("FIRST", "  bar.arrive 1, 256;"))
    report = simulator.launch(text, "k", 1, 256, [np.zeros(4, np.uint32)], limit=10**5)
    assert "barrier-mismatch" in {finding.kind for finding in report.findings}
