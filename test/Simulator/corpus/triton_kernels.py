# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Triton kernels of the corpus: elementwise, reductions, scans, sorting, atomics, products."""

import triton
import triton.language as tl


@triton.jit
def add(x, y, z, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < n
    tl.store(z + at, tl.load(x + at, mask) + tl.load(y + at, mask), mask)


@triton.jit
def softmax(x, y, columns, stride, BLOCK: tl.constexpr):
    row, at = tl.program_id(0), tl.arange(0, BLOCK)
    value = tl.load(x + row * stride + at, at < columns, other=-float("inf"))
    value = tl.exp(value - tl.max(value, 0))
    tl.store(y + row * stride + at, value / tl.sum(value, 0), at < columns)


@triton.jit
def layer_norm(x, weight, bias, y, columns, eps, BLOCK: tl.constexpr):
    row, at = tl.program_id(0), tl.arange(0, BLOCK)
    mask = at < columns
    value = tl.load(x + row * columns + at, mask, other=0.0)
    mean = tl.sum(value, 0) / columns
    centred = tl.where(mask, value - mean, 0.0)
    scale = 1 / tl.sqrt(tl.sum(centred * centred, 0) / columns + eps)
    result = centred * scale * tl.load(weight + at, mask) + tl.load(bias + at, mask)
    tl.store(y + row * columns + at, result, mask)


@triton.jit
def cumulative_sum(x, y, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    at = tl.arange(0, ROWS)[:, None] * COLUMNS + tl.arange(0, COLUMNS)[None, :]
    tl.store(y + at, tl.cumsum(tl.load(x + at), 1))


@triton.jit
def compose(a1, b1, a2, b2):
    return a1 * a2, b1 * a2 + b2


@triton.jit
def linear_recurrence(a, b, y, LENGTH: tl.constexpr):
    at = tl.program_id(0) * LENGTH + tl.arange(0, LENGTH)
    _, state = tl.associative_scan((tl.load(a + at), tl.load(b + at)), 0, compose)
    tl.store(y + at, state)


@triton.jit
def sort_rows(x, y, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    at = tl.arange(0, ROWS)[:, None] * COLUMNS + tl.arange(0, COLUMNS)[None, :]
    tl.store(y + at, tl.sort(tl.load(x + at), 1))


@triton.jit
def histogram(x, counts, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.atomic_add(counts + tl.load(x + at, at < n, other=0), 1, at < n)


@triton.jit
def extremes(x, values, places, COLUMNS: tl.constexpr):
    row = tl.program_id(0)
    data = tl.load(x + row * COLUMNS + tl.arange(0, COLUMNS))
    tl.store(values + row, tl.max(data, 0))
    tl.store(places + row * 2, tl.argmax(data, 0))
    tl.store(places + row * 2 + 1, tl.argmin(data, 0))


@triton.jit
def convert(x, halfs, bfloats, ints, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    value = tl.load(x + at)
    tl.store(halfs + at, value.to(tl.float16))
    tl.store(bfloats + at, value.to(tl.bfloat16))
    tl.store(ints + at, value.to(tl.int32) // 3)


@triton.jit
def matmul(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    columns = tl.program_id(1) * BN + tl.arange(0, BN)
    inner = tl.arange(0, BK)
    pa = a + rows[:, None] * K + inner[None, :]
    pb = b + inner[:, None] * N + columns[None, :]
    total = tl.zeros((BM, BN), tl.float32)
    for k in range(0, K, BK):
        left = tl.load(pa, (rows[:, None] < M) & (inner[None, :] + k < K), other=0.0)
        right = tl.load(pb, (inner[:, None] + k < K) & (columns[None, :] < N), other=0.0)
        total = tl.dot(left, right, total)
        pa += BK
        pb += BK * N
    mask = (rows[:, None] < M) & (columns[None, :] < N)
    tl.store(c + rows[:, None] * N + columns[None, :], total.to(c.dtype.element_ty), mask)


@triton.jit
def integer_matmul(a, b, c, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    rows, columns, inner = tl.arange(0, BM), tl.arange(0, BN), tl.arange(0, BK)
    total = tl.zeros((BM, BN), tl.int32)
    for k in range(0, K, BK):
        left = tl.load(a + rows[:, None] * K + k + inner[None, :])
        right = tl.load(b + (k + inner[:, None]) * BN + columns[None, :])
        total += tl.dot(left, right, out_dtype=tl.int32)
    tl.store(c + rows[:, None] * BN + columns[None, :], total)


@triton.jit
def dropout(x, y, n, seed, keep, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    kept = tl.rand(seed, at) < keep
    tl.store(y + at, tl.where(kept, tl.load(x + at, at < n, other=0.0) / keep, 0.0), at < n)


@triton.jit
def locked_sum(x, lock, total, COLUMNS: tl.constexpr):
    partial = tl.sum(tl.load(x + tl.program_id(0) * COLUMNS + tl.arange(0, COLUMNS)), 0)
    while tl.atomic_cas(lock, 0, 1) == 1:
        pass
    tl.store(total, tl.load(total) + partial)
    tl.atomic_xchg(lock, 0)
