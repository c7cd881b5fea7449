# Part of Weft. SPDX-License-Identifier: Apache-2.0
# ruff: noqa: E501 -- instructions of one step stand on one line
"""Small PTX kernels of clusters of two blocks."""

from __future__ import annotations

import hopper_kernels as hopper

#: The rank of a block, its peer's, and the peer's shared memory and mbarriers; the bytes of x of its block's threads.
PEER = """
  mov.u32 %r10, %cluster_ctarank; xor.b32 %r11, %r10, 1;
  mapa.shared::cluster.u32 %r12, s, %r11; mapa.shared::cluster.u32 %r13, full, %r11; mapa.shared::cluster.u32 %r14, other, %r11;
  mov.u32 %r15, %ctaid.x; mov.u32 %r16, %ntid.x; mad.lo.u32 %r17, %r15, %r16, %r0; mul.wide.u32 %d8, %r17, 4; add.s64 %d9, %d0, %d8;
  shl.b32 %r18, %r0, 2; add.u32 %r19, %r1, %r18; add.u32 %r20, %r12, %r18; setp.eq.u32 %p5, %r10, 0;
"""
ARRIVE, AWAIT = "barrier.cluster.arrive.release.aligned;\n", "barrier.cluster.wait.acquire.aligned;\n"
SYNC = ARRIVE + AWAIT
#: Both mbarriers of each block, one arrival each, known to the cluster.
INIT = (
    """@%p0 mbarrier.init.shared::cta.b64 [%r2], 1;
@%p0 mbarrier.init.shared::cta.b64 [%r3], 1;
@%p0 fence.mbarrier_init.release.cluster;
"""
    + SYNC
)


def kernel(body: str, **options) -> str:
    options.setdefault("attributes", ".reqnctapercluster 2, 1, 1")
    return hopper.kernel(PEER + body, **options)
