# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Sums over any axes, as gradients of what batches, heads and tokens share: right, and no dearer than their terms."""

import json
import secrets

import numpy as np
import pytest
from weft import native
from weft.testing.plans import instructions, run_plan

SIZES = {"B": 3, "H": 2, "N": 37, "M": 301}
#: axes of what is summed, and of the result; "1" in the place of an axis that is summed away
CASES = [
    (("B", "H", "N", "M"), ("H", "N", "M")),
    (("B", "H", "N", "M"), ("1", "1", "N", "M")),
    (("B", "4*H", "N", "M"), ("H", "N", "M")),
    (("B", "H", "N", "M"), ("B", "1", "N", "M")),
    (("B", "H", "N", "M"), ("H", "N", "1")),
    (("B", "H", "N", "M"), ("1", "H", "1", "1")),
    (("B", "H", "N", "M"), ("1", "1", "1", "M")),
    (("B", "H", "N", "M"), ("1", "1", "1", "1")),
    (("B", "H", "N"), ("H", "1")),
    (("B", "H", "N"), ("H", "N")),
    (("B", "4*H", "N", "1"), ("B", "H", "1", "1")),
    (("B", "H", "N", "72"), ("1", "H", "N", "72")),
    (("B", "4*H", "N", "72"), ("B", "H", "N", "72")),
    (("B", "H", "N", "8"), ("1", "H", "N", "8")),
    (("B", "12", "4", "3"), ("12", "4", "3")),
    (("B", "H", "N", "1"), ("1", "H", "N", "1")),
    (("B", "4*H", "1", "1"), ("B", "H", "1", "1")),
    (("B", "H"), ("1", "H")),
    (("B", "H"), ("B", "1")),
]


def size_of(axis):
    factor, _, symbol = axis.rpartition("*")
    return int(factor or 1) * (SIZES[symbol] if symbol in SIZES else int(symbol))


def expected_of(x, source, result):
    """The sum in float64; an axis of several heads to one of the result's is added up in runs."""
    x = x.astype(np.float64)
    aligned = ("1",) * (len(source) - len(result)) + tuple(result)
    for axis, (have, left) in enumerate(zip(source, aligned, strict=True)):
        count = size_of(left)
        runs = [*x.shape[:axis], count, size_of(have) // count, *x.shape[axis + 1 :]]
        x = x.reshape(runs).sum(axis + 1)
    return x.reshape([size_of(each) for each in result])


def compiled_sum(source, result, target, element="f32"):
    spelt = ", ".join(f'"{each}"' if "*" in each else each for each in source)
    tensor, sums = f"!attn.tensor<[{spelt}], {element}>", f"!attn.tensor<[{', '.join(result)}], f32>"
    text = f"""
func.func @f(%x: {tensor} {{attn.name = "x"}}, %h: !attn.tensor<[H], f32> {{attn.name = "h"}})
    -> ({sums} {{attn.name = "out"}}) attributes {{attn.program}} {{
  %s = attn.sum %x : {tensor} -> {sums}
  return %s : {sums}
}}
"""
    ptx, info, error = native.load("_compiler").Context().parse(text).compile(json.dumps({"target": target}))
    assert error is None, error
    return ptx, json.loads(info)


def heads():
    """An input that has as many heads as there are."""
    return np.zeros(SIZES["H"], np.float32)


def strided(x):
    """The same numbers further apart in memory."""
    wide = np.full([*(2 * size for size in x.shape[:-1]), x.shape[-1] + 5], np.nan, x.dtype)
    view = wide[tuple(slice(None, None, 2) for _ in x.shape[:-1])][..., : x.shape[-1]]
    view[...] = x
    return view


@pytest.mark.parametrize("target, element, apart", [("sm_80", "f32", False), ("sm_90a", "f16", True)])
@pytest.mark.parametrize("source, result", CASES, ids=[f"{'x'.join(a)}-{'x'.join(b)}" for a, b in CASES])
def test_any_axes(source, result, target, element, apart):
    seed = secrets.randbits(32)
    print(f"seed {seed}")
    x = np.random.default_rng(seed).standard_normal([size_of(each) for each in source])
    x = x.astype(np.float32 if element == "f32" else np.float16)
    ptx, info = compiled_sum(source, result, target, element)
    run = run_plan(ptx, info, "f", [strided(x) if apart else x, heads()])
    assert run.findings == []
    (found,) = run.outputs.values()
    expected = expected_of(x, source, result)
    terms = x.size // expected.size
    assert found.shape == expected.shape
    np.testing.assert_allclose(found, expected, rtol=0, atol=2e-7 * (terms + 8) * max(1, np.abs(x).max()))


@pytest.mark.parametrize(
    "source, result, most",
    [
        (("B", "H", "N", "M"), ("H", "N", "M"), 14),
        (("B", "H", "N", "72"), ("1", "H", "N", "72"), 14),
        (("B", "H", "N", "M"), ("H", "N", "1"), 16),
        (("B", "H", "N"), ("H", "1"), 20),
    ],
)
def test_cost(source, result, most, monkeypatch):
    """Instructions of a warp for 32 terms; a program that held 16 results took 1,200 for a table of pairs."""
    for name, size in {"B": 4, "N": 256, "M": 512}.items():
        monkeypatch.setitem(SIZES, name, size)
    ptx, info = compiled_sum(source, result, "sm_80")
    x = np.ones([size_of(each) for each in source], np.float32)
    run = run_plan(ptx, info, "f", [x, heads()], checks="none")
    assert sum(instructions(run).values()) / (x.size / 32) <= most
