# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""The gated attention unit: results and all gradients against float64, by the accuracy rule."""

import functools

import pytest
import torch
import weft
from weft.testing import drawn, judge, masks
from weft.testing import gau as formula

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
    held(
        "GAU",
        lambda: judge(
            functools.partial(weft.attention.gau, pattern=given),
            functools.partial(formula, mask=mask(sizes["tokens"])),
            drawn(draw, DTYPES[dtype], generator),
            generator=generator,
            products_as_given=False,
        ),
    )


@pytest.mark.parametrize("tokens", [1, 2, 63, 65, 113])
@pytest.mark.parametrize("pattern", ["full", "causal"])
def test_lengths(pattern, tokens, seed, held):
    # (A norm of few rows' errors is a draw of few numbers: short sequences come in batches.)
    check(seed, held, pattern, tokens=tokens, head=64, values=64, batch=-(-100 // tokens))


@pytest.mark.parametrize("pattern", ["window", "block window"])
def test_windows(pattern, seed, held):
    check(seed, held, pattern, tokens=113, head=128, values=64)


@pytest.mark.parametrize(("dtype", "head", "values"), [("bf16", 128, 256), ("f32", 64, 96), ("f16", 128, 104)])
def test_types_and_sizes(dtype, head, values, seed, held):
    check(seed, held, "causal", dtype, tokens=65, head=head, values=values, batch=2)
