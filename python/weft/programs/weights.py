# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Tensors times weights: what is asked of a weight and its bias, and attn.linear."""

from __future__ import annotations

from typing import Any

from ..compiler import places
from ..language.types import float32
from . import graph, static
from .graph import TensorType, agreeing
from .sizes import Size, unify
from .tensors import Tensor, described, four_axes


def linear(x: Any, weight: Any, bias: Any, heads: int | None) -> Tensor:
    """See weft.linear."""
    if not isinstance(x, Tensor) or x.ndim < 2:
        raise places.error(f"expected an operand [..., N, D], but got {described(x)}")
    expect("weight", weight, "[E, D]", 2)
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
    multiplies(x, weight)
    operands = [x, weight, *bias_operands(bias, "[E]", out)]
    result = TensorType((*sizes[:-1], Size(out)), x.dtype)
    return Tensor(graph.tracing().one("attn.linear", [t.value for t in operands], result, attributes))


def expect(name: str, tensor: Any, shape: str, rank: int) -> None:
    """Refuse what is no tensor of ``rank`` axes; the message says the ``shape`` that was expected."""
    if not isinstance(tensor, Tensor):
        raise places.error(f"expected a {name} {shape}, but got '{type(tensor).__name__}'")
    if tensor.ndim != rank:
        raise places.error(f"expected a {name} {shape}, but got {tensor.ndim} axes: {list(tensor.shape)}")


def multiplies(x: Tensor, weight: Tensor) -> None:
    """Refuse a weight whose elements are neither of the operand's type nor float32."""
    if not x.dtype.is_floating() or x.dtype.is_fp8() or weight.dtype not in (x.dtype, float32):
        raise places.error(f"expected a weight of the operand's type {x.dtype}, or fp32, but got {weight.dtype}")


def bias_operands(bias: Any, shape: str, size: int) -> list[Tensor]:
    """The operands that a bias is: none or one."""
    if bias is None:
        return []
    expect("bias", bias, shape, 1)
    static.floating("a bias", bias)
    with agreeing(f"expected a bias {shape} of the weight's first size"):
        unify(Size(size), bias.sizes[0])
    return [bias]
