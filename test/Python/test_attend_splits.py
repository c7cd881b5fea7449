# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""attend whose keys are divided among programs: equal to float64, the bits of a sequence alone, and gradients."""

import itertools
import math

import pytest
import torch
import weft
from weft.attention import attend, decode

QUERIES, KEYS = (0, 1, 4, 5, 5, 10, 43), (0, 300, 304, 304, 310, 510, 543)  # one without keys, one without queries


def drawn(seed, dtype=torch.float16, size=32):
    """Packed queries, few of each sequence, over more keys."""
    generator = torch.Generator().manual_seed(seed)
    q = torch.randn(1, 4, QUERIES[-1], size, generator=generator)
    k, v = (torch.randn(1, 2, KEYS[-1], size, generator=generator) for _ in "kv")
    return [each.to(dtype) for each in (q, k, v)]


def starts(bounds):
    return torch.tensor(bounds, dtype=torch.int32)


def parts():
    """The sequences' queries and keys, of those that have any."""
    for (first, last), (begin, end) in zip(itertools.pairwise(QUERIES), itertools.pairwise(KEYS), strict=True):
        if first < last and begin < end:
            yield slice(first, last), slice(begin, end)


def reference(q, k, v, sink=None):
    """Causal attention of one sequence in float64, the last query at the last key, and its log-sum-exp."""
    q, k, v = q.double(), *(each.double().repeat_interleave(2, 1) for each in (k, v))
    n, m = q.shape[2], k.shape[2]
    later = torch.arange(m) > torch.arange(n)[:, None] + m - n
    scores = (q @ k.mT / math.sqrt(q.shape[3])).masked_fill(later, -math.inf)
    if sink is not None:
        scores = torch.cat([scores, sink.double()[None, :, None, None].expand(1, -1, n, 1)], 3)
    return scores.softmax(3)[..., :m] @ v, scores.logsumexp(3)


@pytest.mark.parametrize("splits", [0, 3])
def test_packed_sequences(splits, seed):
    """Against float64, and the bits that each has alone, and in another order."""
    q, k, v = drawn(seed)
    sink = torch.randn(4, generator=torch.Generator().manual_seed(seed + 1))
    options = {"sink": sink, "return_lse": True, "splits": splits}
    out, lse = attend(q, k, v, weft.causal(), cu_seqlens_q=starts(QUERIES), cu_seqlens_k=starts(KEYS), **options)
    for rows, keys in parts():
        one = (q[:, :, rows], k[:, :, keys], v[:, :, keys])
        expected, its_lse = reference(*one, sink)
        torch.testing.assert_close(out[:, :, rows].double(), expected, rtol=0, atol=3e-3)
        torch.testing.assert_close(lse[:, :, rows].double(), its_lse, rtol=0, atol=3e-3)
        alone, lse_alone = attend(*one, weft.causal(), **options)
        assert torch.equal(out[:, :, rows], alone) and torch.equal(lse[:, :, rows], lse_alone)
    assert not out[:, :, 4].any()  # of no keys
    order = list(parts())[::-1]
    turned = [torch.cat([x[:, :, rows] for rows, _ in order], 2) for x in (q,)]
    turned += [torch.cat([x[:, :, keys] for _, keys in order], 2) for x in (k, v)]
    counts = [[each.stop - each.start for each in side] for side in zip(*order, strict=True)]
    bounds = [starts([0, *itertools.accumulate(each)]) for each in counts]
    again, _ = attend(*turned, weft.causal(), cu_seqlens_q=bounds[0], cu_seqlens_k=bounds[1], **options)
    assert torch.equal(again, torch.cat([out[:, :, rows] for rows, _ in order], 2))


@pytest.mark.parametrize("keys", [QUERIES, (0, 0, 0, 0)], ids=["some", "none"])
def test_a_sink_where_there_are_no_keys(keys, seed):
    """The log-sum-exp of a row without keys is its sink, whose gradient is that log-sum-exp's."""
    q, k, _ = drawn(seed, torch.float32)
    sink = torch.randn(4, generator=torch.Generator().manual_seed(seed + 1)).requires_grad_()
    bounds = {"cu_seqlens_q": starts((0, 2, 4, 9)), "cu_seqlens_k": starts((0, 0, min(keys[-1], 40), keys[-1]))}
    found = []
    for splits in (None, 0, 3):
        given = (q[:, :, :9], k[:, :, : keys[-1]], k[:, :, : keys[-1]])
        out, lse = attend(*given, sink=sink, return_lse=True, splits=splits, **bounds)
        (change,) = torch.autograd.grad(out.sum() + lse.sum(), sink)
        alone = sink.detach()[None, :, None].expand(1, 4, 2)
        torch.testing.assert_close(lse.detach()[:, :, :2], alone, rtol=0, atol=1e-5)
        assert not out[:, :, :2].any()
        found.append((out.detach(), lse.detach(), change))
    for each in found[1:]:
        for one, other in zip(each, found[0], strict=True):
            torch.testing.assert_close(one, other, rtol=0, atol=1e-4)


@pytest.mark.parametrize("splits", [0, 1, 3])
def test_values_of_one_channel(splits, seed):
    generator = torch.Generator().manual_seed(seed)
    q, k = (torch.randn(1, 2, n, 16, generator=generator).half() for n in (3, 200))
    v = torch.randn(1, 2, 200, 1, generator=generator).half()
    wanted = (q.double() @ k.double().mT / 4).softmax(-1) @ v.double()
    torch.testing.assert_close(attend(q, k, v, splits=splits).double(), wanted, rtol=0, atol=3e-3)


def test_the_bits_of_decode(seed):
    """The rule is decode's."""
    q, k, v = drawn(seed)
    out = attend(q, k, v, weft.causal(), cu_seqlens_q=starts(QUERIES), cu_seqlens_k=starts(KEYS), splits=0)
    for rows, keys in parts():
        assert torch.equal(out[:, :, rows], decode(q[:, :, rows], k[:, :, keys], v[:, :, keys]))


def test_keys_are_divided():
    """Into runs, which another kernel merges; without splits they are not."""
    q, k = torch.zeros(1, 1, 1, 32).half(), torch.zeros(1, 1, 4096, 32).half()
    for splits, merged in ((0, True), (1, True), (None, False)):
        text = str(weft.Program(lambda q, k, splits=splits: attend(q, k, k, splits=splits)).explain(q, k))
        assert ("merge_splits" in text) == merged


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32], ids=["f16", "f32"])
@pytest.mark.parametrize("splits", [0, 2])
def test_gradients(splits, dtype, seed):
    """Those of float64, of outputs and log-sum-exps."""
    q, k, v = (each.requires_grad_() for each in drawn(seed, dtype))
    generator = torch.Generator().manual_seed(seed + 1)
    bounds = {"cu_seqlens_q": starts(QUERIES), "cu_seqlens_k": starts(KEYS)}
    out, lse = attend(q, k, v, weft.causal(), return_lse=True, splits=splits, **bounds)
    d_out, d_lse = (torch.randn(each.shape, generator=generator).to(each.dtype) for each in (out, lse))
    exact = [each.detach().double().requires_grad_() for each in (q, k, v)]
    total, seen = 0.0, torch.zeros(QUERIES[-1], dtype=torch.bool)
    for rows, keys in parts():
        expected, its_lse = reference(exact[0][:, :, rows], exact[1][:, :, keys], exact[2][:, :, keys])
        total = total + (expected * d_out[:, :, rows]).sum() + (its_lse * d_lse[:, :, rows]).sum()
        seen[rows] = True
    torch.autograd.backward([out, lse], [d_out, torch.where(seen, d_lse, 0)])
    total.backward()
    tolerance = 2e-2 if dtype == torch.float16 else 2e-5
    for given, wanted in zip((q, k, v), exact, strict=True):
        assert (given.grad.double() - wanted.grad).norm() <= tolerance * wanted.grad.norm()
        assert (given.grad.double() - wanted.grad).abs().max() <= 3 * tolerance * wanted.grad.abs().max()


def test_dropout_keeps_the_same_weights(seed):
    q, k, v = (x[:, :, :40] for x in drawn(seed, torch.float32))
    given = {"dropout_p": 0.3, "dropout_seed": torch.tensor([seed % 2**31, 7], dtype=torch.int32)}
    divided, whole = attend(q, k, v, splits=2, **given), attend(q, k, v, **given)
    torch.testing.assert_close(divided, whole, rtol=0, atol=1e-5)


@pytest.mark.parametrize("splits", [-1, True, "3"])
def test_what_is_no_number_of_splits(splits):
    q, k, v = drawn(0)
    with pytest.raises(Exception, match=r"expected 'splits' to be .* but got"):
        attend(q, k, v, splits=splits)
