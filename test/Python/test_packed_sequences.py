# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Sequences packed after one another: every mixer and mechanism gives each what it gives it alone. Results and all
gradients against float64, by the accuracy rule; lengths of zero are among them."""

import functools

import pytest
import torch
import weft
from weft.testing import drawn, gau, judge, masks, mixers, sas, sema
from weft.testing.attention import Domain, attention
from weft.testing.plans import counted
from weft.testing.sas import drawn_weights, expansion_shapes, with_dicts

BOUNDS = (0, 41, 41, 42, 150, 150, 217)
STARTS = torch.tensor(BOUNDS, dtype=torch.int32)
TOKENS = BOUNDS[-1]


def alone(formula, *operands, **options):
    """What `formula` gives of each sequence by itself; `operands` are cut, and other tensors are in the options."""
    parts = zip(*(x.split(STARTS.diff().tolist(), 2) for x in operands), strict=True)
    return torch.cat([formula(*part, **options) for part in parts if part[0].shape[2]], 2)


def heads(randn, count=2, head=32):
    return randn(1, count, TOKENS, head)


@weft.program
def local(x, taps):
    """Along a sequence, forwards and backwards."""
    y = weft.toeplitz(taps, centred=True, dilation=2, cu_seqlens=STARTS) @ x
    return y + weft.toeplitz(taps, cu_seqlens=STARTS) @ x


def plain_local(x, taps, form):
    return alone(lambda x: mixers.toeplitz(x, taps, centred=True, dilation=2) + mixers.toeplitz(x, taps), x)


@weft.program
def means(x):
    return weft.mean(cu_seqlens=STARTS) @ weft.mean(cu_seqlens=STARTS) @ x


@weft.program
def turned(x):
    return weft.rope(x, cu_seqlens=STARTS)


@weft.program
def across(q, k, v, taps):
    """Convolutions of the whole in attention of each sequence: what they take lies in its neighbours too."""
    q, k = weft.toeplitz(taps, centred=True) @ q, weft.toeplitz(taps) @ k
    return weft.softmax(q, k, weft.causal(), cu_seqlens=STARTS) @ (weft.toeplitz(taps, centred=True) @ v)


def plain_across(q, k, v, taps, form):
    q, k = mixers.toeplitz(q, taps, centred=True), mixers.toeplitz(k, taps)
    seen = masks.packed(STARTS, STARTS, masks.causal)
    return attention(q, [Domain(k, mixers.toeplitz(v, taps, centred=True), seen)], form=form)[0]


MIXERS = {
    "convolutions": (local, plain_local, lambda randn: {"x": heads(randn), "taps": randn(5, 64)}),
    "means": (
        means,
        lambda x, form: alone(lambda x: mixers.mean(x).expand_as(x), x),
        lambda randn: {"x": heads(randn)},
    ),
    "rotations": (turned, lambda x, form: alone(mixers.rope, x), lambda randn: {"x": heads(randn)}),
    "convolutions of all": (
        across,
        plain_across,
        lambda randn: {name: heads(randn) for name in "qkv"} | {"taps": randn(3, 64)},
    ),
}  # fmt: skip


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32], ids=["f16", "f32"])
@pytest.mark.parametrize("name", MIXERS)
def test_mixers(name, dtype, seed, held):
    program, formula, inputs = MIXERS[name]
    generator = torch.Generator().manual_seed(seed)
    held(
        "packed",
        lambda: judge(
            program, formula, drawn(inputs, dtype, generator), generator=generator, parameters=["taps"],
            products_as_given=False,
        ),
    )  # fmt: skip


def sema_inputs(randn):
    return {name: heads(randn) for name in "qkv"} | {"lepe_weight": randn(64, 1, 3), "lepe_bias": randn(64)}


def plain_sema(q, k, v, weight, bias, form):
    return alone(functools.partial(sema, window=32, form=form), q, k, v, lepe_weight=weight, lepe_bias=bias)


def gau_inputs(randn):
    tensors = {"u": heads(randn, 1, 64), "v": heads(randn, 1, 72), "g": heads(randn, 1, 72)}
    return tensors | {name: randn(64) for name in ("kappa_q", "mu_q", "kappa_k", "mu_k")}


def plain_gau(u, v, g, *vectors, form):
    return alone(lambda u, v, g: gau(u, v, g, *vectors, mask=masks.causal(*2 * u.shape[2:3]), form=form), u, v, g)


def sas_inputs(randn):
    tensors = {name: heads(randn, 2, 16) for name in "qkv"}
    for name in "qkv":
        shapes = expansion_shapes(2, 4, 16, None, 3)
        tensors |= {f"{name} {key}": x for key, x in drawn_weights(randn, shapes, steady=True).items()}
    return tensors


def plain_sas(q, k, v, q_expand, k_expand, v_expand, form):
    return alone(lambda q, k, v: sas.sas(q, k, v, q_expand, k_expand, v_expand, form=form), q, k, v)


MECHANISMS = {
    "sema": (functools.partial(weft.attention.sema, window=32, cu_seqlens=STARTS), plain_sema, sema_inputs),
    "gau": (
        functools.partial(weft.attention.gau, pattern=weft.causal(), cu_seqlens=STARTS),
        plain_gau,
        gau_inputs,
    ),
    "sas": (functools.partial(weft.attention.sas, kernel=3, cu_seqlens=STARTS), plain_sas, sas_inputs),
}


@pytest.mark.parametrize("name", MECHANISMS)
def test_mechanisms(name, seed, held):
    function, formula, inputs = MECHANISMS[name]
    generator = torch.Generator().manual_seed(seed)
    names = list(drawn(inputs, torch.float16, generator))
    vectors = [each for each in names if each not in "qkvug"]

    def judged():
        pair = (with_dicts(f, names) for f in (function, formula)) if name == "sas" else (function, formula)
        return judge(
            *pair,
            drawn(inputs, torch.float16, generator),
            generator=generator,
            products_as_given=False,
            parameters=vectors,
            unseen=sas.unseen(names) if name == "sas" else (),
        )

    held("packed", judged)


def test_matrices():
    """Blocks of sequences along the diagonal."""
    starts = torch.tensor([0, 3, 3, 8], dtype=torch.int32)
    block = masks.packed(starts, starts, masks.full).float()
    torch.testing.assert_close(weft.mean(cu_seqlens=starts).matrix(8)[0, 0], block / block.sum(1, keepdim=True))
    assert (weft.mean(cu_seqlens=starts.numpy()).matrix(8)[0, 0] > 0).tolist() == block.bool().tolist()
    q = torch.randn(1, 1, 8, 16)
    seen = (weft.softmax(q, q, weft.causal(), cu_seqlens=starts).matrix()[0, 0] > 0).tolist()
    assert seen == masks.packed(starts, starts, masks.causal).tolist()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda x: weft.mean(causal=True, cu_seqlens=STARTS) @ x, "a mean of packed sequences that is not causal"),
        (lambda x: weft.toeplitz(torch.zeros(9, 64), grid=(7, 31), cu_seqlens=STARTS) @ x, "no grid with cu_seqlens"),
        (lambda x: weft.rope(x, window=(2, 2), grid=(7, 31), cu_seqlens=STARTS), "no grid with cu_seqlens"),
        (lambda x: weft.rope(x, cu_seqlens=STARTS.long()), r"cu_seqlens \[S\+1\] of int32"),
        (lambda x: weft.rope(torch.cat([x, x]), cu_seqlens=STARTS), "packed sequences in a batch of 1"),
        (lambda x: weft.mean(cu_seqlens=STARTS) @ torch.cat([x, x]), "packed sequences in a batch of 1"),
        (lambda x: weft.softmax(torch.cat([x, x]), x, cu_seqlens=STARTS) @ x, "packed sequences in a batch of 1"),
    ],
)
def test_errors(make, message):
    with pytest.raises(weft.CompilationError, match=message):
        make(torch.zeros(1, 2, TOKENS, 32))


def test_programs_find_their_sequence():
    """Among many, 32 at a time: what a program spends on it grows with one 32nd of their number."""

    @weft.program
    def packed(q, k, v, starts):
        return weft.softmax(q, k, weft.causal(), cu_seqlens=starts) @ v

    def spent(count):
        starts = torch.arange(0, 8 * count + 1, 8, dtype=torch.int32)
        q, k, v = (torch.randn(1, 1, 8 * count, 64).half() for _ in range(3))
        return counted(packed, q, k, v, starts, backward=False)["forward"].scaled("warp_instructions") / count

    # Each sequence has one program that works; at most as many find nothing to do.
    assert spent(192) - spent(64) <= 4 * 2 * (192 - 64) / 32 * 160
