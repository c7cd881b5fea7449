# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Rows whose softmax is NaN, by a NaN in a query, a key or a score, or by an infinite score: their log-sum-exps are NaN
as their outputs are, whole, divided among programs and merged, and never those of a row without keys.
"""

import math

import pytest
import torch
import weft
from weft.attention import attend, decode
from weft.distributed.parts import Merged

ROWS, KEYS = 5, 300


def _operands(where, bad):
    """q, k, v and a score_mod; head 0 of 2 has the bad number, in one key's score of all rows or in row 3."""
    q, k, v = torch.randn(1, 2, ROWS, 32), torch.randn(1, 2, KEYS, 32), torch.randn(1, 2, KEYS, 32)
    mod = None
    if where == "query":
        q[0, 0, 3, 7] = bad
    elif where == "key":
        k[0, 0, 50, 7] = bad
    else:
        mod = lambda s, b, h, n, m: weft.where((m == 50) & (h == 0), bad, s)  # noqa: E731
    return q, k, v, mod


def _exact(q, k, v, where, bad):
    scores = q.double() @ k.double().mT / math.sqrt(32)
    if where == "score":
        scores[0, 0, :, 50] = bad
    weights = torch.softmax(scores, -1)
    return weights @ v.double(), torch.where(weights.isnan().any(-1), math.nan, torch.logsumexp(scores, -1))


def _same(found, wanted):
    assert torch.equal(found.isnan(), wanted.isnan()), (found, wanted)
    assert (found - wanted).nan_to_num().abs().max() < 1e-4


@pytest.mark.parametrize(
    ("where", "bad"), [("query", math.nan), ("key", math.nan), ("score", math.nan), ("score", math.inf)]
)
@pytest.mark.parametrize("splits", [None, 1, 3, 0])
def test_attention(where, bad, splits, seed):
    q, k, v, mod = _operands(where, bad)
    wanted = _exact(q, k, v, where, bad)
    if splits is None:
        found = attend(q, k, v, score_mod=mod, return_lse=True)
    else:
        found = decode(q, k, v, weft.full(), score_mod=mod, num_splits=splits or None, return_lse=True)
    for ours, exact in zip(found, wanted, strict=True):
        _same(ours, exact)


@pytest.mark.parametrize("way", ["weft.merge", "distributed"])
def test_merged_halves(way, seed):
    """Of the keys' halves one has the NaN."""
    q, k, v, _ = _operands("key", math.nan)
    halves = [attend(q, k[:, :, part], v[:, :, part], return_lse=True) for part in (slice(150), slice(150, None))]
    if way == "weft.merge":
        out, lse = weft.merge(*halves[0], *halves[1])
    else:
        merged = Merged()
        for half in halves:
            merged.add(*half)
        out, lse = merged.out, merged.lse
    for ours, exact in zip((out, lse), _exact(q, k, v, "key", math.nan), strict=True):
        _same(ours, exact)


def test_merge_of_no_keys():
    """-inf beside -inf stays -inf, beside a number or NaN it gives the other's; gradients are finite."""
    none, some, nan = (torch.full((1, 1, 2), each, requires_grad=True) for each in (-math.inf, 1.5, math.nan))
    outs = [torch.randn(1, 1, 2, 8, requires_grad=True) for _ in range(2)]
    out, lse = weft.merge(outs[0], none, outs[1], none)
    assert (out == 0).all()
    assert (lse == -math.inf).all()
    out, lse = weft.merge(outs[0], none, outs[1], some)
    assert torch.equal(out, outs[1])
    assert torch.equal(lse, some)
    assert all(each.isfinite().all() for each in torch.autograd.grad(out.sum() + lse.sum(), (*outs, none, some)))
    assert weft.merge(outs[0], none, outs[1], nan)[1].isnan().all()


def test_gradients_of_a_nan_row(seed):
    """What a row with NaN gives its keys is NaN, and other rows have their own gradients."""
    q, k, v = (torch.randn(1, 1, 40, 16) for _ in range(3))
    q[0, 0, 30, 3] = math.nan
    leaves = [each.requires_grad_() for each in (q, k, v)]
    out, lse = attend(*leaves, weft.causal(), return_lse=True)
    (out.sum() + lse.sum()).backward()
    assert q.grad.isnan().any(-1)[0, 0].nonzero().flatten().tolist() == [30]
    assert k.grad[0, 0, :31].isnan().all()
    assert v.grad[0, 0, :31].isnan().all()
