# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Convolutions with about as many taps as tokens: by chunks on matrix instructions, held against the direct sum."""

import functools

import numpy as np
import pytest
import torch
import weft
from program_samples import compiled
from weft.testing import drawn, judge, mixers
from weft.testing.plans import counted, run_plan

DTYPES = {"f16": torch.float16, "bf16": torch.bfloat16, "f32": torch.float32}


@weft.program
def convolved(x, taps):
    return weft.toeplitz(taps) @ x


def formula(x, taps, *, form):
    return mixers.toeplitz(x, taps)


def inputs(randn, *, tokens, taps, channels=16, heads=1, batch=1):
    # Taps so large that results are as large as x.
    return {"x": randn(batch, heads, tokens, channels), "taps": randn(taps, heads * channels) / taps**0.5}


def check(seed, held, dtype="f16", **sizes):
    generator = torch.Generator().manual_seed(seed)
    draw = functools.partial(inputs, **sizes)
    held(
        "long convolution",
        lambda: judge(convolved, formula, drawn(draw, DTYPES[dtype], generator), generator=generator),
    )


@pytest.mark.parametrize("tokens", [17, 63, 64, 65, 128, 129, 300])
def test_as_many_taps_as_tokens(tokens, seed, held):
    check(seed, held, tokens=tokens, taps=tokens)


@pytest.mark.parametrize(("tokens", "taps"), [(1, 17), (100, 300), (300, 17), (200, 65), (130, 129)])
def test_fewer_and_more_taps(tokens, taps, seed, held):
    check(seed, held, tokens=tokens, taps=taps)


@pytest.mark.parametrize(
    ("dtype", "sizes"),
    [
        ("bf16", {"tokens": 150, "taps": 150, "heads": 2, "channels": 24}),
        ("f32", {"tokens": 70, "taps": 70, "channels": 8}),
        ("f16", {"tokens": 70, "taps": 70, "batch": 70, "channels": 2}),
        ("f16", {"tokens": 70, "taps": 70, "batch": 3, "channels": 72}),
    ],
)
def test_types_heads_and_batches(dtype, sizes, seed, held):
    check(seed, held, dtype, **sizes)


TEXT = """
!t = !attn.tensor<[B, H, N, 16], f16>
!w = !attn.tensor<[K, "H*16"], f16>
func.func @f(%x: !t {attn.name = "x"}, %w: !w {attn.name = "w"}) -> (!t {attn.name = "y"}) attributes {attn.program} {
  %y = attn.convolve %x, %w : !t, !w -> !t
  func.return %y : !t
}
"""


@pytest.fixture(scope="module")
def kernel():
    return compiled(TEXT)


LENGTHS = sorted({1, 2, 3, 15, 16, *range(31, 300, 17), 300})


def test_every_length(kernel, seed):
    """Lengths from 1 to 300, with as many taps, in one compiled form."""
    generator = torch.Generator().manual_seed(seed)
    for tokens in LENGTHS:
        x, taps = (
            t.numpy()
            for t in drawn(functools.partial(inputs, tokens=tokens, taps=tokens), torch.float16, generator).values()
        )
        run = run_plan(*kernel, "f", [x, taps])
        assert run.findings == []
        exact = mixers.toeplitz(torch.from_numpy(x).double(), torch.from_numpy(taps).double()).numpy()
        np.testing.assert_allclose(run.outputs["y"].astype(float), exact, rtol=1e-3, atol=1e-3 * np.abs(exact).max())


def test_the_work_is_that_of_the_chunks(seed):
    """Chunks of 64 tokens: W_δ of each distance meets those that lie as far from the start, in columns of 64."""
    torch.manual_seed(seed)
    tokens, channels, batch = 300, 4, 32
    runs = counted(convolved, torch.randn(batch, 1, tokens, channels).half(), torch.randn(tokens, channels).half())
    chunks = -(-tokens // 64)
    # 5 chunks of 32 batches, those of one number together: tiles of 64 columns end in chunks 1, 3 and 4.
    forward = sum(last + 1 for last in (1, 3, 4)) * 64**3 * channels
    assert runs["forward"].total("mma_macs") == forward
    taps = sum(-(-(chunks - distance) * batch // 64) for distance in range(chunks + 1)) * 64**3 * channels
    assert runs["backward"].total("mma_macs") == forward + taps


def test_matrix():
    taps = torch.randn(20, 3)
    dense = weft.toeplitz(taps).matrix(20)
    distance = torch.arange(20)[:, None] - torch.arange(20)
    exact = torch.where(distance >= 0, taps.T[:, distance.clamp(min=0)], 0.0)
    assert dense.shape == (1, 1, 3, 20, 20)
    torch.testing.assert_close(dense[0, 0], exact, rtol=1e-5, atol=1e-6)


def test_centred_taps_are_of_a_known_number():
    with pytest.raises(weft.CompilationError, match="expected an odd number of centred taps, but got 20"):
        weft.toeplitz(torch.randn(20, 16), centred=True) @ torch.randn(1, 1, 20, 16)
