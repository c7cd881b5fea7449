# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""The gated attention unit: results and all gradients against float64, by the accuracy rule."""

import functools

import pytest
import torch
import weft
from weft.testing import drawn, judge, masks
from weft.testing import gau as formula
from weft.testing.plans import counted

DTYPES = {"f16": torch.float16, "bf16": torch.bfloat16, "f32": torch.float32}
#: a pattern, and the dense mask that it means
PATTERNS = {
    "full": (None, lambda n: None),
    "causal": (weft.causal(), lambda n: masks.causal(n, n)),
    "window": (weft.window(20, 0), lambda n: masks.window(n, n, 20, 0)),
    "block window": (weft.block_window(32), lambda n: masks.block_window(n, n, 32, None)),
}


def inputs(randn, *, tokens, head, values, batch=1):
    """u, v, g, and scales and offsets of queries and keys, as weft.attention.gau takes them."""
    tensors = {"u": randn(batch, 1, tokens, head)}
    tensors |= {name: randn(batch, 1, tokens, values) for name in ("v", "g")}
    return tensors | {name: randn(head) for name in ("kappa_q", "mu_q", "kappa_k", "mu_k")}


def check(seed, held, pattern="full", dtype="f16", **sizes):
    generator = torch.Generator().manual_seed(seed)
    given, mask = PATTERNS[pattern]
    draw = functools.partial(inputs, **sizes)

    def judged():
        return judge(
            functools.partial(weft.attention.gau, pattern=given),
            functools.partial(formula, mask=mask(sizes["tokens"])),
            drawn(draw, DTYPES[dtype], generator),
            generator=generator,
            products_as_given=False,
        )

    held("GAU", judged)


@pytest.mark.parametrize("tokens", [1, 2, 63, 65, 113])
@pytest.mark.parametrize("pattern", ["full", "causal"])
def test_lengths(pattern, tokens, seed, held):
    # A norm over few rows' errors is a draw of few numbers, so short sequences come in batches.
    check(seed, held, pattern, tokens=tokens, head=64, values=64, batch=-(-100 // tokens))


@pytest.mark.parametrize("pattern", ["window", "block window"])
def test_windows(pattern, seed, held):
    check(seed, held, pattern, tokens=113, head=128, values=64)


@pytest.mark.parametrize(("dtype", "head", "values"), [("bf16", 128, 256), ("f32", 64, 96), ("f16", 128, 104)])
def test_types_and_sizes(dtype, head, values, seed, held):
    check(seed, held, "causal", dtype, tokens=65, head=head, values=values, batch=2)


@pytest.mark.parametrize(
    ("pattern", "tokens", "values"),
    [("full", 65, 1536), ("causal", 113, 520), ("causal", 2, 768), ("window", 63, 512), ("block window", 65, 264)],
)
def test_wide_values(pattern, tokens, values, seed, held):
    check(seed, held, pattern, tokens=tokens, head=128, values=values, batch=16 if tokens == 2 else 1)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["f16", "bf16"])
@pytest.mark.parametrize("pattern", PATTERNS)
@pytest.mark.parametrize("values", [64, 192, 512, 1536])
@pytest.mark.parametrize("head", [64, 128])
def test_grid(head, values, pattern, dtype, seed, held):
    check(seed, held, pattern, dtype, tokens=113, head=head, values=values)


@pytest.mark.slow
def test_wide_values_in_float32(seed, held):
    check(seed, held, "causal", "f32", tokens=65, head=64, values=320)


def test_the_work_of_wide_values(seed):
    """Scores once for each of six parts of the values' channels; backward for each of three, and for dk with dq."""
    torch.manual_seed(seed)
    tokens, d, Dv = 128, 128, 1536
    runs = counted(weft.program(lambda *given: weft.attention.gau(*given)), *inputs_of(tokens, d, Dv))
    assert runs["forward"].total("mma_macs") == tokens**2 * (6 * d + Dv) <= 1.5 * tokens**2 * (d + Dv)
    keys_and_queries = 3 * d + Dv
    multiplied = runs["backward"].total("mma_macs")
    assert multiplied == tokens**2 * (keys_and_queries + 3 * d + Dv) <= 1.12 * tokens**2 * (3 * d + 2 * Dv)


def inputs_of(tokens, head, values):
    return [x.half() for x in inputs(torch.randn, tokens=tokens, head=head, values=values).values()]


WRONG = {
    "u": ({"u": torch.zeros(1, 2, 8, 16)}, r"expected 'u' \[B, 1, N, d\], of 'u' and 'v': .*1 and 2"),
    "rank": ({"v": torch.zeros(8, 16)}, r"expected 'v' \[B, 1, N, Dv\], but got 2 axes"),
    "length": ({"g": torch.zeros(1, 1, 9, 24)}, r"expected 'g' \[B, 1, N, Dv\], of 'u' and 'v': .*8 and 9"),
    "channels": ({"g": torch.zeros(1, 1, 8, 16)}, r"expected 'g' \[B, 1, N, Dv\], of 'u' and 'v': .*24 and 16"),
    "type": ({"v": torch.zeros(1, 1, 8, 24).half()}, "expected 'v' of the type of 'u', fp32, but got fp16"),
    "kappa": ({"kappa_k": torch.zeros(24)}, r"expected 'kappa_k' \[d\], of the last size of 'u': .*16 and 24"),
    "mu": ({"mu_q": None}, r"expected 'mu_q' \[d\], but got 'NoneType'"),
}


@pytest.mark.parametrize("name", WRONG)
def test_errors_name_the_argument(name):
    wrong, message = WRONG[name]
    given = inputs(torch.zeros, tokens=8, head=16, values=24)
    with pytest.raises(weft.CompilationError, match=message):
        weft.attention.gau(**(given | wrong))


def test_gradients_by_differences():
    """Three tokens in float32, each gradient along a random direction."""
    torch.manual_seed(3)
    tensors = [x.double() for x in inputs(torch.randn, tokens=3, head=16, values=16).values()]
    mine = [x.float().requires_grad_() for x in tensors]
    weights = torch.randn(1, 1, 3, 16).double()
    (weft.attention.gau(*mine, weft.causal()) * weights.float()).sum().backward()
    mask = masks.causal(3, 3)
    for i, x in enumerate(mine):
        direction, step = torch.randn_like(tensors[i]), 1e-5
        ends = []
        for sign in (1, -1):
            moved = [t + sign * step * direction if j == i else t for j, t in enumerate(tensors)]
            ends.append((formula(*moved, mask=mask) * weights).sum())
        expected = (ends[0] - ends[1]) / (2 * step)
        assert abs((x.grad.double() * direction).sum() - expected) < 1e-4 * (1 + abs(expected)), i
