# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""SAS and PEAA by their formulas, in the precision of their operands; float64 is the reference.

Weights are dicts as weft.attention.sas takes them. Each operation rounds to the storage type, softmax apart.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import torch

from weft.testing import masks
from weft.testing.attention import Domain, attention

Weights = Mapping[str, torch.Tensor]


def head_conv(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None = None) -> torch.Tensor:
    """y[b, o, n, d] = bias[o] + Σ weight[o, h, j] x[b, h, n, d + j - (K-1)/2] of x [B, H, N, D], zero outside of D."""
    taps = weight.shape[2]
    ends = torch.nn.functional.pad(x, (taps // 2, taps // 2))
    moved = ends.unfold(-1, taps, 1)  # [B, H, N, D, K]
    y = torch.einsum("bhndj,ohj->bond", moved, weight)
    return y if bias is None else y + bias[:, None, None]


def linear(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None = None) -> torch.Tensor:
    """x weightᵀ + bias along the last axis."""
    y = x @ weight.mT
    return y if bias is None else y + bias


def expand(x: torch.Tensor, w: Weights) -> torch.Tensor:
    """The expansion of one operand, [B, H, N, D] to [B, Ĥ, N, D̂]; D̂ is D without linear1 and linear2."""
    x1 = head_conv(x, w["conv1.weight"], w["conv1.bias"])
    x2 = head_conv(torch.relu(x1), w["conv2.weight"], w["conv2.bias"]) + x1
    if "linear1.weight" not in w:
        return x2
    x3 = linear(x2, w["linear1.weight"], w["linear1.bias"])
    return linear(torch.relu(x3), w["linear2.weight"], w["linear2.bias"]) + x3


def sas(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    q_expand: Weights,
    k_expand: Weights,
    v_expand: Weights,
    *,
    causal: bool = True,
    scale: float | None = None,
    form: str = "scaled scores",
) -> torch.Tensor:
    """Attention over the expanded heads, [B, Ĥ, N, D]."""
    q, k, v = expand(q, q_expand), expand(k, k_expand), expand(v, v_expand)
    allowed = masks.causal(q.shape[2], k.shape[2]) if causal else None
    return attention(q, [Domain(k, v, allowed)], scale=scale, form=form)[0]


def peaa(y: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None, heads: int) -> torch.Tensor:
    """Mean over groups of ``heads`` heads of (their channels side by side) weightᵀ + bias: [B, N, out]."""
    groups = [group.transpose(1, 2).flatten(2) for group in y.split(heads, 1)]
    return torch.stack([linear(group, weight, bias) for group in groups]).mean(0)


def expansion_shapes(heads: int, many: int, channels: int, wide: int | None, kernel: int) -> dict[str, tuple[int, ...]]:
    """The shapes of one operand's weights; ``wide`` is D̂, None to leave the linear maps out."""
    shapes: dict[str, tuple[int, ...]] = {
        "conv1.weight": (many, heads, kernel),
        "conv1.bias": (many,),
        "conv2.weight": (many, many, kernel),
        "conv2.bias": (many,),
    }
    if wide is not None:
        shapes |= {
            "linear1.weight": (wide, channels),
            "linear1.bias": (wide,),
            "linear2.weight": (wide, wide),
            "linear2.bias": (wide,),
        }
    return shapes


def unseen(names: Iterable[str], *, steady: bool = True) -> list[str]:
    """Which of ``names``, as "k linear1.bias" or "k_expand_linear1.bias", no result depends on: a constant added to
    every key moves all scores of a row alike, which the softmax does not see. What is left of its gradient is chance.
    Where no ReLU's input changes its sign (``steady`` weights), the convolutions' biases are such constants too.
    """
    ends = ("linear2.bias", "linear1.bias", "conv1.bias", "conv2.bias") if steady else ("linear2.bias", "linear1.bias")
    return [name for name in names if name[0] == "k" and name.endswith(ends)]


#: draws a tensor of a shape
Draw = Callable[..., torch.Tensor]


def drawn_weights(
    randn: Draw, shapes: Mapping[str, tuple[int, ...]], *, steady: bool = True
) -> dict[str, torch.Tensor]:
    """Weights that keep the size of what they multiply, as layers are initialised.

    ``steady`` ones have biases that keep what goes into a ReLU away from 0, every second head and channel below: at 0
    its derivative jumps, and a gradient in a storage type is then any of two, whoever computes it.
    """
    fans = {name: math.prod(shapes[name.replace("bias", "weight")][1:]) for name in shapes}
    made = {name: randn(*shape) / math.sqrt(fans[name]) for name, shape in shapes.items()}
    if steady:
        made["conv1.weight"] = made["conv1.weight"] / 8
        for name, size in (("conv1.bias", 1.0), ("linear1.bias", 8.0)):
            if name in made:
                signs = torch.tensor([1.0, -1.0]).repeat(len(made[name]))[: len(made[name])]
                made[name] = (size * signs).to(made[name])
    return made


def with_dicts(function: Callable[..., Any], names: Sequence[str]) -> Callable[..., Any]:
    """``function`` of q, k, v, their weights and more as one of tensors in the order of ``names``: "q", "k", "v",
    weights such as "q conv1.weight", others."""

    def call(*tensors: torch.Tensor, **options: Any) -> Any:
        given = dict(zip(names, tensors, strict=True))
        weights: dict[str, dict[str, torch.Tensor]] = {"q": {}, "k": {}, "v": {}}
        for name in [name for name in names if " " in name]:
            operand, key = name.split()
            weights[operand][key] = given.pop(name)
        rest = [x for name, x in given.items() if name not in weights]
        return function(*(given[name] for name in weights), *weights.values(), *rest, **options)

    return call
