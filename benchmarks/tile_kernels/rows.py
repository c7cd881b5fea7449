# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Rows and elements: activations, softmax, cross entropy, transposition."""

import torch
import triton
import triton.language as tl
from torch.nn import functional

from . import Case, case, poisoned


@triton.jit
def add_kernel(x, y, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < n
    tl.store(out + at, tl.load(x + at, mask=mask) + tl.load(y + at, mask=mask), mask=mask)


@case("add f32", torch.float32)
@case("add bf16", torch.bfloat16)
def add(dtype):
    n = 9000
    x, y = torch.randn(n).to(dtype), torch.randn(n).to(dtype)
    arguments = {"x": x, "y": y, "out": poisoned(n, dtype=dtype), "n": n}
    return Case(add_kernel, (9,), arguments, {"BLOCK": 1024}, {"out": x.double() + y.double()})


@triton.jit
def gated_kernel(x, gate, out, columns, stride, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    for start in range(0, columns, BLOCK):
        at = start + tl.arange(0, BLOCK)
        mask = at < columns
        a = tl.load(x + row * stride + at, mask=mask, other=0.0).to(tl.float32)
        g = tl.load(gate + row * stride + at, mask=mask, other=0.0).to(tl.float32)
        y = a * g * tl.sigmoid(g)
        tl.store(out + row * stride + at, y.to(out.dtype.element_ty), mask=mask)


@case("gated silu bf16")
def gated():
    x, g = (torch.randn(8, 3000).bfloat16() for _ in range(2))
    arguments = {"x": x, "gate": g, "out": poisoned(8, 3000, dtype=x.dtype), "columns": 3000, "stride": 3000}
    return Case(gated_kernel, (8,), arguments, {"BLOCK": 1024}, {"out": x.double() * functional.silu(g.double())})


@triton.jit
def gelu_kernel(x, out, M, N, stride, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    at = rows[:, None] * stride + columns[None, :]
    mask = (rows[:, None] < M) & (columns[None, :] < N)
    a = tl.load(x + at, mask=mask, other=0.0).to(tl.float32)
    y = 0.5 * a * (1.0 + tl.erf(a * 0.7071067811865476))
    tl.store(out + at, y.to(out.dtype.element_ty), mask=mask)


@case("gelu of a matrix f16")
def gelu():
    x = torch.randn(100, 250).half()
    arguments = {"x": x, "out": poisoned(100, 250, dtype=x.dtype), "M": 100, "N": 250, "stride": 250}
    constants = {"BLOCK_M": 32, "BLOCK_N": 128}
    return Case(gelu_kernel, (4, 2), arguments, constants, {"out": functional.gelu(x.double())})


@triton.jit
def softmax_kernel(x, out, columns, stride, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    a = tl.load(x + row * stride + at, mask=at < columns, other=-float("inf")).to(tl.float32)
    e = tl.exp(a - tl.max(a, 0))
    tl.store(out + row * stride + at, (e / tl.sum(e, 0)).to(out.dtype.element_ty), mask=at < columns)


@case("softmax f32", torch.float32, 1000)
@case("softmax f16, 4 096 columns", torch.float16, 4096)
def softmax(dtype, columns):
    x = (torch.randn(8, columns) * 3).to(dtype)
    arguments = {"x": x, "out": poisoned(8, columns, dtype=dtype), "columns": columns, "stride": columns}
    block = triton.next_power_of_2(columns)
    return Case(softmax_kernel, (8,), arguments, {"BLOCK": block}, {"out": x.double().softmax(-1)})


@triton.jit
def online_softmax_kernel(x, out, columns, stride, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    highest = tl.full([BLOCK], -float("inf"), tl.float32)
    total = tl.zeros([BLOCK], tl.float32)
    for start in range(0, columns, BLOCK):
        at = start + tl.arange(0, BLOCK)
        a = tl.load(x + row * stride + at, mask=at < columns, other=-float("inf")).to(tl.float32)
        new = tl.maximum(highest, a)
        shift = tl.where(new == -float("inf"), 0.0, new)
        total = total * tl.exp(highest - shift) + tl.exp(a - shift)
        highest = new
    top = tl.max(highest, 0)
    whole = tl.sum(total * tl.exp(highest - top), 0)
    for start in range(0, columns, BLOCK):
        at = start + tl.arange(0, BLOCK)
        a = tl.load(x + row * stride + at, mask=at < columns, other=-float("inf")).to(tl.float32)
        tl.store(out + row * stride + at, (tl.exp(a - top) / whole).to(out.dtype.element_ty), mask=at < columns)


@case("softmax in two passes bf16")
def online_softmax():
    x = (torch.randn(4, 5000) * 3).bfloat16()
    arguments = {"x": x, "out": poisoned(4, 5000, dtype=x.dtype), "columns": 5000, "stride": 5000}
    return Case(online_softmax_kernel, (4,), arguments, {"BLOCK": 1024}, {"out": x.double().softmax(-1)})


@triton.jit
def softmax_backward_kernel(y, dy, dx, columns, BLOCK: tl.constexpr, ROWS: tl.constexpr):
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    at = rows[:, None] * columns + tl.arange(0, BLOCK)[None, :]
    mask = tl.arange(0, BLOCK)[None, :] < columns
    a = tl.load(y + at, mask=mask, other=0.0).to(tl.float32)
    g = tl.load(dy + at, mask=mask, other=0.0).to(tl.float32)
    d = a * (g - tl.sum(a * g, 1)[:, None])
    tl.store(dx + at, d.to(dx.dtype.element_ty), mask=mask)


@case("softmax backward f16, 4 rows a program")
def softmax_backward():
    y, g = torch.randn(16, 480).softmax(-1).half(), torch.randn(16, 480).half()
    arguments = {"y": y, "dy": g, "dx": poisoned(16, 480, dtype=y.dtype), "columns": 480}
    exact = y.double() * (g.double() - (y.double() * g.double()).sum(-1, keepdim=True))
    return Case(softmax_backward_kernel, (4,), arguments, {"BLOCK": 512, "ROWS": 4}, {"dx": exact})


@triton.jit
def cross_entropy_kernel(logits, labels, loss, lse, classes, stride, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    label = tl.load(labels + row)
    highest = -float("inf")
    total = 0.0
    for start in range(0, classes, BLOCK):
        at = start + tl.arange(0, BLOCK)
        a = tl.load(logits + row * stride + at, mask=at < classes, other=-float("inf")).to(tl.float32)
        new = tl.maximum(highest, tl.max(a, 0))
        total = total * tl.exp(highest - new) + tl.sum(tl.exp(a - new), 0)
        highest = new
    sum_of_all = highest + tl.log(total)
    picked = tl.load(logits + row * stride + label).to(tl.float32)
    tl.store(lse + row, sum_of_all)
    tl.store(loss + row, tl.where(label >= 0, sum_of_all - picked, 0.0))


@case("cross entropy bf16")
def cross_entropy():
    x, labels = torch.randn(6, 3001).bfloat16(), torch.randint(0, 3001, (6,))
    arguments = {"logits": x, "labels": labels, "loss": poisoned(6), "lse": poisoned(6), "classes": 3001}
    lse = x.double().logsumexp(-1)
    expected = {"loss": lse - x.double()[torch.arange(6), labels], "lse": lse}
    return Case(cross_entropy_kernel, (6,), arguments | {"stride": 3001}, {"BLOCK": 1024}, expected)


@triton.jit
def cross_entropy_backward_kernel(logits, labels, lse, grad, classes, stride, scale, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    label = tl.load(labels + row)
    a = tl.load(logits + row * stride + at, mask=at < classes, other=-float("inf")).to(tl.float32)
    p = tl.exp(a - tl.load(lse + row))
    d = (p - tl.where(at == label, 1.0, 0.0)) * scale
    tl.store(grad + row * stride + at, d.to(grad.dtype.element_ty), mask=at < classes)


@case("cross entropy backward bf16")
def cross_entropy_backward():
    x, labels = torch.randn(6, 3008).bfloat16(), torch.randint(0, 3008, (6,))
    lse = x.double().logsumexp(-1).float()
    arguments = {"logits": x, "labels": labels, "lse": lse, "grad": poisoned(6, 3008, dtype=x.dtype), "classes": 3008}
    exact = ((x.double() - lse.double()[:, None]).exp() - functional.one_hot(labels, 3008)) * 0.25
    arguments |= {"stride": 3008, "scale": 0.25}
    return Case(cross_entropy_backward_kernel, (6, 3), arguments, {"BLOCK": 1024}, {"grad": exact})


@triton.jit
def transpose_kernel(x, out, M, N, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    a = tl.load(x + rows[:, None] * N + columns[None, :], mask=(rows[:, None] < M) & (columns[None, :] < N))
    mask = (columns[:, None] < N) & (rows[None, :] < M)
    tl.store(out + columns[:, None] * M + rows[None, :], tl.trans(a), mask=mask)


@case("transpose f16", torch.float16)
@case("transpose f32", torch.float32)
@case("transpose int8", torch.int8)
def transpose(dtype):
    x = (torch.randn(128, 192) if dtype.is_floating_point else torch.randint(-128, 128, (128, 192))).to(dtype)
    arguments = {"x": x, "out": poisoned(192, 128, dtype=dtype), "M": 128, "N": 192}
    return Case(transpose_kernel, (2, 3), arguments, {"BLOCK_M": 64, "BLOCK_N": 64}, {"out": x.T.double()})


@triton.jit
def column_sum_kernel(x, out, M, N, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):
    columns = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    total = tl.zeros([BLOCK_M, BLOCK_N], tl.float32)
    for start in range(0, M, BLOCK_M):
        rows = start + tl.arange(0, BLOCK_M)
        mask = (rows[:, None] < M) & (columns[None, :] < N)
        total += tl.load(x + rows[:, None] * N + columns[None, :], mask=mask, other=0.0)
    tl.store(out + columns, tl.sum(total, 0), mask=columns < N)


@case("sum of columns f32")
def column_sum():
    x = torch.randn(200, 256)
    arguments = {"x": x, "out": poisoned(256), "M": 200, "N": 256}
    return Case(column_sum_kernel, (4,), arguments, {"BLOCK_M": 32, "BLOCK_N": 64}, {"out": x.double().sum(0)})
