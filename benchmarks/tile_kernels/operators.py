# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Operators of tensor libraries: what is kept of a row, batches of odd rows, powers, sliding windows."""

import torch
import triton
import triton.language as tl
from torch.nn import functional
from triton.language.extra import libdevice

from . import Case, case, poisoned


@triton.jit
def keep_kernel(x, chosen, places, y, n, B: tl.constexpr):
    at = tl.program_id(0) * B + tl.arange(0, B)
    values = tl.load(x + at, mask=at < n)
    keep = tl.load(chosen + at, mask=at < n, other=0) != 0
    place = tl.load(places + tl.program_id(0)) + tl.cumsum(keep.to(tl.int32), 0) - 1
    tl.store(y + place, values, mask=keep)


@case("what is kept of rows f32")
def keep():
    n, B = 9000, 1024
    x, chosen = torch.randn(n), torch.randint(0, 2, (n,), dtype=torch.int8)
    counts = torch.stack([part.sum() for part in chosen.int().split(B)])
    places = (counts.cumsum(0) - counts).to(torch.int32)
    kept = x[chosen.bool()]
    given = {"x": x, "chosen": chosen, "places": places, "y": poisoned(len(kept)), "n": n}
    return Case(keep_kernel, (triton.cdiv(n, B),), given, {"B": B}, {"y": kept.double()})


@triton.jit
def batched_kernel(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    batch = tl.program_id(2).to(tl.int64)
    m, n = tl.program_id(0) * BM + tl.arange(0, BM), tl.program_id(1) * BN + tl.arange(0, BN)
    k = tl.arange(0, BK)
    a_at = a + batch * M * K + m[:, None] * K + k[None, :]
    b_at = b + batch * K * N + k[:, None] * N + n[None, :]
    total = tl.zeros((BM, BN), tl.float32)
    for i in range(0, K, BK):
        a_tile = tl.load(a_at, mask=(m < M)[:, None] & (k < K - i)[None, :], other=0.0)
        b_tile = tl.load(b_at, mask=(k < K - i)[:, None] & (n < N)[None, :], other=0.0)
        total = tl.dot(a_tile, b_tile, total)
        a_at += BK
        b_at += BK * N
    c_at = c + batch * M * N + m[:, None] * N + n[None, :]
    tl.store(c_at, total.to(c.dtype.element_ty), mask=(m < M)[:, None] & (n < N)[None, :])


@case("batched product of small odd matrices f16")
def batched():
    batches, M, N, K, tile = 3, 70, 50, 90, 32
    a, b = torch.randn(batches, M, K).half(), torch.randn(batches, K, N).half()
    given = {"a": a, "b": b, "c": poisoned(batches, M, N, dtype=torch.float16), "M": M, "N": N, "K": K}
    grid = (triton.cdiv(M, tile), triton.cdiv(N, tile), batches)
    sizes = {"BM": tile, "BN": tile, "BK": tile}
    return Case(batched_kernel, grid, given, sizes, {"c": a.double() @ b.double()}, 4, 2)


@triton.jit
def powers_kernel(x, out, columns, power, BLOCK: tl.constexpr):
    row, total = tl.program_id(0), tl.zeros((BLOCK,), tl.float32)
    for begin in range(0, columns, BLOCK):
        at = begin + tl.arange(0, BLOCK)
        total += libdevice.pow(tl.abs(tl.load(x + row * columns + at, mask=at < columns, other=0.0)), power)
    tl.store(out + row, tl.sum(total, 0))


@case("sums of powers of rows f32")
def powers():
    x, power = torch.randn(40, 900), 3
    given = {"x": x, "out": poisoned(40), "columns": 900, "power": power}
    return Case(powers_kernel, (40,), given, {"BLOCK": 512}, {"out": x.double().abs().pow(power).sum(1)})


@triton.jit
def window_kernel(x, out, n, WIDTH: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    largest = tl.full((BLOCK,), -float("inf"), tl.float32)
    for k in tl.static_range(WIDTH):
        largest = tl.maximum(largest, tl.load(x + at + k, mask=at + k < n, other=-float("inf")).to(tl.float32))
    tl.store(out + at, largest, mask=at < n)


@case("maxima of windows of 9 f16")
def window():
    n, width = 5000, 9
    x = torch.randn(n).half()
    maxima = functional.pad(x.double(), (0, width - 1), value=-torch.inf).unfold(0, width, 1).amax(1)
    given = {"x": x, "out": poisoned(n, dtype=torch.float16), "n": n}
    return Case(window_kernel, (triton.cdiv(n, 256),), given, {"WIDTH": width, "BLOCK": 256}, {"out": maxima})
