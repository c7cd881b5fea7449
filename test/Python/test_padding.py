# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Rows and channels past the end hold f(0) of what is computed, and count nowhere: random programs and their gradients
against float64 (padding_programs.py)."""

import itertools
import random

import pytest
import torch
import weft
from padding_programs import CONSUMERS, FUNCTIONS, Draw

LIMIT = 2e-4  # of the largest number; one row or channel too many is a hundred times that


@pytest.mark.parametrize("consumer", sorted(CONSUMERS))
def test_what_is_past_the_end_counts_nowhere(consumer, seed):
    """What adds up, of a function that is not 0 at 0, at a size with padding."""
    generator = random.Random(seed)
    draw = Draw.of(generator, [(generator.choice(list(FUNCTIONS)), consumer)])
    print(draw)
    assert draw.check() < LIMIT


@pytest.mark.slow  # a few seconds each, for sizes and functions as many as above
@pytest.mark.parametrize("number", range(100))
def test_random_programs(number, seed):
    draw = Draw.of(random.Random(seed + number))
    print(draw)
    assert draw.check() < LIMIT


def test_a_sum_over_tokens_as_a_result_is_one_row(seed):
    """Not the partial sums that kernels that read it add up; beside a reader too, and where what reads it is no kernel
    of rows."""

    @weft.program
    def sums(x):
        s = weft.sum(x * x, 2, keepdims=True)
        return s, x * s, weft.sum(s, (0, 3))

    torch.manual_seed(seed)
    x = torch.randn(2, 3, 70, 24)
    s, product, of_channels = sums(x)
    want = x.double().square().sum(2, keepdim=True)
    for made, exact in ((s, want), (product, x * want), (of_channels, want.sum((0, 3)))):
        torch.testing.assert_close(made.double(), exact, rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize("pattern", [None, "causal", "window"])
def test_one_token_by_its_type(pattern, seed):
    """A grid of one token fixes N = 1: that axis is no repetition, in the forward and in gradients."""

    @weft.program
    def one(q, k, v):
        of = {None: None, "causal": weft.causal(), "window": weft.block_window((1, 1), grid=(1, 1))}[pattern]
        return weft.softmax(q, weft.rope(k, window=(1, 2), grid=(1, 1)), of) @ weft.cos(v)

    torch.manual_seed(seed)
    q, k, v = (torch.randn(2, 2, 1, 64, requires_grad=True) for _ in range(3))
    made, direction = one(q, k, v), torch.randn(2, 2, 1, 64)
    torch.testing.assert_close(made, v.cos())
    dq, dk, dv = torch.autograd.grad(made, (q, k, v), direction)
    torch.testing.assert_close(dv, -v.sin() * direction)
    for gradient in (dq, dk):
        assert gradient.abs().max() < 1e-5


def test_maps_of_a_product_that_readers_compute_again(seed):
    """Maps around a product, one of which is left to those that read it, though others of the kernel take it too."""

    @weft.program
    def mixed(q, w, gain):
        return weft.rms_norm(weft.tanh(-weft.head_conv(q, w)), gain, 1e-3)

    torch.manual_seed(seed)
    inputs = [torch.randn(*shape) for shape in ((1, 3, 33, 16), (3, 3, 1), (3, 16))]
    ours, exact = ([x.to(t).requires_grad_() for x in inputs] for t in (torch.float32, torch.float64))
    made = mixed(*ours)
    y = torch.tanh(-torch.einsum("oh,bhnd->bond", exact[1][..., 0], exact[0]))
    wanted = y * (y.square().mean(-1, keepdim=True) + 1e-3).rsqrt() * exact[2][:, None]
    direction = torch.randn(made.shape)
    torch.testing.assert_close(made.double(), wanted, rtol=1e-4, atol=1e-4)
    gradients = torch.autograd.grad(made, ours, direction)
    for got, want in zip(gradients, torch.autograd.grad(wanted, exact, direction.double()), strict=True):
        torch.testing.assert_close(got.double(), want, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("pattern", [weft.full(), weft.block_window(24)], ids=str)
def test_keys_past_the_end_have_no_weight_in_sums_over_keys(pattern):
    """Scores far below 0 make a key of zeros heavier than any number: infinity, which 0 does not take back."""

    @weft.program
    def attended(q, k, v):
        return weft.softmax(q, k, pattern, deterministic=False) @ v

    tokens = 33
    q, k = torch.full((1, 1, tokens, 64), 5.0).half(), torch.full((1, 1, tokens, 64), -5.0).half()
    inputs = [x.requires_grad_() for x in (q, k, torch.randn(1, 1, tokens, 64).half())]
    made = attended(*inputs)
    for gradient in torch.autograd.grad(made, inputs, torch.ones_like(made)):
        assert gradient.isfinite().all()


def test_a_sum_that_leaves_out_a_batch_of_one(seed):
    """[H, N, 1] of [1, H, N, D] is no [B, H, N], though its axes are as many."""

    @weft.program
    def biased(x, w, cu):
        return weft.mean(cu_seqlens=cu) @ (x + w)

    torch.manual_seed(seed)
    x, w = torch.randn(1, 3, 33, 24), torch.randn(3, 33, 1, requires_grad=True)
    direction = torch.randn(1, 3, 33, 24)
    (got,) = torch.autograd.grad(biased(x, w, torch.tensor([0, 33], dtype=torch.int32)), w, direction)
    want = direction.double().sum((2, 3), keepdim=True)[0].expand(3, 33, 1) / 33
    torch.testing.assert_close(got.double(), want, rtol=1e-4, atol=1e-5)


OUTER = ("mean", "packed mean", "sum of tokens", "convolution", "convolution over a grid")
INNER = ("convolution", "centred convolution", "packed convolution", "convolution over a grid")
#: those that take longest to compile; each side is in another pair too
LONG = {
    ("convolution", "convolution over a grid"),
    ("convolution over a grid", "convolution"),
    ("convolution over a grid", "convolution over a grid"),
}


@pytest.mark.parametrize(
    "inner, consumer",
    [pytest.param(*pair, marks=[pytest.mark.slow] if pair in LONG else []) for pair in itertools.product(INNER, OUTER)],
)
def test_convolutions_within_what_is_added_up(inner, consumer, seed):
    """A tile of a part of the tokens, or of those that a tap meets, has rows that exist and are not its own: neighbours
    that a convolution takes are not found there."""
    draw = Draw.of(random.Random(seed), [("cos", inner), ("sigmoid", consumer)])
    print(draw)
    assert draw.check() < LIMIT
