# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""weft.head_conv, weft.linear and weft.mean_heads: functions that mix heads, or the channels of a head."""

from __future__ import annotations

from typing import Any

from ..language.types import float32
from . import graph, places, static
from .eager import operation
from .graph import TensorType, agreeing
from .mixers import four_axes
from .sizes import Size, unify
from .tensors import Tensor


@operation
def head_conv(x: Any, weight: Any, bias: Any = None) -> Any:
    """A convolution along the channels of each token, with heads as its channels: x [B, H, N, D] to [B, Ho, N, D].

    ``weight`` is [Ho, H, K] with odd K and ``bias`` [Ho], those of torch.nn.Conv1d(H, Ho, K, padding=(K-1)/2), which is
    applied to [H, D] of every token.
    """
    four_axes(x, "the operand")
    _expect("weight", weight, "[Ho, H, K]", 3)
    with agreeing("expected heads, channels and weights of known sizes"):
        int(x.sizes[3])
        out, _, taps = (int(size) for size in weight.sizes)
    if taps % 2 == 0:
        raise places.error(f"expected a weight [Ho, H, K] with odd K, but got {list(weight.shape)}")
    with agreeing(f"expected a weight [Ho, H, K] of the operand's H, but got {list(weight.shape)}"):
        unify(x.sizes[1], weight.sizes[1])
    _multiplies(x, weight)
    operands = [x, weight, *_bias(bias, "[Ho]", out)]
    result = TensorType((x.sizes[0], Size(out), *x.sizes[2:]), x.dtype)
    return Tensor(graph.tracing().one("attn.head_conv", [t.value for t in operands], result))


@operation
def linear(x: Any, weight: Any, bias: Any = None, *, heads: int | None = None) -> Any:
    """x weightᵀ + bias along the last axis, as torch.nn.functional.linear: x [..., D], ``weight`` [E, D], ``bias`` [E].

    With ``heads`` = H, the H heads of each group of neighbours stand side by side as one row of H·D channels: x
    [B, G·H, N, D] and ``weight`` [E, H·D] give [B, G, N, E].
    """
    if not isinstance(x, Tensor) or x.ndim < 2:
        raise places.error("expected an operand [..., N, D]")
    _expect("weight", weight, "[E, D]", 2)
    with agreeing("expected channels and weights of known sizes"):
        channels = int(x.sizes[-1])
        out, row = (int(size) for size in weight.sizes)
    heads = None if heads is None else static.integer("heads", heads, 1)
    wanted = channels if heads is None else heads * channels
    if row != wanted:
        what = "D" if heads is None else f"{heads}*D"
        raise places.error(f"expected a weight [E, {what}], {what} = {wanted}, but got {list(weight.shape)}")
    sizes, attributes = x.sizes, dict[str, Any]()
    if heads is not None:
        four_axes(x, "the operand")
        with agreeing("expected a known number of heads"):
            given = int(x.sizes[1])
        if given % heads:
            raise places.error(f"expected groups of {heads} heads, but got {given} heads")
        sizes = (x.sizes[0], Size(given // heads), *x.sizes[2:])
        attributes["concatenated"] = "unit"
    _multiplies(x, weight)
    operands = [x, weight, *_bias(bias, "[E]", out)]
    result = TensorType((*sizes[:-1], Size(out)), x.dtype)
    return Tensor(graph.tracing().one("attn.linear", [t.value for t in operands], result, attributes))


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


def _expect(name: str, tensor: Any, shape: str, rank: int) -> None:
    if not isinstance(tensor, Tensor):
        raise places.error(f"expected a {name} {shape}, but got '{type(tensor).__name__}'")
    if tensor.ndim != rank:
        raise places.error(f"expected a {name} {shape}, but got {tensor.ndim} axes: {list(tensor.shape)}")


def _multiplies(x: Tensor, weight: Tensor) -> None:
    if not x.dtype.is_floating() or weight.dtype not in (x.dtype, float32):
        raise places.error(f"expected a weight of the operand's type {x.dtype}, or fp32, but got {weight.dtype}")


def _bias(bias: Any, shape: str, size: int) -> list[Tensor]:
    """The operands that a bias is: none or one."""
    if bias is None:
        return []
    _expect("bias", bias, shape, 1)
    static.floating("a bias", bias)
    with agreeing(f"expected a bias {shape} of the weight's first size"):
        unify(Size(size), bias.sizes[0])
    return [bias]
