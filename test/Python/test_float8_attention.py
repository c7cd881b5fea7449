# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Attention of 8-bit floats, forward, against float64 on the numbers that they are."""

import dataclasses
import random

import float8_sums
import pytest
import torch
import weft
from weft.compiler.ptxas import find_tool
from weft.testing import poisoned

E4M3, E5M2 = torch.float8_e4m3fn, torch.float8_e5m2


@dataclasses.dataclass(frozen=True)
class Case:
    """Sizes, a pattern and which pairs it is, and what else the call is given."""

    H: int
    Hkv: int
    N: int
    M: int
    D: int
    Dv: int
    pattern: object = None
    pairs: object = None
    descales: tuple = ("q_descale", "k_descale", "v_descale")
    more: dict = dataclasses.field(default_factory=dict)
    dtype: torch.dtype = E4M3


CASES = {
    "full": Case(2, 2, 65, 130, 64, 64),
    "causal, groups": Case(4, 2, 130, 130, 128, 128, weft.causal(), lambda n, m: m <= n),
    "window, no factors": Case(
        2, 1, 100, 100, 96, 96, weft.window(20, 3), lambda n, m: (m >= n - 20) & (m <= n + 3), ()
    ),
    "e5m2, one key head": Case(3, 1, 33, 70, 32, 64, dtype=E5M2),
    "values longer than keys": Case(1, 1, 64, 100, 64, 128, descales=("v_descale",)),
    "192 and 128": Case(1, 1, 70, 70, 192, 128, weft.causal(), lambda n, m: m <= n, ("k_descale",)),
    "256": Case(1, 1, 40, 70, 256, 256),
    "few channels": Case(2, 2, 20, 40, 16, 16, descales=("q_descale",)),
    "a scale": Case(2, 2, 20, 40, 64, 64, more={"scale": 0.05}),
    "few queries": Case(4, 1, 1, 200, 64, 64),
    "divided keys": Case(4, 1, 3, 300, 64, 64, more={"splits": 0}),
}


def drawn(case, B=2):
    """q, k, v, and a factor for each sequence and key head of each; scores spread as those of trained heads."""
    q, k, v = (
        (2 * torch.randn(B, heads, tokens, size)).to(case.dtype)
        for heads, tokens, size in ((case.H, case.N, case.D), (case.Hkv, case.M, case.D), (case.Hkv, case.M, case.Dv))
    )
    apart = torch.linspace(0.5, 2, B * case.Hkv)
    return q, k, v, {name: apart[torch.randperm(len(apart))].view(B, case.Hkv) for name in case.descales}


def aim(monkeypatch, target):
    """Has programs compiled for a target, and run by a device that runs it."""
    monkeypatch.setenv("WEFT_TARGET", target)
    if target == "sm_100a":
        monkeypatch.setenv("WEFT_DEVICE", "simulator:sm_100a")


#: how many products an instruction of a target whose sums keep about 14 bits adds at once
STEPS = {"sm_89": 16, "sm_90a": 32}


def reference(case, q, k, v, factors, sink=None, bias=None, return_lse=False, product=None):
    """softmax(scale · (q_descale q) (k_descale k)ᵀ + bias) (v_descale v), with a logit more for each head;
    ``product`` multiplies queries and keys."""
    group = case.H // case.Hkv

    def factor(name):
        each = factors.get(name, torch.ones(q.shape[0], case.Hkv)).double()
        return each.repeat_interleave(group, 1)[:, :, None, None]

    k, v = k.repeat_interleave(group, 1), v.repeat_interleave(group, 1)
    scores = product(q, k) if product else q.double() @ k.double().mT
    scores = scores * factor("q_descale") * factor("k_descale") * case.more.get("scale", case.D**-0.5)
    if bias is not None:
        scores = scores + bias.double()
    if case.pairs is not None:
        seen = case.pairs(torch.arange(case.N)[:, None], torch.arange(case.M)[None])
        scores = scores.masked_fill(~seen, -torch.inf)
    lse = torch.logsumexp(scores, -1)
    if sink is not None:
        lse = torch.logaddexp(lse, sink.double()[:, None].expand_as(lse))
    out = torch.exp(scores - lse[..., None]) @ v.double() * factor("v_descale")
    return (out, lse) if return_lse else out


def narrow_scores(step):
    """Of instructions for 8-bit floats that add so many at once; channels that fill none are float16, and added in
    float32."""

    def product(q, k):
        whole = q.shape[-1] // float8_sums.STEP * float8_sums.STEP
        rest = q[..., whole:].double() @ k[..., whole:].double().mT
        return float8_sums.product(q[..., :whole], k[..., :whole], step=step) + rest if whole else rest

    return product


def references(target, *args, **options):
    """Scores of float32's sums, or, on sm_89 and sm_90a, of those of the instructions for 8-bit floats, of about 14
    bits: which of both a kernel has is for the compiler to say (test_kernel)."""
    yield reference(*args, **options)
    if target in STEPS:
        yield reference(*args, **options, product=narrow_scores(STEPS[target]))


@pytest.mark.parametrize("target", ["sm_80", "sm_89", "sm_90a", "sm_100a"])
@pytest.mark.parametrize("name", CASES)
def test_attend(seed, monkeypatch, name, target):
    torch.manual_seed(seed)
    aim(monkeypatch, target)
    case = CASES[name]
    q, k, v, factors = drawn(case)
    with poisoned():
        out = weft.attention.attend(q, k, v, case.pattern, **factors, **case.more)
    assert out.dtype == torch.bfloat16
    # A result is rounded to bfloat16, and the weights, below 1, to float16.
    largest = float(v.float().abs().max()) * max(float(x.max()) for x in factors.values() or [torch.ones(1)])

    def apart(exact):
        """By how many times what is allowed."""
        return ((out.double() - exact).abs() / (exact.abs() * 2**-8 + largest * 2**-9)).max()

    assert min(apart(each) for each in references(target, case, q, k, v, factors)) <= 1
    # Factors of other sequences and heads are seen.
    for each in factors:
        for axis in (0, 1)[: 1 + (case.Hkv > 1)]:
            others = factors | {each: factors[each].flip(axis)}
            assert all(apart(other) > 4 for other in references(target, case, q, k, v, others)), (each, axis)


def laid(x, how):
    """The same numbers: tokens before heads, or rows that begin off a multiple of 16 bytes with NaN around them."""
    if how == "tokens first":
        return x.transpose(1, 2).contiguous().transpose(1, 2)
    if how == "padded":
        wide = torch.full((*x.shape[:3], x.shape[3] + 5), torch.nan).to(x.dtype)
        wide[..., 3:-2] = x
        return wide[..., 3:-2]
    return x


@pytest.mark.parametrize("target", ["sm_80", "sm_89", "sm_90a", "sm_100a"])
def test_random_calls(seed, monkeypatch, target):
    """Any sizes, layouts, sinks, biases and divisions of keys; the LSE too."""
    aim(monkeypatch, target)
    torch.manual_seed(seed)
    draw = random.Random(seed)
    patterns = {None: None, "causal": (weft.causal(), lambda n, m: m <= n)}
    patterns["window"] = (weft.window(30, 4), lambda n, m: (m >= n - 30) & (m <= n + 4))
    for _ in range(8):
        Hkv, M = draw.choice([1, 2, 3]), draw.choice([1, 7, 64, 100, 129, 200])
        pattern, pairs = patterns[draw.choice(list(patterns))] or (None, None)
        N = draw.choice([1, 5, 65, 130]) if pattern is None else M
        D = draw.choice([8, 16, 24, 32, 48, 72, 96, 128, 160])
        names = [name for name in ("q_descale", "k_descale", "v_descale") if draw.random() < 0.5]
        H, Dv, dtype = Hkv * draw.choice([1, 2, 4]), draw.choice([16, 64, 128]), draw.choice([E4M3, E5M2])
        case = Case(H, Hkv, N, M, D, Dv, pattern, pairs, tuple(names), dtype=dtype)
        q, k, v, factors = drawn(case)
        how = draw.choice(["tokens first", "padded", "as it is"])
        sink, bias = (
            (torch.randn(H) if draw.random() < 0.4 else None),
            (torch.randn(N, M) if draw.random() < 0.4 else None),
        )
        more = {"sink": sink, "bias": bias, "splits": draw.choice([None, None, 0, 3])}
        with poisoned():
            operands = [laid(x, how) for x in (q, k, v)]
            out, lse = weft.attention.attend(*operands, pattern, return_lse=True, **factors, **more)
        largest = float(v.float().abs().max()) * max(float(x.max()) for x in factors.values() or [torch.ones(1)])
        assert any(
            ((out.double() - exact).abs() <= exact.abs() * 2**-8 + largest * 2**-9).all()
            and torch.allclose(lse.double(), exact_lse, rtol=1e-5, atol=2e-5)
            for exact, exact_lse in references(target, case, q, k, v, factors, sink, bias, return_lse=True)
        ), (case, how, more)


def test_programs_and_packed_sequences(seed, monkeypatch):
    torch.manual_seed(seed)
    monkeypatch.setenv("WEFT_TARGET", "sm_90a")

    @weft.program
    def packed(q, k, v, starts):
        return weft.softmax(q, k, weft.causal(), cu_seqlens=starts) @ v

    lengths = [40, 0, 1, 70]
    q, k, v = (torch.randn(1, 2, sum(lengths), 64).to(E4M3) for _ in range(3))
    starts = torch.tensor([0, *torch.tensor(lengths).cumsum(0)], dtype=torch.int32)
    with poisoned():
        out = packed(q, k, v, starts)
    assert out.dtype == torch.bfloat16
    for first, past in zip(starts[:-1].tolist(), starts[1:].tolist(), strict=True):
        scores = q[:, :, first:past].double() @ k[:, :, first:past].double().mT / 8
        scores = scores.masked_fill(torch.ones(past - first, past - first).triu(1).bool(), -torch.inf)
        exact = torch.softmax(scores, -1) @ v[:, :, first:past].double()
        torch.testing.assert_close(out[:, :, first:past].double(), exact, rtol=2**-8, atol=2**-7)


@pytest.mark.parametrize("target", ["sm_80", "sm_90a", "sm_100a"])
def test_decode(seed, monkeypatch, target):
    """Queries of 8 bits over a cache of them, in pages."""
    torch.manual_seed(seed)
    aim(monkeypatch, target)
    pages, table = torch.randn(2, 5, 16, 2, 64).to(E4M3), torch.tensor([[3, 1], [0, 4]], dtype=torch.int32)
    q, lengths, scale = (
        torch.randn(2, 4, 1, 64).to(E4M3),
        torch.tensor([20, 31], dtype=torch.int32),
        torch.rand(2) + 0.5,
    )
    with poisoned():
        out = weft.attention.decode(q, *pages, block_table=table, seqused_k=lengths, k_scale=scale, v_scale=scale)
    assert out.dtype == torch.bfloat16
    for b, length in enumerate(lengths.tolist()):
        rows = (x[table[b].long()].double().flatten(0, 1)[:length].permute(1, 0, 2) for x in pages)
        k, v = ((x * scale.double()[:, None, None]).repeat_interleave(2, 0) for x in rows)
        exact = torch.softmax(q[b].double() @ k.mT / 8, -1) @ v
        torch.testing.assert_close(out[b].double(), exact, rtol=2**-8, atol=2**-7)


def test_kernel(monkeypatch):
    """Where instructions multiply 8-bit floats, queries and keys stay so: none converts them."""

    @weft.program
    def attention(q, k, v):
        return weft.softmax(q, k) @ v

    traced = attention.declare("q:fp8e4nv[B,H,N,128]:16, k:fp8e4nv[B,H,M,128]:16, v:fp8e4nv[B,H,M,128]:16")
    from weft.programs.compiled import stages

    @weft.program
    def converted(q, k, v):
        return weft.softmax(q.to(torch.float16), k.to(torch.float16)) @ v.to(torch.float16)

    ptx = {target: stages(traced, "ptx", target, False) for target in ("sm_80", "sm_89", "sm_90a", "sm_120")}
    for target in ("sm_89", "sm_120"):
        assert "mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32" in ptx[target], target
    kernel = ptx["sm_90a"][ptx["sm_90a"].index(".entry attend") :]
    assert "wgmma.mma_async.sync.aligned.m64n128k32.f32.e4m3.e4m3" in kernel
    assert "cvt.rn.f16x2.e4m3x2" not in kernel
    assert "e4m3.e4m3" not in ptx["sm_80"]
    signature = "q:fp8e4nv[B,H,N,128]:16, k:fp8e4nv[B,H,M,128]:16, v:fp8e4nv[B,H,M,128]:16"
    assert "e4m3.e4m3" not in stages(converted.declare(signature), "ptx", "sm_90a", False), (
        "sums of float32 are asked for"
    )


@pytest.mark.skipif(not (find_tool("ptxas") and find_tool("nvdisasm")), reason="ptxas or nvdisasm was not found")
@pytest.mark.parametrize("D, most", [(64, 390), (128, 426)])
def test_interior_loop(D, most):
    """Machine instructions for 64 rows and 128 keys, of which products with keys are half as many as of 16 bits."""
    from weft.compiler.ptxas import figures
    from weft.cycles.flow import loops_of
    from weft.programs.compiled import compiled

    @weft.program
    def attention(q, k, v):
        return weft.softmax(q, k) @ v

    traced = attention.declare(", ".join(f"{x}:fp8e4nv[B,H,N,{D}]:16" for x in "qkv"))
    ptx = compiled(traced, "sm_90a", differentiate=False).ptx
    loop = min((each for each in loops_of(ptx, "sm_90a")["attend"] if each.matrix), key=lambda each: each.count)
    assert loop.classes["QGMMA"] == D // 32
    assert loop.count <= most, loop.classes
    assert figures(ptx, "sm_90a", ["attend"])["attend"].spill_bytes == 0


def eights(*shape):
    return torch.ones(*shape).to(E4M3)


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda q: weft.attention.attend(q, q.half(), q.half()), "of the queries' type fp8e4nv, but got fp16"),
        (lambda q: weft.attention.attend(q, q, q.half()), "expected values of the queries' type fp8e4nv"),
        (lambda q: weft.attention.attend(q, q.float().to(E5M2), q), "expected keys of the queries' type"),
        (
            lambda q: weft.attention.attend(*[q.half()] * 3, q_descale=torch.ones(1, 2)),
            "expected 'q_descale' with 8-bit floats, but got fp16",
        ),
        (
            lambda q: weft.attention.attend(q, q, q, k_descale=torch.ones(2)),
            r"expected 'k_descale' \[B, Hkv\] of float32",
        ),
        (
            lambda q: weft.attention.attend(q, q, q, v_descale=torch.ones(1, 3)),
            r"expected 'v_descale' \[B, Hkv\], for each sequence and key head",
        ),
    ],
)
def test_refused(call, message):
    with pytest.raises((weft.Error, ValueError, TypeError), match=message):
        call(eights(1, 2, 32, 32))


def test_no_gradient():
    q = eights(1, 2, 32, 32)
    with pytest.raises(weft.Error, match="expected 'q' of fp8e4nv that asks for no gradient"):
        weft.attention.attend(*(q.clone().requires_grad_() for _ in range(3))).sum().backward()
