# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Sums, differences and products of 16-bit floats that are widened before and rounded behind: in the narrow type, with
the bits of f32 that is rounded; and the larger and smaller of two, widened or not."""

import re

import numpy as np
import pytest
import torch
import weft
import weft.language as wl

SIZE = 1 << 16
LEAST_NORMAL = 2.0**-126


@weft.jit
def combined(x, y, total, difference, product, halved, SIZE: wl.constexpr):
    at = wl.program_id(0) * SIZE + wl.arange(0, SIZE)
    a, b = wl.load(x + at).to(wl.float32), wl.load(y + at).to(wl.float32)
    wl.store(total + at, (a + b).to(x.dtype.element_ty))
    wl.store(difference + at, (a - b).to(x.dtype.element_ty))
    wl.store(product + at, (a * b).to(x.dtype.element_ty))
    wl.store(halved + at, (a * 0.5).to(x.dtype.element_ty))


def same(got, wanted):
    bits = got.view(torch.int16) == wanted.view(torch.int16)
    return bits | (got.isnan() & wanted.isnan())


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("target", ["sm_80", "sm_90a"])
@pytest.mark.parametrize("size", [32, 512])
def test_bits_are_those_of_rounded_f32(dtype, target, size, seed, monkeypatch):
    monkeypatch.setenv("WEFT_DEVICE", f"simulator:{target}")
    rng = np.random.default_rng(seed)
    x, y = (torch.from_numpy(rng.permutation(SIZE).astype(np.uint16).view(np.int16)).view(dtype) for _ in range(2))
    y[: SIZE // 2] = (x[: SIZE // 2].float() * torch.from_numpy(rng.uniform(-2, 2, SIZE // 2)).float()).to(dtype)
    results = [torch.full_like(x, torch.nan) for _ in range(4)]
    combined[(SIZE // size,)](x, y, *results, SIZE=size, num_warps=1)
    a, b = x.float(), y.float()
    wide = (a + b, a - b, a * b, a * 0.5)
    for got, exact, name in zip(results, wide, ("sum", "difference", "product", "half"), strict=True):
        wanted = exact.to(dtype)
        right = same(got, wanted)
        if dtype == torch.bfloat16 and name in ("product", "half"):
            # f32 has rounded these once already: either of the two nearest.
            below = exact.abs() < LEAST_NORMAL
            right |= below & ((got.view(torch.int16) - wanted.view(torch.int16)).abs() <= 1)
        assert right.all(), (name, x[~right][:4], y[~right][:4], got[~right][:4], wanted[~right][:4])


@pytest.mark.parametrize(("dtype", "target", "name"), [
    (wl.float16, "sm_80", "add.rn.f16x2"),
    (wl.bfloat16, "sm_80", "fma.rn.bf16x2"),
    (wl.bfloat16, "sm_90a", "add.rn.bf16x2"),
])  # fmt: skip
def test_pairs_are_an_instruction(dtype, target, name):
    kind = f"*{'fp16' if dtype == wl.float16 else 'bf16'}:16"
    signature = ", ".join(f"{each}:{kind}" for each in ("x", "y", "total", "difference", "product", "halved"))
    ptx = combined.compile(f"{signature}, SIZE=512", target=target, num_warps=1).ptx
    assert name in ptx and "cvt.rn" not in ptx


@weft.jit
def extrema(x, y, larger, bounded, n, SIZE: wl.constexpr):
    at = wl.program_id(0) * SIZE + wl.arange(0, SIZE)
    a = wl.load(x + at, at < n, other=-float("inf")).to(wl.float32)
    b = wl.load(y + at, at < n, other=-float("inf")).to(wl.float32)
    most = wl.full((SIZE,), -float("inf"), wl.float32)
    wl.store(larger + at, wl.maximum(wl.maximum(most, a), b), at < n)
    c = wl.load(x + at, at < n).to(wl.float32)
    wl.store(bounded + at, wl.minimum(wl.maximum(c, 0.5), 6.0), at < n)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("target", ["sm_80", "sm_90a"])
def test_extrema_are_those_of_float32(dtype, target, seed, monkeypatch):
    """All bits of 16, NaN and infinities among them; a row's end in the middle of a word."""
    monkeypatch.setenv("WEFT_DEVICE", f"simulator:{target}")
    rng, n = np.random.default_rng(seed), SIZE - 3
    x, y = (torch.from_numpy(rng.permutation(SIZE).astype(np.uint16).view(np.int16)).view(dtype) for _ in range(2))
    larger, bounded = torch.zeros(SIZE), torch.zeros_like(x)
    extrema[(SIZE // 512,)](x, y, larger, bounded, n, SIZE=512)
    a, b = (each.double().numpy()[:n] for each in (x, y))
    np.testing.assert_array_equal(larger.numpy()[:n], np.fmax(np.fmax(a, b), -np.inf))
    np.testing.assert_array_equal(bounded.double().numpy()[:n], np.fmin(np.fmax(a, 0.5), 6.0))


def test_extrema_take_two_at_once():
    kind = {"x": "fp16:16", "y": "fp16:16", "larger": "fp32:16", "bounded": "fp16:16"}
    signature = ", ".join(f"{name}:*{of}" for name, of in kind.items()) + ", n:i32, SIZE=512"
    ptx = extrema.compile(signature, target="sm_80").ptx
    assert re.search(r"\bmax\.f16x2", ptx) and re.search(r"\bmin\.f16x2", ptx) and "max.f32" not in ptx
