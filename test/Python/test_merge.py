# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""weft.merge: attention over two sets of keys is that over both, with its gradients."""

import math

import numpy as np
import pytest
import torch
import weft
from weft.attention import attend


def reference(q, k, v):
    """Output and log-sum-exp of full attention, in float64."""
    scores = q.double() @ k.double().transpose(-1, -2) / math.sqrt(q.shape[-1])
    return scores.softmax(-1) @ v.double(), scores.logsumexp(-1)


def test_two_halves_are_the_whole(seed):
    torch.manual_seed(seed)
    q, k, v = torch.randn(2, 3, 9, 32), torch.randn(2, 3, 50, 32), torch.randn(2, 3, 50, 16)
    parts = [attend(q, k[:, :, s], v[:, :, s], return_lse=True) for s in (slice(0, 20), slice(20, 50))]
    out, lse = weft.merge(*parts[0], *parts[1])
    expected, its_lse = reference(q, k, v)
    torch.testing.assert_close(out.double(), expected, rtol=0, atol=1e-5)
    torch.testing.assert_close(lse.double(), its_lse, rtol=0, atol=1e-5)


def test_of_numpy_arrays(seed):
    generator = np.random.default_rng(seed)
    out = [generator.standard_normal((1, 2, 4, 16)).astype(np.float16) for _ in range(2)]
    lse = [generator.standard_normal((1, 2, 4)).astype(np.float32) for _ in range(2)]
    merged, both = weft.merge(out[0], lse[0], out[1], lse[1])
    assert merged.dtype == np.float16
    expected = np.logaddexp(*[x.astype(np.float64) for x in lse])
    weights = [np.exp(x.astype(np.float64) - expected)[..., None] for x in lse]
    np.testing.assert_allclose(both, expected, atol=1e-5)
    np.testing.assert_allclose(merged, weights[0] * out[0] + weights[1] * out[1], atol=2e-3)


def merged_formula(out1, lse1, out2, lse2):
    both = torch.logaddexp(lse1, lse2)
    return (lse1 - both).exp()[..., None] * out1 + (lse2 - both).exp()[..., None] * out2, both


def test_gradients(seed):
    torch.manual_seed(seed)
    shapes = [(2, 2, 5, 16), (2, 2, 5), (2, 2, 5, 16), (2, 2, 5)]
    given = [torch.randn(shape, requires_grad=True) for shape in shapes]
    weights = [torch.randn(2, 2, 5, 16), torch.randn(2, 2, 5)]

    def loss(results):
        return sum((x * w).sum() for x, w in zip(results, weights, strict=True))

    got = torch.autograd.grad(loss(weft.merge(*given)), given)
    exact = [x.detach().double().requires_grad_() for x in given]
    expected = torch.autograd.grad(loss(merged_formula(*exact)), exact)
    for mine, theirs in zip(got, expected, strict=True):
        torch.testing.assert_close(mine.double(), theirs, rtol=0, atol=1e-5)


def test_rows_without_keys(seed):
    """One set empty gives the other's bits; both empty give 0 and -inf; gradients stay finite."""
    torch.manual_seed(seed)
    out = [torch.randn(1, 1, 3, 16, requires_grad=True) for _ in range(2)]
    lse = [torch.randn(1, 1, 3) for _ in range(2)]
    lse[0][0, 0, 0] = lse[0][0, 0, 2] = lse[1][0, 0, 1] = lse[1][0, 0, 2] = -math.inf
    for each in lse:
        each.requires_grad_()
    merged, both = weft.merge(out[0], lse[0], out[1], lse[1])
    assert torch.equal(merged[0, 0, 0], out[1][0, 0, 0]) and torch.equal(merged[0, 0, 1], out[0][0, 0, 1])
    assert not merged[0, 0, 2].any() and both[0, 0, 2] == -math.inf
    torch.testing.assert_close(both[0, 0, :2], torch.stack([lse[1][0, 0, 0], lse[0][0, 0, 1]]), rtol=0, atol=1e-6)
    gradients = torch.autograd.grad(merged.square().sum() + both[0, 0, :2].sum(), [*out, *lse])
    assert all(torch.isfinite(each).all() for each in gradients)


@pytest.mark.parametrize("wrong", ["lse of float16", "other heads", "other type"])
def test_refusals(wrong):
    out1, out2, lse1, lse2 = (
        torch.zeros(1, 2, 3, 16),
        torch.zeros(1, 2, 3, 16),
        torch.zeros(1, 2, 3),
        torch.zeros(1, 2, 3),
    )
    if wrong == "lse of float16":
        lse1 = lse1.half()
    elif wrong == "other heads":
        out2, lse2 = torch.zeros(1, 4, 3, 16), torch.zeros(1, 4, 3)
    else:
        out2 = out2.half()
    with pytest.raises(Exception, match="expected"):
        weft.merge(out1, lse1, out2, lse2)
