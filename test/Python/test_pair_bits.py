# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Masks that read a tensor's element for each pair: results and gradients against float64, over sizes that end anywhere
in a block, heads that share keys, batches and heads with masks of their own, formulas and counts beside them."""

import math
import random

import pytest
import torch
import weft


@weft.program
def attention(q, k, v, *, pattern):
    return weft.softmax(q, k, pattern) @ v


@weft.program
def capped(q, k, v, *, pattern):
    return weft.softmax(q, k, pattern, score_mod=lambda s, b, h, n, m: 5 * weft.tanh(s / 5)) @ v


def reference(q, k, v, allowed, cap):
    group = q.shape[1] // k.shape[1]
    k, v = (x.repeat_interleave(group, 1) for x in (k, v))
    scores = q @ k.mT / math.sqrt(q.shape[-1])
    if cap:
        scores = 5 * torch.tanh(scores / 5)
    scores = scores.masked_fill(~allowed, -torch.inf)
    weights = torch.where(allowed.any(-1, keepdim=True), scores.softmax(-1), 0.0)
    return weights.nan_to_num() @ v


def masks(rng, generator, sizes):
    """A tensor of truths or numbers, the pattern that reads it, and which pairs belong."""
    B, H, N, M = sizes
    share = rng.choice([0.02, 0.5, 0.97])
    kind = rng.choice(["pairs", "heads", "batches", "numbers", "causal", "either", "shifted"])
    shape = {"heads": (H, N, M), "batches": (B, H, N, M)}.get(kind, (N, M))
    truths = torch.rand(shape, generator=generator) < share
    truths[..., : N // 3, :] &= rng.random() < 0.7  # rows without keys
    table = truths.float() * 3 if kind == "numbers" else truths
    if kind == "heads":
        pattern = weft.mask(lambda b, h, n, m: table[h, n, m])
    elif kind == "batches":
        pattern = weft.mask(lambda b, h, n, m: table[b, h, n, m])
    elif kind == "numbers":
        pattern = weft.mask(lambda b, h, n, m: table[n, m] > 2)
    else:
        pattern = weft.mask(lambda b, h, n, m: table[n, m])
    below = torch.arange(M) <= torch.arange(N)[:, None] + (M - N)
    if kind == "causal":
        return pattern & weft.causal(), truths & below
    if kind == "either":
        return pattern | weft.window(5, 5), truths | ((torch.arange(M) - (torch.arange(N)[:, None] + M - N)).abs() <= 5)
    if kind == "shifted":
        return pattern.shift(3), truths[:, (torch.arange(M) - 3).clamp(min=0)]  # tables are read inside
    return pattern, truths


FORMS = [(torch.float16, 64), (torch.float32, 64), (torch.float16, 128), (torch.bfloat16, 192)]


@pytest.mark.parametrize("round", range(2))
@pytest.mark.parametrize("dtype, D", FORMS, ids=lambda each: str(each).removeprefix("torch."))
@pytest.mark.parametrize("target", ["sm_80", "sm_90a"])
def test_masks_that_read_pairs(seed, dtype, D, target, round, monkeypatch):
    monkeypatch.setenv("WEFT_DEVICE", f"simulator:{target}")
    rng, generator = random.Random(seed + round), torch.Generator().manual_seed(seed + round)
    heads, group = rng.choice([(2, 1), (4, 2), (3, 3)])
    N, M = rng.choice([33, 100, 130, 192]), rng.choice([32, 65, 127, 200])
    pattern, allowed = masks(rng, generator, (2, heads, N, M))
    shapes = ((2, heads, N, D), (2, heads // group, M, D), (2, heads // group, M, D))
    q, k, v = (torch.randn(s, generator=generator).to(dtype).requires_grad_() for s in shapes)
    cap = rng.random() < 0.3
    out = (capped if cap else attention)(q, k, v, pattern=pattern)
    wide = [x.detach().double().requires_grad_() for x in (q, k, v)]
    right = reference(*wide, allowed, cap)
    cotangent = torch.randn(right.shape, generator=generator).to(dtype)
    found = torch.autograd.grad(out, (q, k, v), cotangent)
    wanted = torch.autograd.grad(right, wide, cotangent.double())
    limit = {torch.float32: 2e-5, torch.float16: 4e-3, torch.bfloat16: 3e-2}[dtype]
    for name, one, other in zip(("out", "dq", "dk", "dv"), (out, *found), (right, *wanted), strict=True):
        assert one.isfinite().all(), name
        assert (one.detach().double() - other.detach()).abs().max() <= limit * max(
            1.0, float(other.detach().abs().max())
        ), name


@weft.program
def counted(q, k, v, lengths, *, pattern):
    return weft.softmax(q, weft.domain(k, pattern, count=lengths)) @ v


def test_keys_past_a_count_have_no_bits(seed):
    generator = torch.Generator().manual_seed(seed)
    q, k, v = torch.randn(3, 2, 3, 70, 32, generator=generator).unbind()
    truths = torch.rand(2, 3, 70, 70, generator=generator) < 0.6
    lengths = torch.tensor([[41], [70]], dtype=torch.int32).expand(2, 3).contiguous()
    k[0, :, 41:] = torch.nan
    found = counted(q, k, v, lengths, pattern=weft.mask(lambda b, h, n, m: truths[b, h, n, m]))
    allowed = truths & (torch.arange(70) < lengths[:, :, None, None])
    right = reference(q.double(), k.nan_to_num().double(), v.double(), allowed, cap=False)
    assert (found - right).abs().max() < 2e-5
