# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""SAS, simulated attention score (equations 5 to 12): few narrow heads are expanded, by convolutions over the heads and
linear maps over their channels, into many wide ones; PEAA projects the mean of their groups.
"""

import weft

H, MANY, D, WIDE, KERNEL = 4, 12, 64, 96, 3  # heads and expanded heads, channels and expanded channels

HEADS = f"fp16[B,{H},N,{D}]:16"
VALUES = {
    "conv1.weight": f"fp16[{MANY},{H},{KERNEL}]",
    "conv1.bias": f"fp16[{MANY}]",
    "conv2.weight": f"fp16[{MANY},{MANY},{KERNEL}]",
    "conv2.bias": f"fp16[{MANY}]",
}
SCORES = VALUES | {
    "linear1.weight": f"fp16[{WIDE},{D}]",
    "linear1.bias": f"fp16[{WIDE}]",
    "linear2.weight": f"fp16[{WIDE},{WIDE}]",
    "linear2.bias": f"fp16[{WIDE}]",
}


def expand(x, w):
    x1 = weft.head_conv(x, w["conv1.weight"], w["conv1.bias"])
    x2 = weft.head_conv(weft.relu(x1), w["conv2.weight"], w["conv2.bias"]) + x1
    if "linear1.weight" not in w:
        return x2
    x3 = weft.linear(x2, w["linear1.weight"], w["linear1.bias"])
    return weft.linear(weft.relu(x3), w["linear2.weight"], w["linear2.bias"]) + x3


@weft.program
def sas(
    q: HEADS, k: HEADS, v: HEADS, q_expand: SCORES, k_expand: SCORES, v_expand: VALUES,
    weight: f"fp16[256,{H * D}]", bias: "fp16[256]",
):  # fmt: skip
    q, k, v = expand(q, q_expand), expand(k, k_expand), expand(v, v_expand)
    y = weft.softmax(q, k, weft.causal()) @ v
    return weft.mean_heads(weft.linear(y, weight, bias, heads=H))  # the compiler takes the mean first
