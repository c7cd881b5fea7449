# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""weft.head_conv, weft.linear and weft.mean_heads: functions that mix heads, or the channels of a head."""

from __future__ import annotations

from typing import Any

from ..compiler import places
from . import graph, static, weights
from .eager import operation
from .graph import TensorType, agreeing
from .sizes import Size, unify
from .tensors import Tensor, four_axes
from .weights import bias_operands, expect, multiplies


@operation
def head_conv(x: Any, weight: Any, bias: Any = None) -> Any:
    """A convolution along the channels of each token, with heads as its channels: x [B, H, N, D] to [B, Ho, N, D].

    ``weight`` is [Ho, H, K] with odd K and ``bias`` [Ho], those of torch.nn.Conv1d(H, Ho, K, padding=(K-1)/2), which is
    applied to [H, D] of every token.
    """
    four_axes(x, "the operand")
    expect("weight", weight, "[Ho, H, K]", 3)
    with agreeing("expected heads, channels and weights of known sizes"):
        int(x.sizes[3])
        out, _, taps = (int(size) for size in weight.sizes)
    if taps % 2 == 0:
        raise places.error(f"expected a weight [Ho, H, K] with odd K, but got {list(weight.shape)}")
    with agreeing(f"expected a weight [Ho, H, K] of the operand's H, but got {list(weight.shape)}"):
        unify(x.sizes[1], weight.sizes[1])
    multiplies(x, weight)
    operands = [x, weight, *bias_operands(bias, "[Ho]", out)]
    result = TensorType((x.sizes[0], Size(out), *x.sizes[2:]), x.dtype)
    return Tensor(graph.tracing().one("attn.head_conv", [t.value for t in operands], result))


@operation
def linear(x: Any, weight: Any, bias: Any = None, *, heads: int | None = None) -> Any:
    """x weightᵀ + bias along the last axis, as torch.nn.functional.linear: x [..., D], ``weight`` [E, D], ``bias`` [E].

    With ``heads`` = H, the H heads of each group of neighbours stand side by side as one row of H·D channels: x
    [B, G·H, N, D] and ``weight`` [E, H·D] give [B, G, N, E].
    """
    return weights.linear(x, weight, bias, heads)


@operation
def mean_heads(x: Any, heads: int | None = None) -> Any:
    """The mean over groups of ``heads`` neighbouring heads: head h of the result is that of heads h, H + h, 2·H + h,
    ... of x [B, G·H, N, D]. Without ``heads`` the mean over all, [B, N, D].
    """
    four_axes(x, "the operand")
    with agreeing("expected a known number of heads"):
        given = int(x.sizes[1])
    static.floating("the operand", x)
    heads = None if heads is None else static.integer("heads", heads, 1)
    if heads is not None and given % heads:
        raise places.error(f"expected groups of {heads} heads, but got {given} heads")
    kept = () if heads is None else (Size(heads),)
    result = TensorType((x.sizes[0], *kept, *x.sizes[2:]), x.dtype)
    return Tensor(graph.tracing().one("attn.mean_heads", [x.value], result))
