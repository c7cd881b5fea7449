# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""SFA, semantic foundation attention (sections 3.1 to 3.3): runs of adjacent tokens, alike or orthogonal, are merged
head by head and serve as one key. Lengths of units live on the device.
"""

import weft


@weft.program
def sfa(
    q: "fp16[B,8,N,128]:16", k: "fp16[B,8,N,128]:16", v: "fp16[B,8,N,128]:16",
    q_gain: "fp16[8,128]", k_gain: "fp16[8,128]", *, max_joins=20,
):  # fmt: skip
    joins = weft.merge_decide(k, k_gain)
    q = weft.rms_norm(q.to("fp32"), q_gain)
    k = weft.rms_norm(k.to("fp32"), k_gain)
    units = weft.merge_units(joins, k, v, max_joins=max_joins, to=v.dtype)
    keys, values = units.merged
    itself = weft.domain(k.to(v.dtype), weft.window(0, 0))
    before = weft.domain(keys, units.seen)
    return weft.softmax(q.to(v.dtype), itself, before) @ (v, values)
