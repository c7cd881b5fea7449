# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Flash attention in Triton, forward and backward, causal or not; q, k and v are [heads, n, D] of f16."""

import triton
import triton.language as tl


@triton.jit
def attention_forward(
    q, k, v, o, lse, n, scale, CAUSAL: tl.constexpr, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr
):
    head = tl.program_id(1) * n * D
    rows, columns, d = tl.program_id(0) * BM + tl.arange(0, BM), tl.arange(0, BN), tl.arange(0, D)
    query = tl.load(q + head + rows[:, None] * D + d[None, :], rows[:, None] < n, other=0.0)
    top = tl.full((BM,), -float("inf"), tl.float32)
    total = tl.zeros((BM,), tl.float32)
    result = tl.zeros((BM, D), tl.float32)
    end = tl.minimum(n, (tl.program_id(0) + 1) * BM) if CAUSAL else n
    for start in range(0, end, BN):
        at = start + columns
        key = tl.load(k + head + at[None, :] * D + d[:, None], at[None, :] < n, other=0.0)
        score = tl.dot(query, key) * (scale * 1.44269504)
        valid = at[None, :] < n
        if CAUSAL:
            valid = valid & (at[None, :] <= rows[:, None])
        score = tl.where(valid, score, -float("inf"))
        higher = tl.maximum(top, tl.max(score, 1))
        p = tl.exp2(score - higher[:, None])
        correction = tl.exp2(top - higher)
        value = tl.load(v + head + at[:, None] * D + d[None, :], at[:, None] < n, other=0.0)
        result = tl.dot(p.to(tl.float16), value, result * correction[:, None])
        total = total * correction + tl.sum(p, 1)
        top = higher
    tl.store(o + head + rows[:, None] * D + d[None, :], (result / total[:, None]).to(tl.float16), rows[:, None] < n)
    tl.store(lse + tl.program_id(1) * n + rows, top + tl.log2(total), rows < n)


@triton.jit
def attention_backward_kv(
    q, k, v, do, lse, delta, dk, dv, n, scale, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr
):
    head = tl.program_id(1) * n * D
    rows, columns, d = tl.arange(0, BM), tl.program_id(0) * BN + tl.arange(0, BN), tl.arange(0, D)
    own = head + columns[:, None] * D + d[None, :]
    inside = columns[:, None] < n
    key, value = tl.load(k + own, inside, other=0.0), tl.load(v + own, inside, other=0.0)
    key_sum = tl.zeros((BN, D), tl.float32)
    value_sum = tl.zeros((BN, D), tl.float32)
    for start in range(0, n, BM):
        at = start + rows
        place = head + at[:, None] * D + d[None, :]
        query = tl.load(q + place, at[:, None] < n, other=0.0)
        gradient = tl.load(do + place, at[:, None] < n, other=0.0)
        log = tl.load(lse + tl.program_id(1) * n + at, at < n, other=0.0)
        correction = tl.load(delta + tl.program_id(1) * n + at, at < n, other=0.0)
        p = tl.exp2(tl.dot(query, tl.trans(key)) * (scale * 1.44269504) - log[:, None])
        p = tl.where((at[:, None] < n) & (columns[None, :] < n), p, 0.0)
        value_sum = tl.dot(tl.trans(p.to(tl.float16)), gradient, value_sum)
        ds = p * (tl.dot(gradient, tl.trans(value)) - correction[:, None]) * scale
        key_sum = tl.dot(tl.trans(ds.to(tl.float16)), query, key_sum)
    tl.store(dk + own, key_sum.to(tl.float16), inside)
    tl.store(dv + own, value_sum.to(tl.float16), inside)


@triton.jit
def attention_backward_q(q, k, v, do, lse, delta, dq, n, scale, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
    head = tl.program_id(1) * n * D
    rows, columns, d = tl.program_id(0) * BM + tl.arange(0, BM), tl.arange(0, BN), tl.arange(0, D)
    own = head + rows[:, None] * D + d[None, :]
    inside = rows[:, None] < n
    query, gradient = tl.load(q + own, inside, other=0.0), tl.load(do + own, inside, other=0.0)
    log = tl.load(lse + tl.program_id(1) * n + rows, rows < n, other=0.0)
    correction = tl.load(delta + tl.program_id(1) * n + rows, rows < n, other=0.0)
    total = tl.zeros((BM, D), tl.float32)
    for start in range(0, n, BN):
        at = start + columns
        place = head + at[:, None] * D + d[None, :]
        key, value = tl.load(k + place, at[:, None] < n, other=0.0), tl.load(v + place, at[:, None] < n, other=0.0)
        p = tl.exp2(tl.dot(query, tl.trans(key)) * (scale * 1.44269504) - log[:, None])
        p = tl.where(at[None, :] < n, p, 0.0)
        ds = p * (tl.dot(gradient, tl.trans(value)) - correction[:, None]) * scale
        total = tl.dot(ds.to(tl.float16), key, total)
    tl.store(dq + own, total.to(tl.float16), inside)
