# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""SEMA end to end, on sequences and on grids: results and all gradients against float64, by the accuracy rule."""

import functools

import pytest
import torch
import weft
from weft.testing import drawn, judge
from weft.testing import sema as formula

DTYPES = {"f16": torch.float16, "bf16": torch.bfloat16}
TYPES = ["f16", pytest.param("bf16", marks=pytest.mark.slow)]


def inputs(randn, *, tokens, head, heads=2, kv_heads=2, batch=1, values=None, taps=3, flat=True, bias=False):
    """q, k, v, LePE's weight and perhaps its bias, as weft.attention.sema takes them."""
    values = values or head
    weight = (kv_heads * values, 1, taps) if flat else (kv_heads * values, 1, taps, taps)
    tensors = {
        "q": randn(batch, heads, tokens, head),
        "k": randn(batch, kv_heads, tokens, head),
        "v": randn(batch, kv_heads, tokens, values),
        "lepe_weight": randn(*weight),
    }
    return tensors | ({"lepe_bias": randn(kv_heads * values)} if bias else {})


def check(seed, held, dtype, sizes, **options):
    generator = torch.Generator().manual_seed(seed)
    draw = functools.partial(inputs, **sizes)
    held(
        "SEMA",
        lambda: judge(
            functools.partial(weft.attention.sema, **options),
            functools.partial(formula, **options),
            drawn(draw, dtype, generator),
            generator=generator,
            products_as_given=not options.get("rope", True),
        ),
    )


SEQUENCES = {
    "window divides": ({"tokens": 128, "head": 64}, {"window": 32}),
    "ragged window": ({"tokens": 150, "head": 64}, {"window": 64}),
    "narrow window": ({"tokens": 100, "head": 32}, {"window": 16}),
    "window of everything": ({"tokens": 70, "head": 64}, {"window": 1024}),
    "head of 72, no rope": ({"tokens": 40, "head": 72}, {"window": 32, "rope": False}),
    "head of 96": ({"tokens": 96, "head": 96}, {"window": 48}),
    "head of 128": ({"tokens": 96, "head": 128}, {"window": 64}),
    "grouped heads": ({"tokens": 130, "head": 64, "heads": 4}, {"window": 50}),
    "batches, five taps, bias": ({"tokens": 90, "head": 32, "batch": 2, "taps": 5, "bias": True}, {"window": 32}),
    "as printed": ({"tokens": 128, "head": 32}, {"window": 32, "scale": 1.0, "rope_values": True}),
    "no rope": ({"tokens": 128, "head": 64}, {"window": 32, "rope": False}),
    "no mean": ({"tokens": 128, "head": 64}, {"window": 32, "mean": False}),
    "one token": ({"tokens": 1, "head": 64}, {"window": 32}),
}
GRIDS = {
    "7x7": ({"tokens": 14 * 14, "head": 32, "flat": False}, {"window": (7, 7), "grid": (14, 14)}),
    "8x8, ragged": ({"tokens": 12 * 18, "head": 32, "flat": False}, {"window": (8, 8), "grid": (12, 18)}),
    "14x14": ({"tokens": 14 * 20, "head": 64, "flat": False}, {"window": (14, 14), "grid": (14, 20)}),
    "flat": ({"tokens": 12 * 10, "head": 32, "flat": False}, {"window": (7, 4), "grid": (12, 10), "rope_2d": "flat"}),
    "5x5 taps, bias": (
        {"tokens": 70, "head": 32, "flat": False, "taps": 5, "bias": True},
        {"window": (7, 7), "grid": (7, 10)},
    ),
    "as printed": (
        {"tokens": 14 * 14, "head": 32, "flat": False},
        {"window": (7, 7), "grid": (14, 14), "scale": 1.0, "rope_values": True},
    ),
}


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("name", SEQUENCES)
def test_on_a_sequence(name, dtype, seed, held):
    sizes, options = SEQUENCES[name]
    check(seed, held, DTYPES[dtype], sizes, **options)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("name", GRIDS)
def test_on_a_grid(name, dtype, seed, held):
    sizes, options = GRIDS[name]
    check(seed, held, DTYPES[dtype], sizes, **options)


@pytest.mark.slow
@pytest.mark.parametrize("window", [16, 64, 256, 1024])
@pytest.mark.parametrize("head", [32, 64, 96, 128])
def test_windows_and_heads(window, head, seed, held):
    check(seed, held, torch.float16, {"tokens": 1100, "head": head, "heads": 1, "kv_heads": 1}, window=window)


#: The plain form of 56×56 tokens takes minutes: the paper's window only.
SIDES = [(window, side) for side in (7, 14, 28) for window in ((7, 7), (8, 8), (14, 14))] + [((7, 7), 56)]


@pytest.mark.slow
@pytest.mark.parametrize(("window", "side"), SIDES, ids=str)
def test_grids_and_windows(window, side, seed, held):
    sizes = {"tokens": side * side, "head": 32, "flat": False, "heads": 1, "kv_heads": 1}
    check(seed, held, torch.float16, sizes, window=window, grid=(side, side))
