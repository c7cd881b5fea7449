# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""The generated backward of attention, feature by feature at small sizes, held against float64."""

import dataclasses
import math

import pytest
import torch
import weft
from weft.attention import attend
from weft.testing import hold, masks
from weft.testing.attention import Domain, attention
from weft.testing.judge import drawn, judge
from weft.testing.plans import launches

HALF = torch.float16


def held(program, formula, inputs, dtype=HALF, few=()):
    """Fresh inputs by ``inputs(randn)``; the output and every gradient by the rule.

    Of gradients of a ``few`` numbers the largest error alone: which of two norms of two errors is larger is chance.
    """

    def draw():
        judged = judge(program, formula, drawn(inputs, dtype))
        for name in few:
            failures = tuple(text for text in judged[name].failures if not text.startswith("relative error"))
            judged[name] = dataclasses.replace(judged[name], relative_limit=math.inf, failures=failures)
        return judged

    hold(draw)


def plain(mask=None, **options):
    """The formula over one domain."""
    return lambda q, k, v, form: attention(q, [Domain(k, v, mask)], form=form, **options)[0]


def qkv(B, H, N, D, *, Hkv=None, M=None, Dv=None):
    Hkv, M, Dv = Hkv or H, M or N, Dv or D
    return lambda randn: {"q": randn(B, H, N, D), "k": randn(B, Hkv, M, D), "v": randn(B, Hkv, M, Dv)}


@pytest.mark.parametrize(
    "dtype, sizes",
    [
        (HALF, (1, 2, 150, 64)),
        (torch.bfloat16, (2, 1, 65, 128)),
        (torch.float32, (1, 1, 70, 32)),
        (HALF, (1, 1, 63, 72)),
        (HALF, (1, 1, 40, 256)),
        (HALF, (1, 1, 1, 64)),
    ],
)
def test_sizes(dtype, sizes):
    N = sizes[2]
    held(lambda q, k, v: attend(q, k, v, weft.causal()), plain(masks.causal(N, N)), qkv(*sizes), dtype)


def test_groups_lengths_and_head_sizes():
    """Four queries share a key head; lengths and head sizes differ."""
    inputs = qkv(2, 4, 70, 32, Hkv=1, M=141, Dv=96)
    held(lambda q, k, v: attend(q, k, v, weft.causal()), plain(masks.causal(70, 141)), inputs)


def test_rows_that_see_nothing():
    """More queries than keys, aligned at the end: the first rows have no key, and no gradient."""
    inputs = qkv(1, 2, 90, 64, M=20)
    held(lambda q, k, v: attend(q, k, v, weft.causal()), plain(masks.causal(90, 20)), inputs)


DISTANCE = torch.arange(150)[:, None] - torch.arange(150)[None, :]


@pytest.mark.parametrize(
    "pattern, mask",
    [
        (lambda: weft.window(40, 3), (DISTANCE <= 40) & (DISTANCE >= -3)),
        (lambda: weft.causal() & weft.strided(4), (DISTANCE >= 0) & (DISTANCE % 4 == 0)),
        (lambda: weft.mask(lambda b, h, n, m: (n * m) % 3 != 1), None),
        (lambda: weft.block_window(49), torch.arange(150)[:, None] // 49 == torch.arange(150)[None, :] // 49),
        (lambda: weft.block_window(100), torch.arange(150)[:, None] // 100 == torch.arange(150)[None, :] // 100),
    ],
    ids=["window", "strided", "mask", "block window", "long block window"],
)
def test_patterns(pattern, mask):
    if mask is None:
        mask = (torch.arange(150)[:, None] * torch.arange(150)[None, :]) % 3 != 1
    held(lambda q, k, v: attend(q, k, v, pattern()), plain(mask), qkv(1, 1, 150, 64))


N = 100


def with_capture(*shape, dtype=None):
    def inputs(randn):
        x = randn(*shape, dtype=dtype) if dtype else randn(*shape)
        return {**qkv(2, 2, N, 64)(randn), "x": x}

    return inputs


@pytest.mark.parametrize(
    "shape, dtype",
    [((2, 2, N, N), torch.float32), ((2, N, N), HALF), ((2, 1, 1, N), torch.float32), ((N, 1), torch.float32)],
    ids=["every pair", "summed over batches", "each key", "each query"],
)
def test_bias(shape, dtype):
    def formula(q, k, v, x, form):
        return attention(q, [Domain(k, v, masks.causal(N, N))], bias=x, form=form)[0]

    held(lambda q, k, v, x: attend(q, k, v, weft.causal(), bias=x), formula, with_capture(*shape, dtype=dtype))


def test_slope_of_a_head():
    def program(q, k, v, x):
        return attend(q, k, v, weft.causal(), score_mod=lambda s, b, h, n, m: s + x[h] * (m - n))

    def formula(q, k, v, x, form):
        mod = lambda s, b, h, n, m: s + x[h] * (m - n)  # noqa: E731
        return attention(q, [Domain(k, v, masks.causal(N, N))], score_mod=mod, form=form)[0]

    held(program, formula, with_capture(2, dtype=torch.float32), few=("d_x",))


def test_table_of_distances():
    """Indices that are no pair's own: the sums are made in fixed point."""

    def program(q, k, v, x):
        return attend(q, k, v, weft.causal(), score_mod=lambda s, b, h, n, m: s + x[h, n - m])

    def formula(q, k, v, x, form):
        mod = lambda s, b, h, n, m: s + x[h, (n - m).clamp(min=0)]  # noqa: E731
        return attention(q, [Domain(k, v, masks.causal(N, N))], score_mod=mod, form=form)[0]

    held(program, formula, with_capture(2, N, dtype=torch.float32))


def test_soft_cap():
    def program(q, k, v):
        return attend(q, k, v, weft.causal(), score_mod=lambda s, b, h, n, m: weft.tanh(s / 2) * 2)

    formula = plain(masks.causal(N, N), score_mod=lambda s, b, h, n, m: torch.tanh(s / 2) * 2)
    held(program, formula, qkv(1, 2, N, 64))


def test_score_mod_of_wide_heads():
    """Heads of 160 channels are two tiles, whose rows are selected by a sum of many terms."""
    N = 7

    def fn(q, k, v):
        def mod(s, b, h, n, m):
            t = s - 0.1 * s**2
            return weft.where((n + m) % 3 == 0, t, 0.5 * t)

        return attend(q, k, v, score_mod=mod)

    def mod(s, b, h, n, m):
        t = s - 0.1 * s**2
        return torch.where((n + m) % 3 == 0, t, 0.5 * t)

    held(fn, plain(score_mod=mod), qkv(1, 1, N, 160, Dv=128))


def test_sink():
    def formula(q, k, v, x, form):
        return attention(q, [Domain(k, v, masks.causal(N, N))], sink=x, form=form)[0]

    held(
        lambda q, k, v, x: attend(q, k, v, weft.causal(), sink=x),
        formula,
        with_capture(2, dtype=torch.float32),
        few=("d_x",),
    )


def test_packed_sequences():
    starts = torch.tensor([0, 30, 30, 95, N], dtype=torch.int32)
    of = torch.bucketize(torch.arange(N), starts[1:].long(), right=True)

    def program(q, k, v):
        return attend(q, k, v, weft.causal(), cu_seqlens_q=starts, cu_seqlens_k=starts)

    held(program, plain(masks.causal(N, N) & (of[:, None] == of[None, :])), qkv(1, 2, N, 64))


def test_two_domains():
    @weft.program
    def program(q, k, v, k2, v2):
        return weft.softmax(q, weft.domain(k, weft.causal()), weft.domain(k2, weft.full())) @ (v, v2)

    def formula(q, k, v, k2, v2, form):
        return attention(q, [Domain(k, v, masks.causal(N, N)), Domain(k2, v2)], form=form)[0]

    def inputs(randn):
        return {**qkv(1, 2, N, 64)(randn), "k2": randn(1, 2, 20, 64), "v2": randn(1, 2, 20, 64)}

    held(program, formula, inputs)


def test_the_same_bits_every_time():
    def gradients():
        a, b, c = (x.detach().requires_grad_() for x in tensors)
        out = attend(a, b, c, weft.causal(), score_mod=lambda s, i, h, n, m: s + table[n - m])
        return torch.autograd.grad(out, [a, b, c, table], seed)

    tensors = [torch.randn(1, 4, N, 32).half() for _ in range(2)]
    tensors.append(torch.randn(1, 4, N, 32).half())
    table = torch.randn(N, requires_grad=True)
    seed = torch.randn(1, 4, N, 32).half()
    first = gradients()
    for _ in range(5):
        assert all(torch.equal(x, y) for x, y in zip(first, gradients(), strict=True))


SIZES = ((1, 8, 70, 32), (2, 6, 40, 32), (1, 7, 33, 32), (1, 12, 131, 32))


@weft.program
def of_several_sizes(q0, k0, v0, q1, k1, v1, q2, k2, v2, q3, k3, v3):
    given = ((q0, k0, v0), (q1, k1, v1), (q2, k2, v2), (q3, k3, v3))
    return tuple(weft.softmax(q, k, weft.causal()) @ v for q, k, v in given)


def test_attentions_of_several_sizes_are_one_launch():
    """Heads of which 8, 2, 1 and 4 stand side by side."""

    def formula(*tensors, form):
        given = zip(*[iter(tensors)] * 3, strict=True)
        return tuple(plain(masks.causal(q.shape[2], q.shape[2]))(q, k, v, form) for q, k, v in given)

    def inputs(randn):
        return {f"{name}{i}": randn(*sizes) for i, sizes in enumerate(SIZES) for name in "qkv"}

    hold(lambda: judge(of_several_sizes, formula, drawn(inputs, HALF), names=[f"out{i}" for i in range(len(SIZES))]))
    found = launches(of_several_sizes, *drawn(inputs, HALF).values())
    assert {part: len(names) for part, names in found.items()} == {"forward": 1, "backward": 3}
