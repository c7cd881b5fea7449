# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Rotary embeddings, gathers, scatters, histograms, sorting."""

import torch
import triton
import triton.language as tl

from . import Case, case, poisoned


@triton.jit
def rotary_kernel(x, cos, sin, out, T, HALF: tl.constexpr, BLOCK: tl.constexpr):
    head = tl.program_id(1).to(tl.int64)
    rows, half = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK), tl.arange(0, HALF)
    mask = rows[:, None] < T
    at = (head * T + rows)[:, None] * (2 * HALF) + half[None, :]
    angles = rows[:, None] * HALF + half[None, :]
    c, s = tl.load(cos + angles, mask=mask, other=0.0), tl.load(sin + angles, mask=mask, other=0.0)
    a, b = (
        tl.load(x + at, mask=mask, other=0.0).to(tl.float32),
        tl.load(x + at + HALF, mask=mask, other=0.0).to(tl.float32),
    )
    tl.store(out + at, (a * c - b * s).to(out.dtype.element_ty), mask=mask)
    tl.store(out + at + HALF, (a * s + b * c).to(out.dtype.element_ty), mask=mask)


@case("rotary embedding of halves bf16")
def rotary():
    H, T, D = 2, 100, 64
    x, angles = torch.randn(H, T, D).bfloat16(), torch.rand(T, D // 2) * 6
    c, s = angles.cos().double(), angles.sin().double()
    a, b = x.double().chunk(2, -1)
    arguments = {"x": x, "cos": angles.cos(), "sin": angles.sin(), "out": poisoned(H, T, D, dtype=x.dtype), "T": T}
    expected = {"out": torch.cat([a * c - b * s, a * s + b * c], -1)}
    return Case(rotary_kernel, (4, H), arguments, {"HALF": D // 2, "BLOCK": 32}, expected)


@triton.jit
def interleaved_kernel(x, cos, sin, out, T, D: tl.constexpr, BLOCK: tl.constexpr):
    rows, channels = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK), tl.arange(0, D)
    half = tl.arange(0, D // 2)
    at = rows[:, None] * D + channels[None, :]
    angles = rows[:, None] * (D // 2) + half[None, :]
    pairs = tl.reshape(tl.load(x + at).to(tl.float32), (BLOCK, D // 2, 2))
    a, b = tl.split(pairs)
    c, s = tl.load(cos + angles), tl.load(sin + angles)
    y = tl.interleave(a * c - b * s, a * s + b * c)
    tl.store(out + at, y.to(out.dtype.element_ty))


@case("rotary embedding of pairs f16")
def interleaved():
    T, D = 64, 128
    x, angles = torch.randn(T, D).half(), torch.rand(T, D // 2) * 6
    c, s = angles.cos().double(), angles.sin().double()
    a, b = x.double()[:, ::2], x.double()[:, 1::2]
    arguments = {"x": x, "cos": angles.cos(), "sin": angles.sin(), "out": poisoned(T, D, dtype=x.dtype), "T": T}
    expected = {"out": torch.stack([a * c - b * s, a * s + b * c], -1).reshape(T, D)}
    return Case(interleaved_kernel, (4,), arguments, {"D": D, "BLOCK": 16}, expected)


@triton.jit
def embedding_kernel(table, tokens, out, count, D: tl.constexpr, BLOCK: tl.constexpr):
    rows = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    channels = tl.arange(0, D)
    token = tl.load(tokens + rows, mask=rows < count, other=0).to(tl.int64)
    mask = rows[:, None] < count
    row = tl.load(table + token[:, None] * D + channels[None, :], mask=mask)
    tl.store(out + rows[:, None] * D + channels[None, :], row, mask=mask)


@case("rows of a table f16")
def embedding():
    table, tokens = torch.randn(200, 128).half(), torch.randint(0, 200, (50,))
    arguments = {"table": table, "tokens": tokens, "out": poisoned(50, 128, dtype=table.dtype), "count": 50}
    return Case(embedding_kernel, (4,), arguments, {"D": 128, "BLOCK": 16}, {"out": table[tokens].double()})


@triton.jit
def embedding_backward_kernel(grad, tokens, table_grad, count, D: tl.constexpr, BLOCK: tl.constexpr):
    rows = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    channels = tl.arange(0, D)
    token = tl.load(tokens + rows, mask=rows < count, other=0)
    mask = rows[:, None] < count
    g = tl.load(grad + rows[:, None] * D + channels[None, :], mask=mask, other=0.0)
    tl.atomic_add(table_grad + token[:, None] * D + channels[None, :], g, mask=mask)


@case("gradient of a table, by atomics f32")
def embedding_backward():
    grad, tokens = torch.randn(50, 128), torch.randint(0, 20, (50,)).int()
    exact = torch.zeros(20, 128).double().index_add_(0, tokens.long(), grad.double())
    arguments = {"grad": grad, "tokens": tokens, "table_grad": torch.zeros(20, 128), "count": 50}
    return Case(embedding_backward_kernel, (4,), arguments, {"D": 128, "BLOCK": 16}, {"table_grad": exact})


@triton.jit
def gather_kernel(x, index, out, N: tl.constexpr, M: tl.constexpr, ROWS: tl.constexpr):
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    a = tl.load(x + rows[:, None] * N + tl.arange(0, N)[None, :])
    at = rows[:, None] * M + tl.arange(0, M)[None, :]
    tl.store(out + at, tl.gather(a, tl.load(index + at), 1))


@case("gather within rows f32")
def gather():
    x, index = torch.randn(16, 64), torch.randint(0, 64, (16, 32)).int()
    arguments = {"x": x, "index": index, "out": poisoned(16, 32)}
    return Case(
        gather_kernel, (4,), arguments, {"N": 64, "M": 32, "ROWS": 4}, {"out": x.double().gather(1, index.long())}
    )


@triton.jit
def histogram_kernel(x, out, n, BINS: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    counts = tl.histogram(tl.load(x + at), BINS)
    tl.atomic_add(out + tl.arange(0, BINS), counts)


@case("histogram of 1 024 in 128 bins")
def histogram():
    x = torch.randint(0, 128, (4096,)).int()
    arguments = {"x": x, "out": torch.zeros(128, dtype=torch.int32), "n": 4096}
    exact = torch.bincount(x.long(), minlength=128).double()
    return Case(histogram_kernel, (4,), arguments, {"BINS": 128, "BLOCK": 1024}, {"out": exact})


@triton.jit
def sort_kernel(x, out, N: tl.constexpr, ROWS: tl.constexpr, DESCENDING: tl.constexpr):
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    at = rows[:, None] * N + tl.arange(0, N)[None, :]
    tl.store(out + at, tl.sort(tl.load(x + at), dim=1, descending=DESCENDING))


@case("sort of rows f32", torch.float32, 256)
@case("sort of rows i32", torch.int32, 64)
def sort(dtype, N):
    x = torch.randn(8, N) if dtype.is_floating_point else torch.randint(-999, 999, (8, N), dtype=dtype)
    arguments = {"x": x, "out": poisoned(8, N, dtype=dtype)}
    constants = {"N": N, "ROWS": 4, "DESCENDING": False}
    return Case(sort_kernel, (2,), arguments, constants, {"out": x.double().sort(-1).values})


@triton.jit
def top_k_kernel(x, out, N: tl.constexpr, K: tl.constexpr, ROWS: tl.constexpr):
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    a = tl.load(x + rows[:, None] * N + tl.arange(0, N)[None, :])
    tl.store(out + rows[:, None] * K + tl.arange(0, K)[None, :], tl.topk(a, K))


@case("top 8 of 256 f32")
def top_k():
    x = torch.randn(8, 256)
    arguments = {"x": x, "out": poisoned(8, 8)}
    return Case(top_k_kernel, (2,), arguments, {"N": 256, "K": 8, "ROWS": 4}, {"out": x.double().topk(8).values})


@triton.jit
def argmax_kernel(x, out, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    a = tl.load(x + row * columns + at, mask=at < columns, other=-float("inf"))
    tl.store(out + row, tl.argmax(a, 0))


@case("argmax of rows f32")
def argmax():
    x = torch.randn(8, 1000)
    arguments = {"x": x, "out": poisoned(8, dtype=torch.int32), "columns": 1000}
    return Case(argmax_kernel, (8,), arguments, {"BLOCK": 1024}, {"out": x.double().argmax(-1).double()})
