# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Attention of each token to itself and to a staircase of other keys under one softmax, forward and every gradient."""

import pytest
import torch
import weft
from weft.testing import masks, spans
from weft.testing.accuracy import hold
from weft.testing.attention import Domain, attention, repeat_heads
from weft.testing.judge import judge


@weft.program
def own_and_units(q, k, v, units, values, lower, upper, first, past):
    assert q.shape[2] == k.shape[2]  # so that the diagonal is the tokens' own
    own = weft.domain(k, weft.window(0, 0))
    before = weft.domain(units, weft.span(lower, upper, first, past))
    return weft.softmax(q, own, before) @ (v, values)


def formula(q, k, v, units, values, lower, upper, first, past, *, form):
    heads, length = q.shape[1:3]
    seen = repeat_heads(spans.span_mask(lower, upper, units.shape[2]), heads)
    own = Domain(k, v, masks.window(length, length, 0, 0))
    return attention(q, [own, Domain(units, values, seen)], form=form)[0]


def tables(kind, batch, heads, n, generator):
    """A span and its number of columns."""
    if kind == "random":
        m = int(torch.randint(1, 2 * n + 1, (1,), generator=generator))
        return spans.random_span(batch, heads, n, m, generator=generator)
    if kind == "empty":
        return spans.empty_span(batch, heads, n, n)
    joins = torch.rand(batch, heads, n, generator=generator) < {"strict": 0.0, "half": 0.5, "most": 0.95}.get(kind, 0.3)
    starts = sorted({int(x) for x in torch.randint(0, n, (4,), generator=generator)}) if kind == "packed" else []
    return spans.units_span(joins, starts)


FORMS = [
    (torch.float16, 64, 64, 1),
    (torch.float16, 128, 128, 2),
    (torch.bfloat16, 32, 64, 4),
    (torch.bfloat16, 72, 40, 1),
    (torch.float32, 64, 32, 2),
]
KINDS = ["strict", "half", "most", "packed", "random", "empty"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("dtype", "d", "dv", "group"), FORMS, ids=lambda x: str(x).removeprefix("torch."))
def test_accuracy(kind, dtype, d, dv, group, seed):
    generator = torch.Generator().manual_seed(seed)
    sizes = {"strict": [64, 113], "half": [63, 130], "most": [2, 65], "packed": [70], "random": [1, 100], "empty": [64]}
    for n in sizes[kind]:
        batch = 16 if n <= 2 else 2  # so that errors are enough to be compared by their squares' mean
        span = tables(kind, batch, 2, n, generator)
        m = span.first.shape[-1]

        def draw(n=n, m=m, span=span, batch=batch):
            shapes = {"q": (2 * group, n, d), "k": (2, n, d), "v": (2, n, dv), "units": (2, m, d), "values": (2, m, dv)}
            tensors = {
                name: torch.randn(batch, *shape, generator=generator).to(dtype) for name, shape in shapes.items()
            }
            # Of one or two tokens a gradient of scores is so many numbers times rows: channels share their errors.
            shared = ("q", "k", "units") if n <= 2 else ()
            return judge(own_and_units, formula, tensors | span._asdict(), parameters=shared, generator=generator)

        hold(draw)


@weft.program
def changed_scores(q, k, v, units, values, lower, upper, first, past, sink, slopes=None):
    assert q.shape[2] == k.shape[2]
    own = weft.domain(k, weft.causal() & weft.window(0, 0))
    before = weft.domain(units, weft.span(lower, upper, first, past))

    def mod(s, b, h, n, m):
        return weft.tanh(s) + 0.1 * (n - m) if slopes is None else weft.tanh(s) + slopes[h]

    return weft.softmax(q, own, before, score_mod=mod, sink=sink) @ (v, values)


@pytest.mark.parametrize("learned", [False, True], ids=["constants", "learned"])
def test_score_mod_and_sink(learned, seed):
    """Slopes have gradients, which are added up over blocks; constants leave the diagonal's gradients to rows."""
    generator = torch.Generator().manual_seed(seed)
    n, heads = 90, 4

    def plain(q, k, v, units, values, lower, upper, first, past, sink, slopes=None, *, form):
        def mod(s, b, h, n, m):
            return torch.tanh(s) + (0.1 * (n - m) if slopes is None else slopes[h])

        seen = repeat_heads(spans.span_mask(lower, upper, n), heads)
        domains = [Domain(k, v, masks.window(n, n, 0, 0)), Domain(units, values, seen)]
        return attention(q, domains, score_mod=mod, sink=sink, form=form)[0]

    def draw():
        shapes = {"q": (heads, n, 64), "k": (2, n, 64), "v": (2, n, 64), "units": (2, n, 64), "values": (2, n, 64)}
        tensors = {name: torch.randn(2, *shape, generator=generator).half() for name, shape in shapes.items()}
        tensors |= tables("packed", 2, 2, n, generator)._asdict()
        tensors["sink"] = torch.randn(heads, generator=generator)
        if learned:
            tensors["slopes"] = torch.randn(heads, generator=generator)
        return judge(changed_scores, plain, tensors, generator=generator)

    hold(draw)


def test_one_key_each(seed):
    """The diagonal alone: every row is its value, and its gradient goes there."""
    generator = torch.Generator().manual_seed(seed)

    @weft.program
    def itself(q, k, v):
        assert q.shape[2] == k.shape[2]
        return weft.softmax(q, weft.domain(k, weft.window(0, 0)), scale=2.0) @ (v,)

    q, k, v = (torch.randn(1, 2, 77, 64, generator=generator).half().requires_grad_() for _ in range(3))
    out = itself(q, k, v)
    upstream = torch.randn(out.shape, generator=generator).half()
    d_q, d_k, d_v = torch.autograd.grad(out, (q, k, v), upstream)
    assert torch.equal(out, v) and torch.equal(d_v, upstream)
    assert d_q.abs().max() < 1e-2 and d_k.abs().max() < 1e-2  # delta is summed in another order


def test_large_scores(seed):
    """Scores in the thousands, of which a row's own is the largest or not: weights stay what they are."""
    generator = torch.Generator().manual_seed(seed)

    def draw():
        shape = (1, 2, 100, 64)
        tensors = {
            name: (torch.randn(shape, generator=generator) * 100).half() for name in ("q", "k", "v", "units", "values")
        }
        tensors |= tables("half", 1, 2, 100, generator)._asdict()
        return judge(own_and_units, formula, tensors, gradients=False, input_scale=100, generator=generator)

    hold(draw)
