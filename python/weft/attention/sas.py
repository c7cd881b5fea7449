# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""weft.attention.sas and peaa: attention over more, wider heads that small convolutions and linear maps make of those
given, and the output projection that goes with it."""

from __future__ import annotations

import statistics
from collections.abc import Mapping
from typing import Any

from weft import patterns
from weft.attention import checks
from weft.programs import elementwise, mixers, static
from weft.programs.eager import whole
from weft.programs.facts import is_array
from weft.programs.heads import head_conv, linear, mean_heads
from weft.programs.program import program
from weft.programs.tensors import Tensor

CONVOLUTIONS = ("conv1.weight", "conv1.bias", "conv2.weight", "conv2.bias")
PERCEPTRON = ("linear1.weight", "linear1.bias", "linear2.weight", "linear2.bias")


@whole
def sas(
    q: Any,
    k: Any,
    v: Any,
    q_expand: Mapping[str, Any],
    k_expand: Mapping[str, Any],
    v_expand: Mapping[str, Any],
    *,
    kernel: int,
    causal: bool = True,
    scale: float | None = None,
    cu_seqlens: Any = None,
) -> Any:
    """Simulated attention score: softmax attention over Ĥ heads of D̂ channels that are made of the heads of q, k and v;
    gives [B, Ĥ, N, D].

    ``*_expand``  the weights of one operand's expansion, torch.nn.Conv1d's and torch.nn.Linear's: conv1.weight
                  [Ĥ, H, kernel], conv1.bias [Ĥ], conv2.weight [Ĥ, Ĥ, kernel], conv2.bias [Ĥ]; for q and k, unless D̂ is
                  to be D, linear1.weight [D̂, D], linear1.bias [D̂], linear2.weight [D̂, D̂], linear2.bias [D̂] too
    ``kernel``    taps of the convolutions along the channels of a head, odd; 1 mixes heads alone
    ``scale``     of the scores, 1/sqrt(D̂) unless given
    ``cu_seqlens``  [S+1] int32, where each of S sequences packed into N starts; then B is 1

    k and v may have fewer heads than q, and may expand to fewer: each then serves a group of query heads.
    """
    kernel, causal = static.integer("kernel", kernel), static.truth("causal", causal)
    if kernel < 1 or kernel % 2 == 0:
        raise ValueError(f"expected an odd kernel of at least 1, but got {kernel}")
    expansions = [
        _weights(name, weights, x, kernel, perceptron=name != "v_expand")
        for name, weights, x in (("q_expand", q_expand, q), ("k_expand", k_expand, k), ("v_expand", v_expand, v))
    ]
    widths = [w["linear2.weight"].shape[0] if "linear2.weight" in w else q.shape[3] for w in expansions[:2]]
    if int(widths[0]) != int(widths[1]):
        raise ValueError(f"expected q_expand and k_expand to one head size, but got {widths[0]} and {widths[1]}")
    checks.starts(cu_seqlens, q)
    return _sas(q, k, v, *expansions, cu_seqlens, causal=causal, scale=scale)


@program
def _sas(
    q: Any,
    k: Any,
    v: Any,
    q_expand: Any,
    k_expand: Any,
    v_expand: Any,
    cu_seqlens: Any = None,
    *,
    causal: bool,
    scale: Any,
) -> Any:
    q, k, v = expand(q, q_expand), expand(k, k_expand), expand(v, v_expand)
    return mixers.softmax(q, k, patterns.causal() if causal else None, scale=scale, cu_seqlens=cu_seqlens) @ v


@program
def expand(x: Any, w: Mapping[str, Any]) -> Any:
    """The expansion of one operand: a residual network of two convolutions over its heads, then one of two linear maps
    over its channels, where ``w`` has them."""
    x1 = head_conv(x, w["conv1.weight"], w["conv1.bias"])
    x2 = head_conv(elementwise.relu(x1), w["conv2.weight"], w["conv2.bias"]) + x1
    if "linear1.weight" not in w:
        return x2
    x3 = linear(x2, w["linear1.weight"], w["linear1.bias"])
    return linear(elementwise.relu(x3), w["linear2.weight"], w["linear2.bias"]) + x3


@whole
def peaa(y: Any, weight: Any, bias: Any, heads: int) -> Any:
    """Parameter-efficient attention aggregation of y [B, Ĥ, N, D]: the mean over the Ĥ/heads groups of the linear map
    of each group's heads side by side; gives [B, N, out].

    ``weight``  [out, heads·D] and ``bias`` [out] (or None), torch.nn.Linear's
    """
    checks.tensor("y", y, "[B, Ĥ, N, D]")
    heads = static.integer("heads", heads)
    if heads < 1 or int(y.shape[1]) % heads:
        raise ValueError(f"expected heads to divide the {y.shape[1]} heads of y, but got {heads}")
    row = heads * int(y.shape[3])
    checks.tensor("weight", weight, "[out, heads·D]")
    if int(weight.shape[1]) != row:
        raise ValueError(f"expected weight [out, heads*D] = [out, {row}], but got {list(weight.shape)}")
    if bias is not None:
        checks.tensor("bias", bias, "[out]", (int(weight.shape[0]),))
    return _peaa(y, weight, bias, heads=heads)


@program
def _peaa(y: Any, weight: Any, bias: Any, *, heads: int) -> Any:
    return mean_heads(linear(y, weight, bias, heads=heads))


def _weights(name: str, given: Mapping[str, Any], x: Any, kernel: int, perceptron: bool) -> dict[str, Any]:
    """The weights in order; an error names a key that is missing, not known, or not of the shape it should have."""
    checks.tensor(name[0], x, "[B, H, N, D]")
    kind = checks.floating(name[0], x)
    if not isinstance(given, Mapping):
        raise TypeError(f"expected {name} to be a dict of tensors, but got '{type(given).__name__}'")
    wide = perceptron and any(key in given for key in PERCEPTRON)
    wanted = CONVOLUTIONS + (PERCEPTRON if wide else ())
    for key in wanted:
        if given.get(key) is None:
            there = ", ".join(repr(each) for each in given if given[each] is not None)
            raise ValueError(f"expected {name} to have '{key}', but it has {there or 'nothing'}")
    for key in given:
        if key not in wanted:
            raise ValueError(f"expected {name} to have {', '.join(wanted)} only, but it has '{key}'")
    for key in wanted:
        _check_type(f"{name}['{key}']", given[key], name[0], kind)
    shapes = _shapes(given, int(x.shape[1]), int(x.shape[3]), kernel)
    for key in wanted:
        shape, found = shapes[key], [int(size) for size in given[key].shape]
        if found != shape:
            raise ValueError(f"expected {name}['{key}'] of shape {shape}, but got {found}")
    return {key: given[key] for key in wanted}


def _check_type(name: str, weight: Any, operand: str, kind: str) -> None:
    """Refuse what is no tensor of floating-point numbers; one that multiplies is of the operand's type, or float32."""
    if not is_array(weight) and not isinstance(weight, Tensor):
        raise TypeError(f"expected {name} to be a tensor, but got '{type(weight).__name__}'")
    found = checks.floating(name, weight)
    if "weight" in name and found not in (kind, "fp32"):
        raise TypeError(f"expected {name} of the type of '{operand}', {kind}, or fp32, but got {found}")


def _shapes(given: Mapping[str, Any], heads: int, channels: int, kernel: int) -> dict[str, list[int]]:
    """What shapes weights have. Those of Ĥ and D̂ are what most of the weights say."""

    def usual(*sizes: tuple[str, int]) -> int:
        found = [int(given[key].shape[axis]) for key, axis in sizes if axis < len(given[key].shape)]
        return statistics.mode(found) if found else 0

    many = usual(("conv1.weight", 0), ("conv1.bias", 0), ("conv2.weight", 0), ("conv2.weight", 1), ("conv2.bias", 0))
    shapes = {
        "conv1.weight": [many, heads, kernel],
        "conv1.bias": [many],
        "conv2.weight": [many, many, kernel],
        "conv2.bias": [many],
    }
    if "linear1.weight" not in given:
        return shapes
    wide = usual(
        ("linear1.weight", 0), ("linear1.bias", 0), ("linear2.weight", 0), ("linear2.weight", 1), ("linear2.bias", 0)
    )
    return shapes | {
        "linear1.weight": [wide, channels],
        "linear1.bias": [wide],
        "linear2.weight": [wide, wide],
        "linear2.bias": [wide],
    }
