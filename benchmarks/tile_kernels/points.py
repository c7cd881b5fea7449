# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Points and features: pairs of points, neighbours by a table, counts of bins, rows in blocks."""

import torch
import triton
import triton.language as tl
from torch.nn import functional

from . import Case, case, poisoned


@triton.jit
def forces_kernel(y, p, forces, N, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    i = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    here = i < N
    x0, x1 = tl.load(y + 2 * i, mask=here, other=0.0), tl.load(y + 2 * i + 1, mask=here, other=0.0)
    f0, f1 = tl.zeros((ROWS,), tl.float32), tl.zeros((ROWS,), tl.float32)
    for first in range(0, N, COLUMNS):
        j = first + tl.arange(0, COLUMNS)
        there = j < N
        d0 = x0[:, None] - tl.load(y + 2 * j, mask=there, other=0.0)[None, :]
        d1 = x1[:, None] - tl.load(y + 2 * j + 1, mask=there, other=0.0)[None, :]
        near = 1.0 / (1.0 + d0 * d0 + d1 * d1)
        weights = tl.load(p + i[:, None] * N + j[None, :], mask=here[:, None] & there[None, :], other=0.0)
        pull = tl.where(here[:, None] & there[None, :], (weights - near) * near, 0.0)
        f0 += tl.sum(pull * d0, 1)
        f1 += tl.sum(pull * d1, 1)
    tl.store(forces + 2 * i, f0, mask=here)
    tl.store(forces + 2 * i + 1, f1, mask=here)


@case("forces between points of a plane f32")
def forces():
    N, tile = 200, 32
    y, p = torch.randn(N, 2), torch.rand(N, N)
    apart = y.double()[:, None] - y.double()
    near = 1 / (1 + apart.square().sum(-1))
    expected = (((p.double() - near) * near)[..., None] * apart).sum(1)
    given = {"y": y, "p": p, "forces": poisoned(N, 2), "N": N}
    return Case(forces_kernel, (triton.cdiv(N, tile),), given, {"ROWS": tile, "COLUMNS": tile}, {"forces": expected})


@triton.jit
def largest_mean_kernel(x, y, n: tl.constexpr, BINS: tl.constexpr, BLOCK: tl.constexpr):
    x += tl.program_id(0) * n
    most = float("-inf")
    for first in range(0, n, BLOCK):
        at = first + tl.arange(0, BLOCK)
        most = tl.maximum(most, tl.max(tl.load(x + at, mask=at < n, other=float("-inf"))))
    total, taken = 0.0, 0.0
    for bin in range(BINS):
        low, high = most - (bin + 1) / BINS, most - bin / BINS
        count = 0
        for first in range(0, n, BLOCK):
            at = first + tl.arange(0, BLOCK)
            value = tl.load(x + at, mask=at < n, other=float("-inf"))
            count += tl.sum(((value > low) & (value <= high)).to(tl.int32))
        is_early = taken < n / 8
        total = tl.where(is_early, total + count * (high + low) / 2, total)
        taken = tl.where(is_early, taken + count, taken)
    tl.store(y + tl.program_id(0), total / taken)


@case("means of the largest by counts of bins f32")
def largest_mean():
    rows, n, bins = 12, 300, 8
    x = torch.rand(rows, n) * 2
    edges = x.amax(1, keepdim=True) - torch.arange(bins + 1) / bins
    middles = ((edges[:, :-1] + edges[:, 1:]) / 2).double()
    within = (x[:, None] > edges[:, 1:, None]) & (x[:, None] <= edges[:, :-1, None])
    counts = within.sum(-1).double()
    early = counts.cumsum(1) - counts < n / 8
    expected = (counts * early * middles).sum(1) / (counts * early).sum(1)
    given = {"x": x, "y": poisoned(rows)}
    constants = {"n": n, "BINS": bins, "BLOCK": 32}
    return Case(largest_mean_kernel, (rows,), given, constants, {"y": expected}, warps=1)


@triton.jit
def pooled_kernel(features, table, y, M, C, stride, places, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    rows = (tl.program_id(0) * ROWS + tl.arange(0, ROWS)).to(tl.int64)
    columns = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    total = tl.zeros((ROWS, COLUMNS), tl.float32)
    for place in range(places):
        index = tl.load(table + place * M + rows, mask=rows < M, other=-1)
        found = index >= 0
        at = tl.where(found, index, 0).to(tl.int64)[:, None] * stride + columns[None, :]
        total += tl.load(features + at, mask=found[:, None] & (columns < C)[None, :], other=0.0)
    tl.store(y + rows[:, None] * C + columns[None, :], total, mask=(rows < M)[:, None] & (columns < C)[None, :])


@case("sums over neighbours by a table f32")
def pooled():
    M, C, places, points, tile = 90, 32, 9, 100, 32
    features = torch.randn(points, C)
    table = torch.randint(-1, points, (places, M), dtype=torch.int32)
    chosen = features.double()[table.long().clamp(min=0)] * (table >= 0)[..., None]
    given = {"features": features, "table": table, "y": poisoned(M, C), "M": M, "C": C, "stride": C}
    given |= {"places": places}
    grid = (triton.cdiv(M, tile), triton.cdiv(C, tile))
    return Case(pooled_kernel, grid, given, {"ROWS": tile, "COLUMNS": tile}, {"y": chosen.sum(0)}, warps=2)


@triton.jit
def gate_backward_kernel(gate, x, dy, dgate, dx, M, N, stride, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    for first in range(0, N, COLUMNS):
        columns = first + tl.arange(0, COLUMNS)
        at = rows[:, None] * stride + columns[None, :]
        mask = (rows < M)[:, None] & (columns < N)[None, :]
        g, d = tl.load(gate + at, mask=mask).to(tl.float32), tl.load(dy + at, mask=mask).to(tl.float32)
        s = tl.sigmoid(g)
        tl.store(dx + at, (d * s).to(dx.dtype.element_ty), mask=mask)
        d *= tl.load(x + at, mask=mask).to(tl.float32) * s * (1 - s)
        tl.store(dgate + at, d.to(dgate.dtype.element_ty), mask=mask)


@case("a sigmoid gate backward, rows in blocks bf16")
def gate_backward():
    M, N, rows, columns = 100, 96, 32, 32
    gate, x, dy = (torch.randn(M, N).bfloat16() for _ in range(3))
    leaves = [each.double().requires_grad_() for each in (gate, x)]
    (leaves[1] * functional.sigmoid(leaves[0])).backward(dy.double())
    given = {"gate": gate, "x": x, "dy": dy, "dgate": poisoned(M, N, dtype=gate.dtype)}
    given |= {"dx": poisoned(M, N, dtype=x.dtype), "M": M, "N": N, "stride": N}
    expected = {"dgate": leaves[0].grad, "dx": leaves[1].grad}
    sizes = {"ROWS": rows, "COLUMNS": columns}
    return Case(gate_backward_kernel, (triton.cdiv(M, rows),), given, sizes, expected)
