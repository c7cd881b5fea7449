# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Stencils, scans by segments, state-space steps, unaligned operands, narrow formats: what fits no tile well."""

import torch
import triton
import triton.language as tl

from . import Case, case, poisoned


@triton.jit
def max_pool_kernel(x, out, H, W, OH, OW, n, K: tl.constexpr, STRIDE: tl.constexpr, PAD: tl.constexpr, B: tl.constexpr):
    place = tl.program_id(0) * B + tl.arange(0, B)
    column, row, image = place % OW, (place // OW) % OH, place // (OW * OH)
    best = tl.full((B,), float("-inf"), tl.float32)
    for i in range(K):
        for j in range(K):
            y, z = row * STRIDE - PAD + i, column * STRIDE - PAD + j
            inside = (place < n) & (y >= 0) & (y < H) & (z >= 0) & (z < W)
            best = tl.maximum(best, tl.load(x + (image * H + y) * W + z, mask=inside, other=float("-inf")))
    tl.store(out + place, best, mask=place < n)


@case("max pooling 3x3 f32")
def max_pool():
    x = torch.randn(6, 30, 31)
    y = torch.nn.functional.max_pool2d(x.double(), 3, 2, 1)
    _, OH, OW = y.shape
    arguments = {"x": x, "out": poisoned(*y.shape), "H": 30, "W": 31, "OH": OH, "OW": OW, "n": y.numel()}
    return Case(max_pool_kernel, (6,), arguments, {"K": 3, "STRIDE": 2, "PAD": 1, "B": 256}, {"out": y}, tolerance=0.0)


@triton.jit
def depthwise_kernel(x, w, out, H, W, C, K: tl.constexpr, BW: tl.constexpr, BC: tl.constexpr):
    row, columns = tl.program_id(0), tl.program_id(1) * BW + tl.arange(0, BW)
    channels = tl.arange(0, BC)
    exists = channels < C
    acc = tl.zeros((BW, BC), tl.float32)
    for i in range(K):
        for j in range(K):
            y, z = row + i - K // 2, columns + j - K // 2
            inside = (y >= 0) & (y < H) & (z >= 0)[:, None] & (z < W)[:, None] & exists[None, :]
            value = tl.load(x + (y * W + z[:, None]) * C + channels[None, :], mask=inside, other=0.0)
            weight = tl.load(w + (i * K + j) * C + channels, mask=exists, other=0.0)
            acc += value.to(tl.float32) * weight.to(tl.float32)[None, :]
    to = out + (row * W + columns[:, None]) * C + channels[None, :]
    tl.store(to, acc.to(out.dtype.element_ty), mask=(columns < W)[:, None] & exists[None, :])


@case("depthwise convolution 3x3 f16")
def depthwise():
    H, W, C = 10, 30, 48
    x, w = torch.randn(H, W, C).half(), torch.randn(3, 3, C).half()
    image, taps = x.double().permute(2, 0, 1)[None], w.double().permute(2, 0, 1)[:, None]
    y = torch.nn.functional.conv2d(image, taps, padding=1, groups=C)[0].permute(1, 2, 0)
    arguments = {"x": x, "w": w, "out": poisoned(H, W, C, dtype=x.dtype), "H": H, "W": W, "C": C}
    return Case(depthwise_kernel, (H, 2), arguments, {"K": 3, "BW": 16, "BC": 64}, {"out": y})


@triton.jit
def swapped_rotary_kernel(x, cos, sin, out, T, D, B: tl.constexpr, BD: tl.constexpr):
    rows, channels = tl.program_id(0) * B + tl.arange(0, B), tl.arange(0, BD)
    other, half = channels + ((channels + 1) % 2) * 2 - 1, channels // 2
    mask = (rows < T)[:, None] & (channels < D)[None, :]
    angles = rows[:, None] * (D // 2) + half[None, :]
    c, s = tl.load(cos + angles, mask=mask, other=1.0), tl.load(sin + angles, mask=mask, other=0.0)
    own = tl.load(x + rows[:, None] * D + channels[None, :], mask=mask, other=0.0).to(tl.float32)
    partner = tl.load(x + rows[:, None] * D + other[None, :], mask=mask, other=0.0).to(tl.float32)
    y = tl.where((channels % 2 == 0)[None, :], own * c - partner * s, own * c + partner * s)
    tl.store(out + rows[:, None] * D + channels[None, :], y.to(out.dtype.element_ty), mask=mask)


@case("rotary embedding of pairs, loaded twice, f16")
def swapped_rotary():
    T, D = 50, 48
    x, angles = torch.randn(T, D).half(), torch.rand(T, D // 2) * 6
    c, s = angles.cos().double(), angles.sin().double()
    a, b = x.double()[:, ::2], x.double()[:, 1::2]
    arguments = {"x": x, "cos": angles.cos(), "sin": angles.sin(), "out": poisoned(T, D, dtype=x.dtype), "T": T, "D": D}
    expected = {"out": torch.stack([a * c - b * s, b * c + a * s], -1).reshape(T, D)}
    return Case(swapped_rotary_kernel, (4,), arguments, {"B": 16, "BD": 64}, expected)


@triton.jit
def join_segments(x, own, y, other):
    return tl.where(own == other, x + y, y), other


@triton.jit
def segment_sum_kernel(x, segments, out, n, B: tl.constexpr):
    place = tl.program_id(0) * B + tl.arange(0, B)
    mask = place < n
    value, segment = tl.load(x + place, mask=mask, other=0.0), tl.load(segments + place, mask=mask, other=-1)
    total, _ = tl.associative_scan((value, segment), 0, join_segments)
    following = tl.load(segments + place + 1, mask=mask & (place + 1 < n), other=-2)
    last = mask & ((following != segment) | (tl.arange(0, B) == B - 1))
    tl.atomic_add(out + segment, total, mask=last)


@case("sums of sorted segments f32")
def segment_sum():
    n, count = 900, 40
    x, segments = torch.randn(n), torch.randint(0, count, (n,)).sort().values.int()
    y = torch.zeros(count, dtype=torch.double).index_add_(0, segments, x.double())
    arguments = {"x": x, "segments": segments, "out": torch.zeros(count), "n": n}
    return Case(segment_sum_kernel, (2,), arguments, {"B": 512}, {"out": y}, tolerance=1e-5)


@triton.jit
def state_space_kernel(u, dt, A, B, C, out, T, D, N: tl.constexpr, BD: tl.constexpr):
    channels, states = tl.program_id(0) * BD + tl.arange(0, BD), tl.arange(0, N)
    mask = channels < D
    rate = tl.load(A + channels[:, None] * N + states[None, :], mask=mask[:, None], other=0.0)
    state = tl.zeros((BD, N), tl.float32)
    for t in range(T):
        x = tl.load(u + t * D + channels, mask=mask, other=0.0).to(tl.float32)
        step = tl.load(dt + t * D + channels, mask=mask, other=0.0).to(tl.float32)
        b, c = tl.load(B + t * N + states).to(tl.float32), tl.load(C + t * N + states).to(tl.float32)
        state = tl.exp(step[:, None] * rate) * state + (step * x)[:, None] * b[None, :]
        tl.store(out + t * D + channels, tl.sum(state * c[None, :], axis=1).to(out.dtype.element_ty), mask=mask)


@case("selective state space, step by step, f16")
def state_space():
    T, D, N = 20, 100, 16
    u, dt, A = torch.randn(T, D).half(), torch.rand(T, D).half(), -torch.rand(D, N)
    B, C = torch.randn(T, N).half(), torch.randn(T, N).half()
    state, rows = torch.zeros(D, N, dtype=torch.double), []
    for t in range(T):
        step = dt.double()[t][:, None]
        state = (step * A.double()).exp() * state + step * u.double()[t][:, None] * B.double()[t]
        rows.append(state @ C.double()[t])
    arguments = {"u": u, "dt": dt, "A": A, "B": B, "C": C, "out": poisoned(T, D, dtype=u.dtype), "T": T, "D": D}
    return Case(state_space_kernel, (2,), arguments, {"N": N, "BD": 64}, {"out": torch.stack(rows)}, tolerance=2e-3)


@triton.jit
def gram_kernel(A, out, M, K, B: tl.constexpr, BK: tl.constexpr):
    row, column = tl.program_id(0) * B + tl.arange(0, B), tl.program_id(1) * B + tl.arange(0, B)
    inner = tl.arange(0, BK)
    left, right = A + (row % M)[:, None] * K + inner[None, :], A + (column % M)[None, :] * K + inner[:, None]
    acc = tl.zeros((B, B), tl.float32)
    for k in range(0, tl.cdiv(K, BK)):
        a = tl.load(left, mask=inner[None, :] < K - k * BK, other=0.0)
        b = tl.load(right, mask=inner[:, None] < K - k * BK, other=0.0)
        acc = tl.dot(a, b, acc)
        left += BK
        right += BK
    to = out + row[:, None] * M + column[None, :]
    tl.store(to, acc.to(out.dtype.element_ty), mask=(row[:, None] < M) & (column[None, :] < M))


@case("products of rows with rows, unaligned, bf16")
def gram():
    M, K = 120, 99
    x = (torch.randn(M, K) * 0.1).bfloat16()
    arguments = {"A": x, "out": poisoned(M, M, dtype=x.dtype), "M": M, "K": K}
    return Case(gram_kernel, (2, 2), arguments, {"B": 64, "BK": 64}, {"out": x.double() @ x.double().T})


@triton.jit
def microscaled_kernel(a, b, scales, out, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    m, n, k = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
    left = tl.load(a + m[:, None] * K + k[None, :])
    right = tl.load(b + n[None, :] * (K // 2) + tl.arange(0, K // 2)[:, None])
    factors = tl.load(scales + n[:, None] * (K // 32) + tl.arange(0, K // 32)[None, :])
    tl.store(out + m[:, None] * N + n[None, :], tl.dot_scaled(left, None, "bf16", right, factors, "e2m1"))


@case("dot_scaled of bf16 and e2m1")
def microscaled():
    M, N, K = 32, 64, 128
    a, codes = torch.randn(M, K).bfloat16(), torch.randint(0, 16, (N, K))
    packed = (codes[:, ::2] | (codes[:, 1::2] << 4)).to(torch.uint8)
    scales = torch.randint(124, 131, (N, K // 32), dtype=torch.uint8)
    magnitudes = torch.tensor([0, 0.5, 1, 1.5, 2, 3, 4, 6], dtype=torch.double)
    numbers = torch.cat([magnitudes, -magnitudes])[codes]
    w = numbers * (2.0 ** (scales.double() - 127)).repeat_interleave(32, 1)
    arguments = {"a": a, "b": packed, "scales": scales, "out": poisoned(M, N)}
    return Case(microscaled_kernel, (1,), arguments, {"M": M, "N": N, "K": K}, {"out": a.double() @ w.T})


@triton.jit
def rows_norm_kernel(x, out, s0, s1, s2, H, T, D: tl.constexpr, B: tl.constexpr):
    place = tl.program_id(0).to(tl.int64)
    batch, head = place // H, place % H
    rows, channels = tl.program_id(1) * B + tl.arange(0, B).to(tl.int64), tl.arange(0, D)
    mask = (rows < T)[:, None]
    v = tl.load(x + batch * s0 + head * s1 + rows[:, None] * s2 + channels[None, :], mask=mask, other=0.0)
    wide = v.to(tl.float32)
    norm = tl.sqrt(tl.sum(wide * wide, 1)) + 1e-6
    to = out + (place * T + rows[:, None]) * D + channels[None, :]
    tl.store(to, (wide / norm[:, None]).to(out.dtype.element_ty), mask=mask)


@case("norms of heads by 64-bit strides f16")
def rows_norm():
    x = torch.randn(2, 30, 3, 64).half().permute(0, 2, 1, 3)
    y = x.double() / (x.double().norm(dim=-1, keepdim=True) + 1e-6)
    s0, s1, s2, _ = x.stride()
    arguments = {"x": x, "out": poisoned(2, 3, 30, 64, dtype=x.dtype), "s0": s0, "s1": s1, "s2": s2, "H": 3, "T": 30}
    return Case(rows_norm_kernel, (6, 1), arguments, {"D": 64, "B": 32}, {"out": y})


@triton.jit
def parts_kernel(parts, weights, lengths, out, per_part, SPLITS: tl.constexpr, D: tl.constexpr):
    row, columns = tl.program_id(0), tl.arange(0, D)
    length = tl.load(lengths + row)
    largest, total = -float("inf"), 0.0
    acc = tl.zeros([D], tl.float32)
    for split in tl.range(0, SPLITS, num_stages=2):
        if split * per_part < length:
            part = tl.load(parts + (row * SPLITS + split) * D + columns)
            weight = tl.load(weights + row * SPLITS + split)
            new = tl.maximum(largest, weight)
            kept, added = tl.exp(largest - new), tl.exp(weight - new)
            acc = acc * kept + added * part
            total = total * kept + added
            largest = new
    tl.store(out + row * D + columns, acc / total)


@case("merging of parts of which some are empty, stages asked for, f32")
def parts_of_rows():
    M, S, D, per = 24, 8, 128, 16
    lengths = torch.randint(1, S * per, (M,), dtype=torch.int32)
    parts, weights = torch.randn(M, S, D), torch.randn(M, S)
    empty = torch.arange(S)[None, :] * per >= lengths[:, None]
    parts[empty], weights[empty] = torch.nan, torch.nan
    share = weights.double().masked_fill(empty, -torch.inf).softmax(-1)
    exact = torch.einsum("ms,msd->md", share, parts.double().nan_to_num())
    arguments = {"parts": parts, "weights": weights, "lengths": lengths, "out": poisoned(M, D), "per_part": per}
    return Case(parts_kernel, (M,), arguments, {"SPLITS": S, "D": D}, {"out": exact}, 4, 2)
