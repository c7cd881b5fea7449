# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""SFA's units in pages with every pattern, score_mod and sink, for any size of pages and groups of heads: samples of
the product, each against float64 and against a contiguous cache, bit by bit."""

import itertools
import math
import random

import pytest
import torch
import weft
from test_decode import both_paged, near

SIZE, ROOM = 32, 150

#: patterns of units, and which unit m the query that stands at p sees
PATTERNS = {
    "full": (weft.full, lambda p, m: (m >= 0) & (p == p)),
    "causal": (weft.causal, lambda p, m: m <= p),
    "window": (lambda: weft.window(40, 0), lambda p, m: (m <= p) & (m >= p - 40)),
    "strided": (lambda: weft.strided(3) & weft.causal(), lambda p, m: (m <= p) & ((p - m) % 3 == 0)),
    "sinks of tokens": (
        lambda: weft.window(20, 0) | (weft.prefix(8) & weft.causal()),
        lambda p, m: (m <= p) & ((m >= p - 20) | (m < 8)),
    ),
    "not near": (lambda: weft.causal() & ~weft.window(9, 0), lambda p, m: m < p - 9),
}
MODS = {
    "plain": None,
    "places": lambda s, b, h, n, m: s - 0.01 * m + 0.02 * h,
    "half": lambda s, b, h, n, m: 0.5 * s,
    "capped": lambda s, b, h, n, m: 3.0 * weft.tanh(s / 3.0),
}
IN_FLOAT64 = {
    "plain": lambda s, h, m: s,
    "places": lambda s, h, m: s - 0.01 * m + 0.02 * h,
    "half": lambda s, h, m: 0.5 * s,
    "capped": lambda s, h, m: 3.0 * (s / 3.0).tanh(),
}


def program(pattern, mod, splits, is_paged):
    """Attention to the token's own key and to units, of which each head has as many as it has."""

    def of(q, own_k, own_v, ones, sink, k, v, lengths, table=None):
        itself = weft.domain(own_k, weft.window(0, 0), count=ones)
        keys = weft.paged(k, table, lengths) if is_paged else k
        units = weft.domain(keys, pattern) if is_paged else weft.domain(keys, pattern, count=lengths)
        softmax = weft.softmax(q, itself, units, score_mod=mod, sink=sink, splits=splits)
        return softmax @ (own_v, weft.paged(v, table, lengths) if is_paged else v)

    return weft.program(of)


def expected(q, own_k, own_v, sink, k, v, lengths, allowed, mod):
    out, group = torch.zeros(q.shape, dtype=torch.float64), q.shape[1] // k.shape[1]
    for b, h in itertools.product(range(q.shape[0]), range(q.shape[1])):
        length, kv = int(lengths[b, h // group]), h // group
        m = torch.arange(length)
        own, units = (q[b, h].double() @ keys[b, kv].double().T / math.sqrt(SIZE) for keys in (own_k, k[:, :, :length]))
        own, units = mod(own, h, torch.zeros(1)), mod(units, h, m)
        units = units.masked_fill(~allowed(torch.tensor([[length - 1]]), m[None]), -math.inf)
        logits = [own, units] if sink is None else [own, units, sink[h].double().reshape(1, 1)]
        weights = torch.cat(logits, 1).softmax(1)[:, : 1 + length]
        out[b, h] = weights @ torch.cat([own_v[b, kv], v[b, kv, :length]]).double()
    return out


def in_pages(k, v, lengths, page, generator):
    """Keys and values in pages, NaN behind each head's end."""
    k, v = k.clone(), v.clone()
    for b, h in itertools.product(range(k.shape[0]), range(k.shape[1])):
        k[b, h, lengths[b, h] :] = v[b, h, lengths[b, h] :] = math.nan
    return both_paged(k, v, lengths.amax(1), page, generator)


@pytest.mark.parametrize("name", PATTERNS)
def test_units_in_pages(name, seed):
    """Each pattern once; the rest of the product is drawn."""
    draw, generator = random.Random(f"{seed} {name}"), torch.Generator().manual_seed(seed)
    mod, page = draw.choice(list(MODS)), draw.choice([1, 4, 8, 16, 24, 32, 64, 256])
    kv, group, splits = draw.choice([1, 2]), draw.choice([1, 3, 4]), draw.choice([None, 0, 3])
    print(f"{mod}, pages of {page}, heads {kv * group}/{kv}, splits {splits}")

    def rows(heads, tokens):
        return torch.randn(2, heads, tokens, SIZE, generator=generator).half()

    q, own_k, own_v, k, v = (rows(heads, n) for heads, n in ((kv * group, 1), (kv, 1), (kv, 1), (kv, ROOM), (kv, ROOM)))
    sink = torch.randn(kv * group, generator=generator) if draw.random() < 0.5 else None
    lengths = torch.randint(0, ROOM + 1, (2, kv), generator=generator, dtype=torch.int32)
    lengths[0, 0] = ROOM
    pattern, allowed = PATTERNS[name]
    common = (q, own_k, own_v, torch.ones_like(lengths), sink)
    contiguous = program(pattern(), MODS[mod], splits, is_paged=False)(*common, k, v, lengths)
    near(contiguous, expected(q, own_k, own_v, sink, k, v, lengths, allowed, IN_FLOAT64[mod]))
    keys, values, table = in_pages(k, v, lengths, page, generator)
    of_pages = program(pattern(), MODS[mod], splits, is_paged=True)(*common, keys, values, lengths, table)
    assert torch.equal(of_pages, contiguous)
