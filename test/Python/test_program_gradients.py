# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""The generated backward of each op, by norm, against the same formula in float64."""

import pytest
import torch
import weft

B, H, N, D = 1, 2, 70, 64


def attention(q, k, v, mask=None, mod=None, sink=None):
    scores = q @ k.transpose(-1, -2) / D**0.5
    if mod:
        scores = mod(scores)
    if mask is not None:
        scores = scores.masked_fill(~mask, -torch.inf)
    if sink is not None:
        scores = torch.cat([scores, sink.view(1, H, -1, 1).expand(*scores.shape[:3], 1)], -1)
    return scores.softmax(-1)[..., : k.shape[2]] @ v, torch.logsumexp(scores, -1)


def causal():
    return torch.ones(N, N).tril().bool()


def parity():
    """Whether a key lies an odd number of tokens away."""
    return (torch.arange(N)[:, None] - torch.arange(N)[None]).abs() % 2


def turned(x, window):
    """Rotary positions that count from 0 in each window."""
    position = (torch.arange(x.shape[2]) % window).double()[:, None]
    angle = position * 10000.0 ** (-torch.arange(0, D, 2).double() / D)
    even, odd = x[..., 0::2], x[..., 1::2]
    pairs = [even * angle.cos() - odd * angle.sin(), even * angle.sin() + odd * angle.cos()]
    return torch.stack(pairs, -1).flatten(-2)


def convolved(v, taps):
    """Centred: tap j takes the row j - (K-1)/2 before."""
    padded = torch.nn.functional.pad(v, (0, 0, 1, 1))
    weights = taps.view(3, 1, H, 1, D)
    return sum(weights[j] * padded[:, :, 2 - j : 2 - j + v.shape[2]] for j in range(3))


def sema(q, k, v, taps):
    window = torch.arange(N) // 16
    own = attention(turned(q, 16), turned(k, 16), v, window[:, None] == window[None])[0]
    return own + v.mean(2, keepdim=True) + convolved(v, taps)


def program_sema(q, k, v, taps):
    q, k = weft.rope(q, window=16), weft.rope(k, window=16)
    return (weft.softmax(q, k, weft.block_window(16)) + weft.mean() + weft.toeplitz(taps, centred=True)) @ v


def capped(q, k, v, slopes):
    def mod(s, b, h, n, m):
        return 5.0 * weft.tanh(s / 5.0) + slopes[h] * ((n + m) % 2)

    return weft.softmax(q, k, weft.causal(), score_mod=mod) @ v


def grouped(q, k, v):
    k, v = k.repeat_interleave(2, 1), v.repeat_interleave(2, 1)
    return attention(q, k, v, causal())[0] + v.mean(2, keepdim=True)


row = (B, H, N, D)
CASES = {
    "softmax": (
        lambda q, k, v: weft.softmax(q, k, weft.causal()) @ v,
        lambda q, k, v: attention(q, k, v, causal())[0],
        [row] * 3,
    ),
    "one tensor thrice": (
        lambda x: weft.softmax(x, x, weft.causal()) @ x,
        lambda x: attention(x, x, x, causal())[0],
        [row],
    ),
    "groups of heads": (
        lambda q, k, v: (weft.softmax(q, k, weft.causal()) + weft.mean()) @ v,
        grouped,
        [(B, 4, N, D), row, row],
    ),
    "gate": (
        lambda q, k, v, g: weft.diag(g) @ weft.softmax(q, k) @ v,
        lambda q, k, v, g: g * attention(q, k, v)[0],
        [row] * 4,
    ),
    "differential": (
        lambda q, k, u, w, v, g: (weft.softmax(q, k) - weft.diag(g) @ weft.softmax(u, w, weft.causal())) @ v,
        lambda q, k, u, w, v, g: attention(q, k, v)[0] - g * attention(u, w, v, causal())[0],
        [row] * 5 + [(B, H, N, 1)],
    ),
    "numbers times mixers": (
        lambda q, k, v, taps: (weft.softmax(q, k) * 2 - weft.mean() / 4 + 0.5 * -weft.toeplitz(taps, centred=True)) @ v,
        lambda q, k, v, taps: 2 * attention(q, k, v)[0] - v.mean(2, keepdim=True) / 4 - convolved(v, taps) / 2,
        [row] * 3 + [(3, H * D)],
    ),
    "means": (
        lambda v: (weft.mean() + weft.mean(causal=True)) @ v,
        lambda v: v.mean(2, keepdim=True) + v.cumsum(2) / torch.arange(1, N + 1).view(1, 1, -1, 1),
        [row],
    ),
    "sema": (program_sema, sema, [row] * 3 + [(3, H * D)]),
    "score_mod": (
        capped,
        lambda q, k, v, slopes: attention(
            q, k, v, causal(), mod=lambda s: 5 * torch.tanh(s / 5) + slopes.view(1, H, -1, 1) * parity()
        )[0],
        [row] * 3 + [(H,)],
    ),
    "map": (
        lambda x, y: weft.silu(x) * y + x,
        lambda x, y: torch.nn.functional.silu(x) * y + x,
        [row, (B, H, 1, D)],
    ),
    "rms_norm": (
        lambda x, g: weft.rms_norm(x, g),
        lambda x, g: x * g[None, :, None] / torch.sqrt((x * x).mean(-1, keepdim=True) + 1e-6),
        [row, (H, D)],
    ),
}

CALLS = {
    "lse": (
        lambda q, k, v: weft.attention.attend(q, k, v, weft.causal(), return_lse=True),
        lambda q, k, v: attention(q, k, v, causal()),
        [row] * 3,
    ),
    "sink": (
        lambda q, k, v, sink: weft.attention.attend(q, k, v, weft.causal(), sink=sink),
        lambda q, k, v, sink: attention(q, k, v, causal(), sink=sink)[0],
        [row] * 3 + [(H,)],
    ),
    "bias": (
        lambda q, k, v, bias: weft.attention.attend(q, k, v, weft.causal(), bias=bias),
        lambda q, k, v, bias: attention(q, k, v, causal(), mod=lambda s: s + bias)[0],
        [row] * 3 + [(B, H, N, N)],
    ),
}


def held(run, formula, shapes, seed, types=()):
    """Results and gradients within 1e-3 by norm: fp16 rounds to 2^-11, which is 5e-4."""
    generator = torch.Generator().manual_seed(seed)
    drawn = [torch.randn(*shape, generator=generator) for shape in shapes]
    tensors = [x if x.ndim == 1 else x.half() for x in drawn]
    if types:
        tensors = [x.to(each) for x, each in zip(drawn, types, strict=True)]
    mine = [x.clone().requires_grad_() for x in tensors]
    # What a head has one number of, the exact side has for each row: the gradient is their sum, which may be small.
    byrow = [x[:, None].expand(H, N) if x.ndim == 1 else x for x in tensors]
    exact = [x.double().clone().requires_grad_() for x in byrow]
    results, wanted = run(*mine), formula(*exact)
    if isinstance(wanted, torch.Tensor):
        results, wanted = (results,), (wanted,)
    gradients = [torch.randn(x.shape, generator=generator).to(x.dtype) for x in results]
    found = [*results, *torch.autograd.grad(results, mine, gradients)]
    expected = [*wanted, *torch.autograd.grad(wanted, exact, [g.double() for g in gradients])]
    for i, (x, y) in enumerate(zip(found, expected, strict=True)):
        whole = y.sum(1) if x.ndim == 1 else y
        error = ((x.double() - whole).norm() / y.norm()).item()
        # A norm over thousands of elements is steady; one over two numbers is a draw: three times as much.
        assert error < (3e-3 if x.ndim == 1 else 1e-3), f"tensor {i} of {len(found)}: {error:.1e}"


@pytest.mark.parametrize("case", CASES)
def test_programs(case, seed):
    function, formula, shapes = CASES[case]
    held(weft.program(function), formula, shapes, seed)


@pytest.mark.parametrize("case", CALLS)
def test_calls(case, seed):
    function, formula, shapes = CALLS[case]
    held(function, formula, shapes, seed)


@pytest.mark.parametrize(
    ("pattern", "mask", "wide"),
    [
        (weft.causal(), causal(), D),
        (weft.block_window(16), torch.arange(N)[:, None] // 16 == torch.arange(N)[None] // 16, D),
        (weft.causal(), causal(), 320),
    ],
    ids=["causal", "windows", "wide values"],
)
@pytest.mark.parametrize("deterministic", [True, False])
@pytest.mark.parametrize("types", [(torch.float32, torch.float16), (torch.float16, torch.float32)])
def test_values_of_another_type(types, pattern, mask, wide, deterministic, seed):
    """Each product of the backward has the type of what it is made with: dv that of values, dq and dk of the others."""

    def function(q, k, v):
        return weft.softmax(q, k, pattern, deterministic=deterministic) @ v

    def formula(q, k, v):
        return attention(q, k, v, mask)[0]

    few, many = types
    held(weft.program(function), formula, [row, row, (B, H, N, wide)], seed, [few, few, many])


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16])
def test_one_gain_for_all_heads(dtype, seed):
    """A gain [D] is that gain [H, D] of every head, and its gradient the sum over heads."""
    generator = torch.Generator().manual_seed(seed)
    q, k, v, gradient = (torch.randn(*row, generator=generator).to(dtype) for _ in range(4))
    gain = torch.randn(D, generator=generator)

    @weft.program
    def normed(q, k, v, gain):
        return weft.softmax(weft.rms_norm(q, gain), weft.rms_norm(k, gain), weft.causal()) @ v

    leaves = [x.clone().requires_grad_() for x in (q, k, v, gain)]
    found = torch.autograd.grad(normed(*leaves), leaves, gradient)
    doubles = [x.detach().double().requires_grad_() for x in leaves]
    turned = (x * doubles[3] * (x.square().mean(-1, keepdim=True) + 1e-6).rsqrt() for x in doubles[:2])
    expected = torch.autograd.grad(attention(*turned, doubles[2], causal())[0], doubles, gradient.double())
    for x, y in zip(found, expected, strict=True):
        assert (x.double() - y).norm() <= (1e-5 if dtype == torch.float32 else 1.5e-3) * y.norm()
    with pytest.raises(weft.CompilationError, match=r"expected a gain \[H, D\] or \[D\], but got \[1, 1, 64\]"):
        weft.rms_norm(q, gain[None, None])


@pytest.mark.parametrize("pattern", [weft.window(0, -1), weft.prefix(0), weft.causal() & ~weft.causal()], ids=repr)
def test_a_pattern_without_pairs_leaves_gradients_of_zero(pattern):
    """As attention of torch's gives them, not None: optimisers and reducers of gradients count on them."""
    q, k, v, k2, v2, slope = (x.requires_grad_() for x in (*torch.randn(5, 1, 2, 24, 16), torch.randn(2)))
    out = weft.attention.attend(q, k, v, pattern, score_mod=lambda s, b, h, n, m: s * slope[h])
    assert not out.any()
    found = torch.autograd.grad(out.sum(), (q, k, v, slope))
    assert all(grad.shape == x.shape and not grad.any() for grad, x in zip(found, (q, k, v, slope), strict=True))

    @weft.program
    def two(q, k, v, k2, v2):
        return weft.softmax(q, weft.domain(k), weft.domain(weft.rope(k2), pattern)) @ (v, v2)

    library = two.compile("sm_80", ", ".join(f"{x}: fp32[B,H,N,16]" for x in ("q", "k", "v", "k2", "v2")))
    for function in (two, library.differentiable("two"), torch.compile(two, backend="aot_eager")):
        found = torch.autograd.grad(function(q, k, v, k2, v2).sum(), (q, k, v, k2, v2))
        assert found[2].any() and not found[3].any() and not found[4].any()
