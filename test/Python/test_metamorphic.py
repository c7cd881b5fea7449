# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""What changes of a mechanism's inputs must do to its results and gradients, whatever the numbers are.

    batch permuted     results permuted, the same bits; gradients of parameters are sums over the batch in another
                       order, and so within rounding
    heads permuted     groups of a key head and its query heads move as one: the same bits
    tokens appended    behind a causal mask the rows before them stay the same bits, and so do gradients where the new
                       rows' are zero
    values scaled      by powers of two: what is linear in them is scaled, the same bits
    queries scaled     by 2^k, the scale of scores by 2^-k: the same bits
    sequences packed   each gives what it gives alone
    keys split         two parts merged by their LSE are the whole, within rounding

Packed sequences and those alone are within rounding of each other: tiles of rows begin at each sequence's start in
both, but which blocks go through the loop without a mask depends on all lengths, and products are contracted otherwise
there.
"""

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import pytest
import torch
import weft
from weft.testing import poisoned
from weft.testing.sas import drawn_weights, expansion_shapes

SIZES = {"B": 3, "H": 4, "K": 2, "N": 70, "D": 32, "V": 32, "K*V": 64, "1": 1, "E": 6, "O": 40, "T": 3, "H*V": 128}
DTYPES = {"f16": torch.float16, "bf16": torch.bfloat16, "f32": torch.float32}


@dataclass(frozen=True)
class Mechanism:
    """``call(**tensors)``, with ``cu_seqlens=`` where sequences can be packed; each tensor's axes by name."""

    call: Callable
    axes: Mapping[str, str]
    output: str = "B H N V"
    causal: bool = False
    packed: bool = False
    heads: bool = True
    #: a window moves with the rows: blocks of the last, ragged tile of rows may go through another loop, of masked
    #: blocks or of whole ones, where products are contracted otherwise; then last bits differ
    moves: bool = False
    #: names of the tensors that the result is linear in, together
    linear: tuple[str, ...] = ("v",)


def attention(pattern=None, **options):
    def call(q, k, v, cu_seqlens=None, **more):
        packed = {"cu_seqlens_q": cu_seqlens, "cu_seqlens_k": cu_seqlens} if cu_seqlens is not None else {}
        return weft.attention.attend(q, k, v, pattern, **packed, **options, **more)

    return call


QKV = {"q": "B H N D", "k": "B K N D", "v": "B K N V"}


@weft.program
def scored(q, k, v, slopes):
    def mod(s, b, h, n, m):
        return 4.0 * weft.tanh(0.25 * s) - slopes[h] * (n - m)

    return weft.softmax(q, k, weft.causal(), score_mod=mod) @ v


@weft.program
def composite(q, k, v, taps, g):
    mixer = weft.softmax(q, k, weft.causal()) + weft.mean(causal=True) + weft.toeplitz(taps)
    return weft.diag(weft.sigmoid(g)) @ mixer @ v


@weft.program
def rows(q, k, v, gain, w):
    q, k = weft.rope(weft.rms_norm(q, gain), k)
    return weft.linear(weft.softmax(q, k, weft.window(20, 0)) @ v, w)


@weft.program
def two_domains(q, k, v):
    keys, values = weft.shift(k, 3), weft.shift(v, 3)
    return weft.softmax(q, weft.domain(k, weft.window(0, 0)), weft.domain(keys, weft.causal())) @ (v, values)


def sema(q, k, v, lepe, cu_seqlens=None):
    return weft.attention.sema(q, k, v, lepe, window=16, cu_seqlens=cu_seqlens)


def sema_grid(q, k, v, lepe):
    return weft.attention.sema(q, k, v, lepe, window=(3, 4), grid=(7, 10))


def sfa(q, k, v, q_gain, k_gain, cu_seqlens=None):
    # Every third token joins the one before: decided by its place, so that nothing hangs by a threshold.
    places = torch.arange(k.shape[2])
    if cu_seqlens is not None:
        places = places - cu_seqlens.long()[torch.searchsorted(cu_seqlens.long(), places, right=True) - 1]
    joins = (places % 3 == 1).expand(k.shape[:3])
    return weft.attention.sfa(q, k, v, q_gain, k_gain, decisions=joins, cu_seqlens=cu_seqlens)


def gau(u, v, g, kappa_q, mu_q, kappa_k, mu_k, cu_seqlens=None):
    return weft.attention.gau(u, v, g, kappa_q, mu_q, kappa_k, mu_k, weft.causal(), cu_seqlens=cu_seqlens)


def sas(q, k, v, cu_seqlens=None, **weights):
    parts = [{n.split(" ")[1]: x for n, x in weights.items() if n[0] == name} for name in "qkv"]
    return weft.attention.sas(q, k, v, *parts, kernel=3, cu_seqlens=cu_seqlens)


def peaa(y, weight, bias):
    return weft.attention.peaa(y, weight, bias, heads=2)


_SAS = {f"{name} {key}": "*" for name in "qkv" for key in expansion_shapes(2, 6, 32, None, 3)}
_SINGLE = {"u": "B 1 N D", "v": "B 1 N V", "g": "B 1 N V"} | dict.fromkeys(("kappa_q", "mu_q", "kappa_k", "mu_k"), "D")

MECHANISMS = {
    "full": Mechanism(attention(), QKV, packed=True),
    "causal": Mechanism(attention(weft.causal()), QKV, causal=True, packed=True),
    "window": Mechanism(attention(weft.window(9, 0)), QKV, causal=True, packed=True, moves=True),
    "block window": Mechanism(attention(weft.block_window(24)), QKV, packed=True),
    "dilated": Mechanism(attention(weft.dilated(3, 5) & weft.causal()), QKV, causal=True),
    "global tokens": Mechanism(attention(weft.global_tokens(3) | weft.window(5, 5)), QKV, packed=True),
    "random blocks": Mechanism(attention(weft.random_blocks(1, 2, 16)), QKV),
    "mask": Mechanism(attention(weft.mask(lambda b, h, n, m: ((n + m) % 3 != 0) & (m <= n))), QKV, causal=True),
    "one pass": Mechanism(attention(weft.causal(), deterministic=True), QKV, causal=True),
    "sink": Mechanism(attention(weft.causal()), {**QKV, "sink": "H"}, causal=True),
    "score_mod": Mechanism(scored, {**QKV, "slopes": "H"}, causal=True),
    "composite": Mechanism(composite, {"q": "B K N D", "k": "B K N D", "v": "B K N V", "taps": "T K*V", "g": "B K N V"},
                           "B K N V", causal=True),
    "rows": Mechanism(rows, {**QKV, "gain": "H D", "w": "V V"}, causal=True, moves=True),
    "two domains": Mechanism(two_domains, QKV, causal=True),
    "SEMA": Mechanism(sema, {**QKV, "lepe": "K*V 1 T"}, packed=True),
    "SEMA on a grid": Mechanism(sema_grid, {**QKV, "lepe": "K*V 1 T T"}),
    "SFA": Mechanism(sfa, {**QKV, "q_gain": "H D", "k_gain": "K D"}, causal=True, packed=True),
    "GAU": Mechanism(gau, _SINGLE, "B 1 N V", causal=True, packed=True, heads=False),
    "SAS": Mechanism(sas, {"q": "B K N D", "k": "B K N D", "v": "B K N V", **_SAS}, "B E N V", causal=True, packed=True,
                     heads=False, linear=()),
    "PEAA": Mechanism(peaa, {"y": "B H N V", "weight": "O K*V", "bias": "O"}, "B N O", causal=True, heads=False,
                      linear=("y", "bias")),
}  # fmt: skip


# ---- Running


def shape(axes, **sizes):
    return tuple((SIZES | sizes)[axis] for axis in axes.split())


def drawn(mechanism, dtype, seed, **sizes):
    """Random tensors by name, and the gradient of the result."""
    random = torch.Generator().manual_seed(seed)

    def randn(*shape, dtype=dtype):
        return torch.randn(shape, generator=random).to(dtype)

    tensors = {name: randn(*shape(axes, **sizes)) for name, axes in mechanism.axes.items() if axes != "*"}
    if "v conv1.weight" in mechanism.axes:
        for name in "qkv":
            weights = drawn_weights(randn, expansion_shapes(2, 6, 32, None, 3), steady=True)
            tensors |= {f"{name} {key}": x for key, x in weights.items()}
    if "w" in tensors:
        tensors["w"] = tensors["w"] / 8
    return tensors, randn(*shape(mechanism.output, **sizes))


def run(mechanism, tensors, d_out, **options):
    """(result, gradients by name)."""
    leaves = {name: x.detach().requires_grad_() for name, x in tensors.items()}
    with poisoned():
        out = mechanism.call(**leaves, **options)
        found = torch.autograd.grad(out, list(leaves.values()), d_out, allow_unused=True)
    return out.detach(), dict(zip(leaves, found, strict=True))


def close(got, want, what, dtype, factor=8.0):
    """Within rounding: two computations of one thing in different orders."""
    error = (got.double() - want.double()).abs().max() if got.numel() else torch.tensor(0.0)
    eps = torch.finfo(dtype).eps if dtype != torch.float32 else 2.0**-20
    most = float(want.double().abs().max()) if want.numel() else 0.0
    assert float(error) <= factor * eps * max(most, 1.0), f"{what}: off by {float(error):.3g}, of {most:.3g}"


def same(got, want, what):
    assert torch.equal(got, want), f"{what}: {int((got != want).sum())} of {got.numel()} differ in their bits"


def along(x, axes, axis, index):
    """x indexed along the axis of that name, where it has it."""
    names = axes.split()
    return x.index_select(names.index(axis), index) if axis in names else x


def parametrized(condition=lambda mechanism: True, dtypes=("f16", "f32")):
    """Over the mechanisms for which the condition holds, and types; all but the first type are slow tests."""
    names = [name for name, mechanism in MECHANISMS.items() if condition(mechanism)]
    types = [pytest.param(DTYPES[d], id=d, marks=[pytest.mark.slow] if i else []) for i, d in enumerate(dtypes)]

    def decorate(test):
        test = pytest.mark.parametrize("dtype", types)(test)
        return pytest.mark.parametrize("mechanism", [MECHANISMS[n] for n in names], ids=names)(test)

    return decorate


# ---- Relations


@parametrized()
def test_batch_permuted(mechanism, dtype, seed):
    tensors, d_out = drawn(mechanism, dtype, seed)
    order = torch.tensor([2, 0, 1])
    out, grads = run(mechanism, tensors, d_out)
    permuted = {name: along(x, mechanism.axes[name], "B", order) for name, x in tensors.items()}
    again, others = run(mechanism, permuted, d_out[order])
    same(again, out[order], "result")
    for name, grad in grads.items():
        if "B" in mechanism.axes[name].split():
            same(others[name], grad[order], name)
        elif grad is not None:
            close(others[name], grad, name, dtype)


@parametrized(lambda mechanism: mechanism.heads)
def test_heads_permuted(mechanism, dtype, seed):
    tensors, d_out = drawn(mechanism, dtype, seed)
    group = SIZES["H"] // SIZES["K"]
    orders = {
        "K": torch.tensor([1, 0]),
        "H": torch.tensor([h for k in (1, 0) for h in range(k * group, (k + 1) * group)]),
    }
    orders["K*V"] = torch.cat([torch.arange(SIZES["V"]) + k * SIZES["V"] for k in (1, 0)])

    def moved(x, axes):
        return functools.reduce(lambda x, axis: along(x, axes, axis, orders[axis]), orders, x)

    out, grads = run(mechanism, tensors, d_out)
    again, others = run(
        mechanism, {n: moved(x, mechanism.axes[n]) for n, x in tensors.items()}, moved(d_out, mechanism.output)
    )
    same(again, moved(out, mechanism.output), "result")
    for name, grad in grads.items():
        if {"H", "K", "K*V"} & set(mechanism.axes[name].split()):
            same(others[name], moved(grad, mechanism.axes[name]), name)
        else:  # a sum over heads
            close(others[name], grad, name, dtype)


@parametrized(lambda mechanism: mechanism.causal)
def test_tokens_appended(mechanism, dtype, seed):
    more, N = 83, SIZES["N"]
    long, d_long = drawn(mechanism, dtype, seed, N=N + more)
    kept = torch.arange(N)
    tensors = {name: along(x, mechanism.axes[name], "N", kept) for name, x in long.items()}
    d_out = along(d_long, mechanism.output, "N", kept)
    d_long = torch.cat([d_out, torch.zeros_like(d_long.narrow(mechanism.output.split().index("N"), N, more))],
                       mechanism.output.split().index("N"))  # fmt: skip
    out, grads = run(mechanism, tensors, d_out)
    again, others = run(mechanism, long, d_long)
    compare = functools.partial(close, dtype=dtype) if mechanism.moves else same
    compare(along(again, mechanism.output, "N", kept), out, "result")
    for name, grad in grads.items():
        axes = mechanism.axes[name]
        if "N" in axes.split():
            compare(along(others[name], axes, "N", kept), grad, name)
        elif grad is not None:  # a sum over more tokens, in other parts
            close(others[name], grad, name, dtype)


def normal(x):
    """Numbers so small that they, or terms of their sums, may be subnormal as zeros: only normal ones are scaled
    without rounding. What terms below 2^-126 lose is no bit of a sum above 2^-100."""
    return None if x is None else torch.where(x.abs() < 2.0**-100, 0.0, x)


@parametrized(lambda mechanism: mechanism.linear, dtypes=("bf16", "f32"))
@pytest.mark.parametrize("power", [-3, pytest.param(5, marks=pytest.mark.slow)])
def test_values_scaled(mechanism, dtype, power, seed):
    tensors, d_out = drawn(mechanism, dtype, seed)
    factor = 2.0**power
    out, grads = run(mechanism, tensors, d_out)
    scaled = {name: x * factor if name in mechanism.linear else x for name, x in tensors.items()}
    again, others = run(mechanism, scaled, d_out)
    same(normal(again), normal(out * factor), "result")
    for name, grad in grads.items():
        if grad is not None:
            same(normal(others[name]), normal(grad if name in mechanism.linear else grad * factor), name)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32], ids=["bf16", "f32"])
@pytest.mark.parametrize("name", ["full", "causal", "window", "dilated", "sink"])
def test_queries_scaled(name, dtype, seed):
    mechanism = MECHANISMS[name]
    tensors, d_out = drawn(mechanism, dtype, seed)
    out, grads = run(mechanism, tensors, d_out, scale=0.25)
    again, others = run(mechanism, {**tensors, "q": tensors["q"] * 8}, d_out, scale=0.25 / 8)
    same(normal(again), normal(out), "result")
    for tensor, grad in grads.items():
        same(normal(others[tensor] * (8 if tensor == "q" else 1)), normal(grad), tensor)


@parametrized(lambda mechanism: mechanism.packed)
def test_sequences_packed(mechanism, dtype, seed):
    lengths = [33, 0, 64, 1, 21]
    starts = torch.tensor([0, *torch.tensor(lengths).cumsum(0)], dtype=torch.int32)
    tensors, d_out = drawn(mechanism, dtype, seed, B=1, N=sum(lengths))
    out, grads = run(mechanism, tensors, d_out, cu_seqlens=starts)
    sums = {}
    for first, past in zip(starts[:-1].tolist(), starts[1:].tolist(), strict=True):
        rows = torch.arange(first, past)
        part = {name: along(x, mechanism.axes[name], "N", rows) for name, x in tensors.items()}
        alone, others = run(mechanism, part, along(d_out, mechanism.output, "N", rows))
        close(along(out, mechanism.output, "N", rows), alone, f"result {first}:{past}", dtype)
        for name, grad in others.items():
            axes = mechanism.axes[name]
            if "N" in axes.split():
                close(along(grads[name], axes, "N", rows), grad, f"{name} {first}:{past}", dtype)
            elif grad is not None:
                sums[name] = sums.get(name, 0) + grad.double()
    for name, grad in sums.items():
        close(grads[name], grad, name, dtype, factor=16)


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32], ids=["f16", "f32"])
@pytest.mark.parametrize("causal", [False, True])
def test_keys_split(causal, dtype, seed):
    mechanism, first, M = MECHANISMS["full"], 29, SIZES["N"]
    tensors, d_out = drawn(mechanism, dtype, seed)
    # Of the first part's keys, queries stand M - first further on.
    patterns = (weft.window(None, M - first), weft.causal()) if causal else (None, None)

    def merged(q, k, v):
        parts = zip(k.split([first, M - first], 2), v.split([first, M - first], 2), patterns, strict=True)
        found = [weft.attention.attend(q, k, v, pattern, return_lse=True) for k, v, pattern in parts]
        lse = torch.stack([lse for _, lse in found]).logsumexp(0)
        return sum(out.float() * (part - lse).exp()[..., None] for out, part in found).to(q.dtype)

    whole = Mechanism(attention(weft.causal() if causal else None), QKV)
    out, grads = run(whole, tensors, d_out)
    again, others = run(Mechanism(merged, QKV), tensors, d_out)
    close(again, out, "result", dtype)
    for name, grad in grads.items():
        close(others[name], grad, name, dtype)
