# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Sums, differences and products of 16-bit floats that are widened before and rounded behind: in the narrow type, with
the bits of f32 that is rounded."""

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
