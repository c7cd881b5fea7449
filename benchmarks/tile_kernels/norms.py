# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Norms, forward and backward."""

import torch
import triton
import triton.language as tl
from torch.nn import functional

from . import Case, case, poisoned

EPS = 1e-5


@triton.jit
def layer_norm_kernel(x, y, weight, bias, mean, rstd, columns, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    mask = at < columns
    a = tl.load(x + row * columns + at, mask=mask, other=0.0).to(tl.float32)
    average = tl.sum(a, 0) / columns
    centred = tl.where(mask, a - average, 0.0)
    scale = 1 / tl.sqrt(tl.sum(centred * centred, 0) / columns + eps)
    tl.store(mean + row, average)
    tl.store(rstd + row, scale)
    w = tl.load(weight + at, mask=mask, other=0.0)
    b = tl.load(bias + at, mask=mask, other=0.0)
    tl.store(y + row * columns + at, (centred * scale * w + b).to(y.dtype.element_ty), mask=mask)


def statistics(x):
    x = x.double()
    return x.mean(-1), (x.var(-1, unbiased=False) + EPS).rsqrt()


@case("layer norm f16")
def layer_norm():
    x, w, b = torch.randn(8, 1000).half(), torch.randn(1000), torch.randn(1000)
    mean, rstd = statistics(x)
    exact = functional.layer_norm(x.double(), (1000,), w.double(), b.double(), EPS)
    arguments = {"x": x, "y": poisoned(8, 1000, dtype=x.dtype), "weight": w, "bias": b, "mean": poisoned(8)}
    arguments |= {"rstd": poisoned(8), "columns": 1000, "eps": EPS}
    return Case(layer_norm_kernel, (8,), arguments, {"BLOCK": 1024}, {"y": exact, "mean": mean, "rstd": rstd})


@triton.jit
def layer_norm_backward_kernel(
    x, dy, weight, mean, rstd, dx, dw_parts, db_parts, rows, columns, PROGRAMS: tl.constexpr, BLOCK: tl.constexpr
):
    program = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    mask = at < columns
    w = tl.load(weight + at, mask=mask, other=0.0)
    dw = tl.zeros([BLOCK], tl.float32)
    db = tl.zeros([BLOCK], tl.float32)
    for row in range(program, rows, PROGRAMS):
        a = tl.load(x + row * columns + at, mask=mask, other=0.0).to(tl.float32)
        g = tl.load(dy + row * columns + at, mask=mask, other=0.0).to(tl.float32)
        scale = tl.load(rstd + row)
        normal = tl.where(mask, (a - tl.load(mean + row)) * scale, 0.0)
        wg = w * g
        first = tl.sum(normal * wg, 0) / columns
        second = tl.sum(wg, 0) / columns
        d = (wg - (normal * first + second)) * scale
        tl.store(dx + row * columns + at, d.to(dx.dtype.element_ty), mask=mask)
        dw += g * normal
        db += g
    tl.store(dw_parts + program * columns + at, dw, mask=mask)
    tl.store(db_parts + program * columns + at, db, mask=mask)


@case("layer norm backward f16")
def layer_norm_backward():
    x, g, w = torch.randn(16, 480).half(), torch.randn(16, 480).half(), torch.randn(480)
    mean, rstd = statistics(x)
    leaf = x.double().requires_grad_()
    functional.layer_norm(leaf, (480,), w.double(), None, EPS).backward(g.double())
    normal = (x.double() - mean[:, None]) * rstd[:, None]
    dw, db = (g.double() * normal).reshape(4, 4, 480).sum(0), g.double().reshape(4, 4, 480).sum(0)
    arguments = {"x": x, "dy": g, "weight": w, "mean": mean.float(), "rstd": rstd.float()}
    arguments |= {"dx": poisoned(16, 480, dtype=x.dtype), "dw_parts": poisoned(4, 480), "db_parts": poisoned(4, 480)}
    constants = {"PROGRAMS": 4, "BLOCK": 512}
    expected = {"dx": leaf.grad, "dw_parts": dw, "db_parts": db}
    return Case(layer_norm_backward_kernel, (4,), arguments | {"rows": 16, "columns": 480}, constants, expected)


@triton.jit
def weight_gradient_kernel(parts, out, rows, columns, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):
    at = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    total = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for start in range(0, rows, BLOCK_M):
        row = start + tl.arange(0, BLOCK_M)
        mask = (row[:, None] < rows) & (at[None, :] < columns)
        total += tl.load(parts + row[:, None] * columns + at[None, :], mask=mask, other=0.0)
    tl.store(out + at, tl.sum(total, 0).to(out.dtype.element_ty), mask=at < columns)


@case("gradient of a norm's weight f16")
def weight_gradient():
    x = torch.randn(100, 480)
    arguments = {"parts": x, "out": poisoned(480, dtype=torch.float16), "rows": 100, "columns": 480}
    constants = {"BLOCK_M": 32, "BLOCK_N": 128}
    return Case(weight_gradient_kernel, (4,), arguments, constants, {"out": x.double().sum(0)})


@triton.jit
def rms_norm_kernel(x, residual, y, kept, weight, columns, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    mask = at < columns
    a = tl.load(x + row * columns + at, mask=mask, other=0.0).to(tl.float32)
    a += tl.load(residual + row * columns + at, mask=mask, other=0.0).to(tl.float32)
    tl.store(kept + row * columns + at, a.to(kept.dtype.element_ty), mask=mask)
    scale = tl.rsqrt(tl.sum(a * a, 0) / columns + eps)
    w = tl.load(weight + at, mask=mask, other=0.0).to(tl.float32)
    tl.store(y + row * columns + at, (a * scale * w).to(y.dtype.element_ty), mask=mask)


@case("RMS norm of a sum bf16")
def rms_norm():
    x, r, w = torch.randn(8, 2048).bfloat16(), torch.randn(8, 2048).bfloat16(), torch.randn(2048).bfloat16()
    total = x.double() + r.double()
    arguments = {"x": x, "residual": r, "y": poisoned(8, 2048, dtype=x.dtype), "kept": poisoned(8, 2048, dtype=x.dtype)}
    arguments |= {"weight": w, "columns": 2048, "eps": EPS}
    exact = functional.rms_norm(total, (2048,), w.double(), EPS)
    return Case(rms_norm_kernel, (8,), arguments, {"BLOCK": 2048}, {"y": exact, "kept": total}, warps=8)


@triton.jit
def rms_norm_backward_kernel(x, dy, weight, dx, columns, eps, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    at = tl.arange(0, BLOCK)
    mask = at[None, :] < columns
    where = rows[:, None] * columns + at[None, :]
    a = tl.load(x + where, mask=mask, other=0.0).to(tl.float32)
    g = tl.load(dy + where, mask=mask, other=0.0).to(tl.float32)
    g *= tl.load(weight + at, mask=at < columns, other=0.0).to(tl.float32)[None, :]
    scale = tl.rsqrt(tl.sum(a * a, 1) / columns + eps)
    along = tl.sum(a * g, 1) * scale * scale / columns
    tl.store(dx + where, ((g - a * along[:, None]) * scale[:, None]).to(dx.dtype.element_ty), mask=mask)


@case("RMS norm backward bf16, 8 rows a program")
def rms_norm_backward():
    x, g, w = torch.randn(16, 128).bfloat16(), torch.randn(16, 128).bfloat16(), torch.randn(128).bfloat16()
    leaf = x.double().requires_grad_()
    functional.rms_norm(leaf, (128,), w.double(), EPS).backward(g.double())
    arguments = {"x": x, "dy": g, "weight": w, "dx": poisoned(16, 128, dtype=x.dtype), "columns": 128, "eps": EPS}
    return Case(rms_norm_backward_kernel, (2,), arguments, {"ROWS": 8, "BLOCK": 128}, {"dx": leaf.grad})


@triton.jit
def group_norm_kernel(x, y, weight, bias, channels, size, eps, GROUP: tl.constexpr, BLOCK: tl.constexpr):
    sample, group = tl.program_id(0), tl.program_id(1)
    rows = group * GROUP + tl.arange(0, GROUP)
    at = tl.arange(0, BLOCK)
    where = (sample * channels + rows[:, None]) * size + at[None, :]
    mask = at[None, :] < size
    a = tl.load(x + where, mask=mask, other=0.0)
    count = size * GROUP
    average = tl.sum(a) / count
    centred = tl.where(mask, a - average, 0.0)
    scale = tl.rsqrt(tl.sum(centred * centred) / count + eps)
    w, b = tl.load(weight + rows), tl.load(bias + rows)
    tl.store(y + where, centred * scale * w[:, None] + b[:, None], mask=mask)


@case("group norm f32")
def group_norm():
    x, w, b = torch.randn(2, 32, 196), torch.randn(32), torch.randn(32)
    exact = functional.group_norm(x.double(), 4, w.double(), b.double(), EPS)
    arguments = {"x": x, "y": poisoned(2, 32, 196), "weight": w, "bias": b, "channels": 32, "size": 196, "eps": EPS}
    return Case(group_norm_kernel, (2, 4), arguments, {"GROUP": 8, "BLOCK": 256}, {"y": exact})
