# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""A ring's slot that a warp reads again after it has arrived at the slot's barrier is a race with the next write, also
where other lanes of the warp had read it before."""

from __future__ import annotations

import numpy as np
import pytest
import weft.simulator as simulator
from snippets import kernel

#: Warp 1 reads each word of the slot by two lanes; warp 0 fills the slot anew once warp 1 has arrived.
RING = """
  .shared .align 8 .b8 empty[8]; .shared .align 16 .b8 slot[128];
  mov.u32 %r1, empty; mov.u32 %r2, slot; mov.u32 %r3, %laneid; shl.b32 %r4, %r3, 2; add.u32 %r5, %r2, %r4;
  xor.b32 %r6, %r4, 124; add.u32 %r6, %r6, %r2;
  setp.eq.u32 %p1, %r0, 0; @%p1 mbarrier.init.shared.b64 [%r1], 32;
  setp.ge.u32 %p2, %r0, 32; @!%p2 st.shared.u32 [%r5], %r0; bar.sync 0;
  @%p2 bra C;
W: mbarrier.test_wait.parity.shared.b64 %p3, [%r1], 0; @!%p3 bra W;
  st.shared.u32 [%r5], 7; bra E;
C: ld.shared.u32 %r8, [%r6];
  BEFORE
  mbarrier.arrive.shared.b64 %d3, [%r1];
  AFTER
  add.u32 %r9, %r9, %r8; st.global.u32 [%d1], %r9;
E:"""
READ = "ld.shared.u32 %r9, [%r5];"


@pytest.mark.parametrize("seed", [0, 1, 3, 8])
@pytest.mark.parametrize("late", [True, False])
def test_a_read_behind_the_arrival_is_found(seed, late):
    body = RING.replace("BEFORE", "" if late else READ).replace("AFTER", READ if late else "")
    x = np.zeros(64, np.uint32)
    report = simulator.launch(kernel(body), "k", 1, 64, [x], seed=seed)
    kinds = {found.kind for found in report.findings}
    assert kinds == ({"shared-race"} if late else set()), list(map(str, report.findings))
    if not late:
        assert (x[32:] == 31).all()
