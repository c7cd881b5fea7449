# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""SEMA, scalable and efficient Mamba-like attention (equation 1 and algorithm 2): softmax inside windows, the mean of
everything, and a short convolution of the values (LePE).
"""

import weft


@weft.program
def sema(
    q: "fp16[B,H,N,64]:16", k: "fp16[B,H,N,64]:16", v: "fp16[B,H,N,64]:16", lepe: "fp16[3,64*H]:16",
    *, window=64, grid=None,
):  # fmt: skip
    """lepe: taps [K, H·Dv] along a sequence, [K·K, H·Dv] over a grid."""
    q, k = weft.rope(q, k, window=window, grid=grid)
    local = weft.softmax(q, k, weft.block_window(window, grid=grid))
    return (local + weft.mean() + weft.toeplitz(lepe, centred=True, grid=grid)) @ v
