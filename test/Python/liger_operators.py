# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Liger's operators, as installed, beside their definitions in float64. Run by ``python -m weft.triton``; prints a line
for each: its name, and the largest errors of its results and of each gradient, over the largest value."""

import os

import torch
import torch.nn.functional as F
from liger_kernel.ops import (
    LigerCrossEntropyFunction,
    LigerFusedAddRMSNormFunction,
    LigerFusedLinearCrossEntropyFunction,
    LigerGELUMulFunction,
    LigerGroupNormFunction,
    LigerJSDFunction,
    LigerKLDivLossFunction,
    LigerLayerNormFunction,
    LigerPolyNormFunction,
    LigerReLUSquaredFunction,
    LigerRMSNormFunction,
    LigerRopeFunction,
    LigerSiLUMulFunction,
    LigerSoftmaxFunction,
    LigerSparsemaxFunction,
)

torch.manual_seed(int(os.environ.get("WEFT_TEST_SEED", "0")))


def rms(x, w, offset=0.0):
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * (w + offset)


def poly(x, w, b):
    powers = (x.pow(i) * torch.rsqrt(x.pow(i).pow(2).mean(-1, keepdim=True) + 1e-6) for i in (3, 2, 1))
    return sum(each * weight for each, weight in zip(powers, w, strict=True)) + b


def sparsemax(x):
    ordered, _ = x.sort(-1, descending=True)
    ranks = torch.arange(1, x.shape[-1] + 1, dtype=x.dtype)
    support = 1 + ranks * ordered > ordered.cumsum(-1)
    count = support.sum(-1, keepdim=True)
    threshold = ((ordered * support).sum(-1, keepdim=True) - 1) / count
    return (x - threshold).clamp(min=0)


def rope(q, k, cos, sin):
    def turned(x):
        first, second = x.chunk(2, -1)
        return x * cos[:, None] + torch.cat((-second, first), -1) * sin[:, None]

    return turned(q), turned(k)


def jsd(x, y):
    p, q = x.exp(), y.exp()
    middle = ((p + q) / 2).log()
    return 0.5 * (F.kl_div(middle, y, log_target=True, reduction="sum") + (p * (x - middle)).sum()) / x.shape[0]


def drawn(*shape):
    return torch.randn(shape)


ROWS, SIZE, VOCABULARY = 6, 96, 500
TARGETS = torch.randint(0, VOCABULARY, (ROWS,))
TARGETS[1] = -100
ANGLES = torch.rand(1, 16, 32).repeat(1, 1, 2)
COS, SIN = ANGLES.cos(), ANGLES.sin()

#: name: arguments, Liger's function of them, its definition
CASES = {
    "rms_norm": ((drawn(ROWS, SIZE), drawn(SIZE)), lambda x, w: LigerRMSNormFunction.apply(x, w, 1e-6), rms),
    "rms_norm_gemma": (
        (drawn(ROWS, SIZE), drawn(SIZE)),
        lambda x, w: LigerRMSNormFunction.apply(x, w, 1e-6, 1.0, "gemma"),
        lambda x, w: rms(x, w, 1.0),
    ),
    "fused_add_rms_norm": (
        (drawn(ROWS, SIZE), drawn(ROWS, SIZE), drawn(SIZE)),
        lambda x, r, w: LigerFusedAddRMSNormFunction.apply(x, r, w, 1e-6, 0.0, "llama", False),
        lambda x, r, w: (rms(x + r, w), x + r),
    ),
    "layer_norm": (
        (drawn(ROWS, SIZE), drawn(SIZE), drawn(SIZE)),
        lambda x, w, b: LigerLayerNormFunction.apply(x, w, b, 1e-6),
        lambda x, w, b: F.layer_norm(x, (SIZE,), w, b, 1e-6),
    ),
    "group_norm": (
        (drawn(2, 12, 50), drawn(12), drawn(12)),
        lambda x, w, b: LigerGroupNormFunction.apply(x, w, b, 12, 3, 1e-6),
        lambda x, w, b: F.group_norm(x, 3, w, b, 1e-6),
    ),
    "poly_norm": (
        (drawn(ROWS, SIZE), drawn(3), drawn()),
        lambda x, w, b: LigerPolyNormFunction.apply(x, w, b, 1e-6, False),
        poly,
    ),
    "swiglu": (
        (drawn(ROWS, SIZE), drawn(ROWS, SIZE)),
        lambda a, b: LigerSiLUMulFunction.apply(a.clone(), b.clone()),
        lambda a, b: F.silu(a) * b,
    ),
    "geglu": (
        (drawn(ROWS, SIZE), drawn(ROWS, SIZE)),
        lambda a, b: LigerGELUMulFunction.apply(a.clone(), b.clone()),
        lambda a, b: F.gelu(a, approximate="tanh") * b,
    ),
    "relu_squared": ((drawn(ROWS, SIZE),), LigerReLUSquaredFunction.apply, lambda x: F.relu(x) ** 2),
    "softmax": ((drawn(ROWS, SIZE),), LigerSoftmaxFunction.apply, lambda x: x.softmax(-1)),
    "sparsemax": ((drawn(ROWS, SIZE),), lambda x: LigerSparsemaxFunction.apply(x, -1), sparsemax),
    "rope": (
        (drawn(1, 4, 16, 64), drawn(1, 2, 16, 64)),
        lambda q, k: LigerRopeFunction.apply(q.clone(), k.clone(), COS, SIN),
        lambda q, k: rope(q, k, COS.double(), SIN.double()),
    ),
    "cross_entropy": (
        (drawn(ROWS, VOCABULARY),),
        lambda x: LigerCrossEntropyFunction.apply(x.clone(), TARGETS, None, -100, 0.0, 0.1, "mean", None)[0],
        lambda x: F.cross_entropy(x, TARGETS, label_smoothing=0.1),
    ),
    "fused_linear_cross_entropy": (
        (drawn(ROWS, SIZE), drawn(VOCABULARY, SIZE)),
        lambda x, w: LigerFusedLinearCrossEntropyFunction.apply(x, w, TARGETS)[0],
        lambda x, w: F.cross_entropy(x @ w.T, TARGETS),
    ),
    "kl_div": (
        (drawn(ROWS, SIZE).log_softmax(-1),),
        lambda x: LigerKLDivLossFunction.apply(x, SPREAD, "batchmean", False, 1e-10),
        lambda x: F.kl_div(x, SPREAD.double(), reduction="batchmean"),
    ),
    "jsd": (
        (drawn(ROWS, SIZE).log_softmax(-1),),
        lambda x: LigerJSDFunction.apply(x, SPREAD.log(), None, 0.5, -100),
        lambda x: jsd(x, SPREAD.double().log()),
    ),
}
SPREAD = drawn(ROWS, SIZE).softmax(-1)


def outcomes(function, arguments, weights):
    """Results of a function and, weighted, its gradients; and the weights, drawn where there are none."""
    leaves = [each.clone().requires_grad_() for each in arguments]
    results = function(*leaves)
    results = results if isinstance(results, tuple) else (results,)
    weights = weights or [torch.randn(each.shape) for each in results]
    found = [each.detach().clone() for each in results]
    # some operators write their gradients where the incoming one was: each has its own
    torch.autograd.backward(results, [w.clone().to(each.dtype) for w, each in zip(weights, results, strict=True)])
    return found + [leaf.grad for leaf in leaves], weights


def error(got, wanted):
    return float((got.double() - wanted).abs().max() / wanted.abs().max().clamp(min=1e-30))


for name, (arguments, function, definition) in CASES.items():
    got, weights = outcomes(function, arguments, None)
    wanted, _ = outcomes(definition, [each.double() for each in arguments], weights)
    print(name, *(f"{error(a, b):.1e}" for a, b in zip(got, wanted, strict=True)), flush=True)
