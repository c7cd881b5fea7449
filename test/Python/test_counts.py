# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Domains of which only a count of keys is in use, known on the device: forward and every gradient."""

import pytest
import torch
import weft
from weft.testing import masks
from weft.testing.accuracy import hold
from weft.testing.attention import Domain, attention, repeat_heads
from weft.testing.judge import judge


@weft.program
def one_domain(q, k, v, count, *, pattern):
    return weft.softmax(q, weft.domain(k, pattern, count=count)) @ (v,)


@weft.program
def two_domains(q, k, v, count, k2, v2, count2):
    first, second = weft.domain(k, weft.causal(), count=count), weft.domain(k2, count=count2)
    return weft.softmax(q, first, second) @ (v, v2)


def aligned(mask, n, count, heads):
    """[B, H, N, M]: the mask of ``n`` queries and as many keys as each count says, aligned as with that many."""
    batch, kv, m = *count.shape, mask.m
    whole = torch.zeros(batch, kv, n, m, dtype=torch.bool)
    for b in range(batch):
        for h in range(kv):
            keys = int(count[b, h])
            whole[b, h, :, :keys] = mask(n, keys)
    return repeat_heads(whole, heads)


class Mask:
    def __init__(self, dense, m):
        self.dense, self.m = dense, m

    def __call__(self, n, m):
        return self.dense(n, m)


CASES = {
    "full": (None, masks.full),
    "causal": (weft.causal(), masks.causal),
    "window": (weft.window(20, 5), lambda n, m: masks.window(n, m, 20, 5)),
}


def counts(batch, heads, m, generator):
    """Some keys, all, none."""
    drawn = torch.randint(0, m + 1, (batch, heads), generator=generator, dtype=torch.int32)
    drawn[0, 0], drawn[-1, -1] = m, 0
    return drawn


@pytest.mark.parametrize("name", CASES)
def test_one_domain(name, seed):
    pattern, dense = CASES[name]
    generator = torch.Generator().manual_seed(seed)
    batch, heads, kv, n, m = 3, 4, 2, 100, 150
    count = counts(batch, kv, m, generator)

    def program(q, k, v, count):
        return one_domain(q, k, v, count, pattern=pattern)

    def formula(q, k, v, count, *, form):
        mask = aligned(Mask(dense, m), n, count, heads)
        return attention(q, [Domain(k, v, mask)], form=form)[0]

    def draw():
        shapes = {"q": (heads, n, 64), "k": (kv, m, 64), "v": (kv, m, 32)}
        tensors = {key: torch.randn(batch, *size, generator=generator).half() for key, size in shapes.items()}
        return judge(program, formula, tensors | {"count": count}, generator=generator)

    hold(draw)


def test_two_domains(seed):
    generator = torch.Generator().manual_seed(seed)
    batch, heads, n, m, m2 = 2, 2, 70, 90, 40
    count, count2 = counts(batch, heads, m, generator), counts(batch, heads, m2, generator)

    def formula(q, k, v, count, k2, v2, count2, *, form):
        mask = aligned(Mask(masks.causal, m), n, count, heads)
        return attention(q, [Domain(k, v, mask), Domain(k2, v2, None, count2)], form=form)[0]

    def draw():
        own = [torch.randn(batch, heads, size, 32, generator=generator).bfloat16() for size in (n, m, m, m2, m2)]
        tensors = {"q": own[0], "k": own[1], "v": own[2], "count": count, "k2": own[3], "v2": own[4], "count2": count2}
        return judge(two_domains, formula, tensors, generator=generator)

    hold(draw)
