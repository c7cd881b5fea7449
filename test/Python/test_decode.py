# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""weft.attention.decode: few queries over cached keys, in pages or not, against float64; bits that depend on nothing
but the sequence; what lies behind a sequence's end is never read."""

import math

import pytest
import torch
import weft
from weft.attention import decode


def reference(q, k, v, lengths, allowed=None, scale=None, sink=None):
    """Output and log-sum-exp in float64 of [B, H, N, D] over the first keys of each [B, Hkv, M, D]; ``allowed`` of
    (p, m) says which pairs attend."""
    scale = 1 / math.sqrt(q.shape[-1]) if scale is None else scale
    out = torch.zeros(*q.shape[:3], v.shape[-1], dtype=torch.float64)
    lse = torch.full(q.shape[:3], -math.inf, dtype=torch.float64)
    group, n = q.shape[1] // k.shape[1], q.shape[2]
    for b, length in enumerate(map(int, lengths)):
        for h in range(q.shape[1]):
            scores = q[b, h].double() @ k[b, h // group, :length].double().T * scale
            p, m = torch.arange(n)[:, None] + length - n, torch.arange(length)[None]
            scores = scores.masked_fill(~(m <= p if allowed is None else allowed(p, m)), -math.inf)
            logits = scores if sink is None else torch.cat([scores, sink[h].double().expand(n, 1)], 1)
            lse[b, h] = logits.logsumexp(-1)
            weights = (scores - lse[b, h][:, None]).exp().nan_to_num(0)
            out[b, h] = weights @ v[b, h // group, :length].double()
    return out, lse


def paged(cache, lengths, page, generator):
    """A cache [B, Hkv, M, D] in pages of shuffled order, and their table: all that no sequence has is NaN, and entries
    of the table that no sequence needs name nothing."""
    batch, heads, most, size = cache.shape
    needed = [-(-int(length) // page) for length in lengths]
    pages = torch.full((sum(needed) + 3, page, heads, size), math.nan, dtype=cache.dtype)
    order = torch.randperm(len(pages), generator=generator).tolist()
    table = torch.full((batch, -(-most // page)), -(2**30), dtype=torch.int32)
    for b, length in enumerate(map(int, lengths)):
        for number in range(needed[b]):
            table[b, number] = where = order.pop()
            rows = cache[b, :, number * page : min((number + 1) * page, length)]
            pages[where, : rows.shape[1]] = rows.transpose(0, 1)
    return pages, table


def both_paged(k, v, lengths, page, generator):
    """Keys and values in the same pages."""
    state = generator.get_state()
    keys, table = paged(k, lengths, page, generator)
    generator.set_state(state)
    return keys, paged(v, lengths, page, generator)[0], table


def drawn(generator, batch=3, heads=4, kv=2, n=1, most=300, size=64, value=64, dtype=torch.float16):
    q = torch.randn(batch, heads, n, size, generator=generator).to(dtype)
    k = torch.randn(batch, kv, most, size, generator=generator).to(dtype)
    v = torch.randn(batch, kv, most, value, generator=generator).to(dtype)
    return q, k, v


def near(got, expected):
    torch.testing.assert_close(got.double(), expected, rtol=0, atol=4e-3)


LENGTHS = torch.tensor([300, 97, 1], dtype=torch.int32)


@pytest.mark.parametrize("n", [1, 5])
def test_contiguous_cache(n, seed):
    generator = torch.Generator().manual_seed(seed)
    q, k, v = drawn(generator, n=n)
    for b, length in enumerate(LENGTHS):
        k[b, :, length:] = v[b, :, length:] = math.nan
    out, lse = decode(q, k, v, seqused_k=LENGTHS, return_lse=True)
    expected, its_lse = reference(q, k, v, LENGTHS)
    near(out, expected)
    assert torch.equal(lse == -math.inf, its_lse == -math.inf)
    near(lse.nan_to_num(neginf=0), its_lse.nan_to_num(neginf=0))


PATTERNS = {
    "window": (lambda: weft.window(40, 0), lambda p, m: (m <= p) & (m >= p - 40)),
    "full": (weft.full, lambda p, m: (m >= 0) & (p == p)),
    "strided": (lambda: weft.strided(3) & weft.causal(), lambda p, m: (m <= p) & ((p - m) % 3 == 0)),
}


@pytest.mark.parametrize("name", PATTERNS)
def test_patterns(name, seed):
    pattern, allowed = PATTERNS[name]
    generator = torch.Generator().manual_seed(seed)
    q, k, v = drawn(generator, n=2)
    out = decode(q, k, v, pattern(), seqused_k=LENGTHS)
    near(out, reference(q, k, v, LENGTHS, allowed)[0])
    keys, values, table = both_paged(k, v, LENGTHS, 16, generator)
    assert torch.equal(decode(q, keys, values, pattern(), block_table=table, seqused_k=LENGTHS), out)


def test_sink(seed):
    generator = torch.Generator().manual_seed(seed)
    q, k, v = drawn(generator)
    sink = torch.randn(4, generator=generator)
    near(decode(q, k, v, seqused_k=LENGTHS, sink=sink), reference(q, k, v, LENGTHS, sink=sink)[0])


@pytest.mark.parametrize("splits", [1, 3])
def test_as_many_splits_as_are_asked_for(splits, seed):
    generator = torch.Generator().manual_seed(seed)
    q, k, v = drawn(generator)
    near(decode(q, k, v, seqused_k=LENGTHS, num_splits=splits), reference(q, k, v, LENGTHS)[0])


@pytest.mark.parametrize("page", [1, 8, 16, 24, 64, 256])
def test_pages_have_the_bits_of_a_contiguous_cache(page, seed):
    generator = torch.Generator().manual_seed(seed)
    q, k, v = drawn(generator)
    keys, values, table = both_paged(k, v, LENGTHS, page, generator)
    got = decode(q, keys, values, block_table=table, seqused_k=LENGTHS, return_lse=True)
    for mine, theirs in zip(got, decode(q, k, v, seqused_k=LENGTHS, return_lse=True), strict=True):
        assert torch.equal(mine, theirs)


def test_a_sequence_has_the_same_bits_in_any_batch(seed):
    """Alone, in a batch of 64, in another order, beside longer ones and in a larger cache."""
    generator = torch.Generator().manual_seed(seed)
    q, k, v = drawn(generator, batch=64, kv=1, heads=2, most=260, size=32, value=32)
    lengths = torch.randint(0, 261, (64,), generator=generator, dtype=torch.int32)
    whole = decode(q, k, v, seqused_k=lengths)
    order = torch.randperm(64, generator=generator)
    assert torch.equal(decode(q[order], k[order], v[order], seqused_k=lengths[order]), whole[order])
    for b in (0, 17, 63):
        one, most = slice(b, b + 1), max(int(lengths[b]), 1)
        alone = decode(q[one], k[one, :, :most], v[one, :, :most], seqused_k=lengths[one])
        assert torch.equal(alone, whole[one])
