# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Second derivatives, by whichever ways torch takes to them, against float64; and what has none says so."""

import pytest
import torch
import weft
from weft.attention import attend, sema
from weft.testing import attention, masks
from weft.testing.attention import Domain


@weft.program
def causal(q, k, v):
    return weft.softmax(q, k, weft.causal()) @ v


@weft.program
def capped(q, k, v):
    def score_mod(s, b, h, n, m):
        return 3 * weft.tanh(s / 3) - 0.1 * (n - m)

    return weft.softmax(q, k, weft.window(7, 0), score_mod=score_mod) @ v


def formula(q, k, v):
    return attention(q, [Domain(k, v, masks.causal(q.shape[2], k.shape[2]))])[0]


def capped_formula(q, k, v):
    def score_mod(s, b, h, n, m):
        return 3 * torch.tanh(s / 3) - 0.1 * (n - m)

    return attention(q, [Domain(k, v, masks.window(q.shape[2], k.shape[2], 7, 0))], score_mod=score_mod)[0]


@pytest.fixture
def qkv(seed):
    torch.manual_seed(seed)
    return [torch.randn(1, 4, 40, 16), torch.randn(1, 2, 40, 16), torch.randn(1, 2, 40, 24)]


def double(tensors):
    return [x.double() for x in tensors]


def close(found, wanted, tolerance=2e-5):
    scale = wanted.abs().max().clamp(min=1)
    assert (found.double() - wanted).abs().max() <= tolerance * scale


def penalty(f, tensors):
    """The gradients of a sum of squares of gradients, as a gradient penalty has them."""
    leaves = [x.clone().requires_grad_() for x in tensors]
    first = torch.autograd.grad(f(*leaves).square().sum(), leaves, create_graph=True)
    return torch.autograd.grad(sum(g.square().sum() for g in first), leaves)


FORMS = {"causal": (causal, formula), "score_mod": (capped, capped_formula)}


@pytest.mark.parametrize("form", FORMS)
def test_gradients_of_gradients(qkv, form):
    mine, reference = FORMS[form]
    for found, wanted in zip(penalty(mine, qkv), penalty(reference, double(qkv)), strict=True):
        close(found, wanted)


@pytest.mark.parametrize("way", ["forward over reverse", "reverse over reverse"])
def test_ways_of_torch_func(qkv, way):
    directions = [torch.randn_like(x) for x in qkv]

    def second(f, tensors, along):
        loss = lambda *x: f(*x).square().sum()  # noqa: E731
        gradients = torch.func.grad(loss, argnums=(0, 1, 2))
        if way == "forward over reverse":
            return torch.func.jvp(gradients, tuple(tensors), tuple(along))[1]
        products = lambda *x: sum((g * t).sum() for g, t in zip(gradients(*x), along, strict=True))  # noqa: E731
        return torch.func.grad(products, argnums=(0, 1, 2))(*tensors)

    wanted = second(formula, double(qkv), double(directions))
    for found, each in zip(second(causal, qkv, directions), wanted, strict=True):
        close(found, each)


def test_hessian(qkv):
    q, k, v = (x[:, :1, :3, :8] for x in qkv)
    found = torch.func.hessian(lambda q: causal(q, k, v).square().sum())(q)
    wanted = torch.func.hessian(lambda q: formula(q, k.double(), v.double()).square().sum())(q.double())
    close(found, wanted)


@pytest.mark.slow
def test_mechanisms(qkv):
    """Of programs of other ops beside attention, by differences of their gradients."""
    q, k, v = (torch.randn(1, 2, 32, 16) for _ in range(3))
    taps = torch.randn(32, 1, 3)
    starts = torch.tensor([0, 9, 32], dtype=torch.int32)
    for f in (
        lambda q, k, v: sema(q, k, v, window=16, lepe_weight=taps),
        lambda q, k, v: attend(q, k, v, weft.causal(), cu_seqlens_q=starts, cu_seqlens_k=starts),
        lambda q, k, v: attend(weft.rope(q), weft.rms_norm(k), v, weft.strided(3) | weft.window(2, 2)),
    ):
        gradients = torch.func.grad(lambda *x, f=f: f(*x).sin().sum(), argnums=(0, 1, 2))
        along = [torch.randn_like(x) for x in (q, k, v)]
        found = torch.func.jvp(gradients, (q, k, v), tuple(along))[1]
        step = 1e-2
        up, down = (gradients(*(x + s * t for x, t in zip((q, k, v), along, strict=True))) for s in (step, -step))
        for each, high, low in zip(found, up, down, strict=True):
            close(each, ((high.double() - low.double()) / (2 * step)), tolerance=5e-3)


def test_what_has_none_says_so(qkv):
    q, k, v = (x.clone().requires_grad_() for x in qkv)
    slopes = torch.rand(4, requires_grad=True)
    out = attend(q, k, v, score_mod=lambda s, b, h, n, m: s * slopes[h])
    first = torch.autograd.grad(out.sum(), q, create_graph=True)[0]
    with pytest.raises(NotImplementedError, match="expected gradients of first order"):
        first.sum().backward()
    penalties = torch.autograd.grad(causal(q, k, v).sum(), q, create_graph=True)[0].square().sum()
    second = torch.autograd.grad(penalties, q, create_graph=True)[0]
    with pytest.raises(NotImplementedError, match="'causal': expected derivatives of first or second order"):
        second.sum().backward()
