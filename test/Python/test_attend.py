# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""weft.attention.attend, forward and all gradients, over the sizes where kernels go wrong.

The size grid of `make test-full`, which ends in one table.
"""

import pytest
import torch
import weft
from grid_support import PATTERNS, Case, run
from weft.testing import Domain, attention, drawn, judge, masks

pytestmark = pytest.mark.slow

F16, BF16, F32 = torch.float16, torch.bfloat16, torch.float32
NAMES = {F16: "f16", BF16: "bf16", F32: "f32"}


def describe(value):
    if isinstance(value, Case):
        sizes = f"{value.n}x{value.m}-d{value.d}" + (f",{value.dv}" if value.dv else "")
        heads = "" if value.heads == value.kv_heads else f"-{value.heads}/{value.kv_heads}heads"
        return f"{sizes}{heads}-{NAMES[value.dtype]}" + (f"-x{value.factor:g}" if value.factor != 1 else "")
    return str(value)


# Sizes on the edges of tiles, N and M apart, with the patterns that treat them differently.
SMALL = [
    *((name, Case(n, m)) for name in ("full", "causal") for n, m in ((1, 1), (65, 65), (113, 203), (130, 40))),
    *((name, Case(n, m)) for name in ("window", "window of a partition") for n, m in ((63, 64), (200, 200), (90, 150))),
    ("window of a partition", Case(150, 90)),
    *((name, Case(130, 130)) for name in PATTERNS if PATTERNS[name].fits(130, 130)),
    *((name, Case(256, 256)) for name in ("neighbourhood", "random blocks")),
    *(("causal", Case(100, 120, d)) for d in (32, 72, 80, 96, 128, 192, 256)),
    ("causal", Case(100, 120, 192, 128)),
    ("full", Case(70, 70, 64, 32)),
    *(("causal", Case(100, 120, dtype=dtype)) for dtype in (BF16, F32)),
    ("causal", Case(100, 120, heads=6, kv_heads=2, batch=2)),
    ("window", Case(150, 150, heads=4, kv_heads=1, batch=2)),
    ("causal", Case(90, 120, factor=10.0)),
    ("causal", Case(90, 120, factor=100.0, dtype=BF16)),
]


@pytest.mark.parametrize(("name", "case"), SMALL, ids=describe)
def test_sizes(name, case, seed, held):
    generator = torch.Generator().manual_seed(seed)
    held(f"{name}, {NAMES[case.dtype]}", lambda: run(PATTERNS[name], case, generator))


LENGTHS = [(1, 1), (2, 2), (63, 63), (64, 64), (65, 65), (1, 65), (113, 203), (108, 256), (799, 3), (1023, 1024)]


def few(n, m):
    """What makes cases of few pairs many: a norm of few errors is a draw of few numbers."""
    return {"batch": 16} if min(n, m) < 4 else {}


GRID = [
    *(
        (name, Case(n, m, d, dtype=dtype, heads=2 if n < 500 else 1, kv_heads=2 if n < 500 else 1, **few(n, m)))
        for name in ("full", "causal", "window", "window of a partition")
        for n, m in LENGTHS
        for d in (64, 128)
        for dtype in (F16, BF16)
    ),
    *(
        (name, Case(n, m, dtype=dtype, **few(n, m)))
        for name in PATTERNS
        for n, m in ((1, 1), (63, 64), (65, 65), (113, 203), (203, 113), (256, 256), (799, 3))
        for dtype in (F16, BF16)
        if PATTERNS[name].fits(n, m)
    ),
    *(
        (name, Case(113, 203, d, dtype=dtype))
        for name in ("full", "causal", "window")
        for d in (32, 64, 72, 80, 96, 128, 192, 256)
        for dtype in (F16, BF16, F32)
    ),
    *(
        ("causal", Case(113, 203, d, factor=factor, dtype=dtype, gradients=factor < 100 or dtype == BF16))
        for d in (64, 128)
        for factor in (10.0, 100.0)
        for dtype in (F16, BF16)
    ),
]


@pytest.mark.parametrize(("name", "case"), GRID, ids=describe)
def test_grid(name, case, seed, held):
    generator = torch.Generator().manual_seed(seed)
    held(f"{name}, {NAMES[case.dtype]}", lambda: run(PATTERNS[name], case, generator))


def options_case(seed, held, inputs, attend, formula, dtype=F16, **judging):
    generator = torch.Generator().manual_seed(seed)
    held(
        "options of attend",
        lambda: judge(attend, formula, drawn(inputs, dtype, generator), generator=generator, **judging),
    )


@pytest.mark.parametrize("shape", [(2, 2, 90, 70), (1, 2, 90, 70), (2, 1, 1, 70), (90, 70)], ids=str)
def test_bias(shape, seed, held):
    def inputs(randn):
        return {name: randn(2, 2, n, 64) for name, n in (("q", 90), ("k", 70), ("v", 70))} | {"bias": randn(*shape)}

    def expected(q, k, v, bias, form):
        return attention(q, [Domain(k, v, masks.causal(90, 70))], bias=bias, form=form)[0]

    options_case(
        seed, held, inputs, lambda q, k, v, bias: weft.attention.attend(q, k, v, weft.causal(), bias=bias), expected
    )


def test_bias_comes_after_score_mod(seed, held):
    def inputs(randn):
        return {name: randn(1, 2, 70, 64) for name in ("q", "k", "v")} | {"bias": randn(2, 70, 70)}

    def attend(q, k, v, bias):
        return weft.attention.attend(q, k, v, score_mod=lambda s, b, h, n, m: 3.0 * weft.tanh(s), bias=bias, scale=0.2)

    def expected(q, k, v, bias, form):
        mod = lambda s, b, h, n, m: 3 * torch.tanh(s)  # noqa: E731
        return attention(q, [Domain(k, v)], score_mod=mod, bias=bias, scale=0.2, form=form)[0]

    options_case(seed, held, inputs, attend, expected)


def test_sink_of_rows_that_see_nothing(seed, held):
    """Causal with N > M: the first rows have only the sink."""

    def inputs(randn):
        tensors = {"q": randn(1, 4, 100, 64), "k": randn(1, 2, 60, 64), "v": randn(1, 2, 60, 64)}
        return tensors | {"sink": randn(4, dtype=F32)}

    def attend(q, k, v, sink):
        out, lse = weft.attention.attend(q, k, v, weft.causal(), sink=sink, return_lse=True)
        assert (out[:, :, :40] == 0).all()
        torch.testing.assert_close(lse[:, :, :40], sink.detach()[None, :, None].expand(1, 4, 40))
        return out, lse

    def expected(q, k, v, sink, form):
        return attention(q, [Domain(k, v, masks.causal(100, 60))], sink=sink, form=form)

    options_case(seed, held, inputs, attend, expected, names=("out", "lse"))


@pytest.mark.parametrize(
    "lengths", [([70, 0, 1, 90], [70, 0, 1, 90]), ([40, 1, 65], [90, 0, 30]), ([0, 0, 5], [0, 7, 9])]
)
@pytest.mark.parametrize("causal", [False, True], ids=["full", "causal"])
def test_packed_sequences(lengths, causal, seed, held):
    starts = [torch.tensor([0, *torch.tensor(each).cumsum(0)], dtype=torch.int32) for each in lengths]
    n, m = (int(each[-1]) for each in starts)

    def inputs(randn):
        return {"q": randn(1, 4, n, 64), "k": randn(1, 2, m, 64), "v": randn(1, 2, m, 64)}

    def attend(q, k, v):
        pattern = weft.causal() if causal else None
        return weft.attention.attend(q, k, v, pattern, cu_seqlens_q=starts[0], cu_seqlens_k=starts[1], return_lse=True)

    def expected(q, k, v, form):
        mask = masks.packed(*starts, masks.causal if causal else masks.full)
        return attention(q, [Domain(k, v, mask)], form=form)

    options_case(seed, held, inputs, attend, expected, names=("out", "lse"))


def test_strided_operands(seed, held):
    """Heads last in memory, every second row of a larger tensor, and gradients that are views."""

    def inputs(randn):
        q = randn(2, 130, 3, 64).transpose(1, 2)
        k, v = (randn(2, 3, 300, 64)[:, :, ::2] for _ in range(2))
        return {"q": q, "k": k, "v": v}

    def attend(q, k, v):
        return weft.attention.attend(q, k, v, weft.causal()).transpose(1, 2)

    def expected(q, k, v, form):
        return attention(q, [Domain(k, v, masks.causal(130, 150))], form=form)[0].transpose(1, 2)

    options_case(seed, held, inputs, attend, expected)


@pytest.mark.parametrize("precision", [None, "tf32"])
def test_precision_of_f32(precision, seed):
    generator = torch.Generator().manual_seed(seed)
    q, k, v = (torch.randn(1, 2, 120, 64, generator=generator) for _ in range(3))
    ref, _ = attention(q.double(), [Domain(k.double(), v.double())])
    out = weft.attention.attend(q, k, v, precision=precision)
    relative = float((out.double() - ref).norm() / ref.norm())
    assert relative < 2e-6 if precision is None else 2e-5 < relative < 2e-3
