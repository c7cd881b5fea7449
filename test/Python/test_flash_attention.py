# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Flash attention, examples/04, held against float64 by the accuracy rule, over the sizes where kernels go wrong."""

import pytest
import torch
from weft.testing import accuracy, hold, plain_attention, reference_attention

SIZES = [(1, 1), (63, 63), (64, 64), (65, 65), (113, 203), (256, 256), (799, 3), (3, 799), (1023, 1024)]
DTYPES = [torch.float16, torch.bfloat16]


@pytest.fixture(scope="module")
def attention(example):
    return example("04_flash_attention").flash_attention


def judge(attention, generator, shape, dtype, causal, arrange=lambda x: x, factor=1.0):
    """One draw: accuracies of the output and of the LSE."""
    B, H, N, M, D = shape

    def operand(length):
        return arrange((torch.randn(B, H, length, D, generator=generator) * factor).to(dtype))

    q, k, v = operand(N), operand(M), operand(M)
    out, lse = attention(q, k, v, causal=causal)
    ref, ref_lse = reference_attention(q, k, v, causal=causal)
    plain = plain_attention(q, k, v, causal=causal)
    seen = torch.isfinite(ref_lse)
    assert torch.equal(torch.isfinite(lse), seen)
    assert torch.all(lse[~seen] == -torch.inf)
    # fp32 sums of exact products: the LSE's own rounding, relative to the largest score.
    bound = 1e-5 * max(1.0, float(ref_lse[seen].abs().max()) if seen.any() else 1.0)
    assert torch.all((lse[seen].double() - ref_lse[seen]).abs() <= bound)
    return [accuracy(out, ref, plain, input_scale=factor)]


@pytest.mark.parametrize("causal", [False, True], ids=["full", "causal"])
@pytest.mark.parametrize("dtype", DTYPES, ids=["f16", "bf16"])
@pytest.mark.parametrize("D", [64, 128])
@pytest.mark.parametrize("size", SIZES, ids=lambda s: f"{s[0]}x{s[1]}")
def test_sizes(attention, seed, size, D, dtype, causal):
    generator = torch.Generator().manual_seed(seed)
    hold(lambda: judge(attention, generator, (1, 1, *size, D), dtype, causal))


def strided(x):
    """The same values as every second row of a larger tensor."""
    wide = torch.full((*x.shape[:2], 2 * x.shape[2], x.shape[3]), torch.nan, dtype=x.dtype)
    wide[:, :, ::2] = x
    return wide[:, :, ::2]


def heads_last(x):
    """The same values, stored as [B, N, H, D]."""
    return x.transpose(1, 2).contiguous().transpose(1, 2)


def unaligned(x):
    """The same values, one element past an aligned address: no vector access is possible."""
    flat = torch.empty(x.numel() + 1, dtype=x.dtype)
    flat[1:] = x.flatten()
    return flat[1:].view(x.shape)


@pytest.mark.parametrize("arrange", [strided, heads_last, unaligned], ids=lambda f: f.__name__)
@pytest.mark.parametrize("dtype", DTYPES, ids=["f16", "bf16"])
@pytest.mark.parametrize("D", [64, 128])
def test_arrangements(attention, seed, arrange, dtype, D):
    generator = torch.Generator().manual_seed(seed)
    hold(lambda: judge(attention, generator, (2, 3, 113, 203, D), dtype, True, arrange))


@pytest.mark.parametrize("causal", [False, True], ids=["full", "causal"])
@pytest.mark.parametrize("dtype", DTYPES, ids=["f16", "bf16"])
@pytest.mark.parametrize("D", [64, 128])
def test_large_inputs(attention, seed, dtype, causal, D):
    generator = torch.Generator().manual_seed(seed)
    hold(lambda: judge(attention, generator, (1, 2, 113, 203, D), dtype, causal, factor=100.0))


@pytest.mark.parametrize("dtype", DTYPES, ids=["f16", "bf16"])
def test_rows_that_attend_to_nothing(attention, seed, dtype):
    """Causal with N > M: the first N - M queries come before every key."""
    generator = torch.Generator().manual_seed(seed)
    hold(lambda: judge(attention, generator, (1, 1, 200, 130, 64), dtype, True))
    q, k, v = (torch.randn(1, 1, n, 64, generator=generator).to(dtype) for n in (200, 130, 130))
    out, lse = attention(q, k, v, causal=True)
    assert torch.all(out[:, :, :70] == 0) and torch.all(lse[:, :, :70] == -torch.inf)


def test_refuses_what_it_cannot_take(attention):
    q = torch.zeros(1, 1, 16, 80, dtype=torch.float16)
    with pytest.raises(ValueError, match="head size of 64 or 128, but got 80"):
        attention(q, q, q)
    q = torch.zeros(1, 1, 64, 64, dtype=torch.float16).transpose(2, 3)
    with pytest.raises(ValueError, match="last stride of 1"):
        attention(q, q, q)
