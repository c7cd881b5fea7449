# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Products of narrow types and of what is made from them; experts, and a convolution."""

import torch
import triton
import triton.language as tl
from torch.nn import functional

from . import Case, case, poisoned


@triton.jit
def int8_kernel(
    a, b, c, a_scale, b_scale, M, N, K, am, ak, bk, bn,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    inner = tl.arange(0, BLOCK_K)
    total = tl.zeros([BLOCK_M, BLOCK_N], tl.int32)
    for k in range(0, K, BLOCK_K):
        a_tile = tl.load(a + rows[:, None] * am + (k + inner)[None, :] * ak)
        b_tile = tl.load(b + (k + inner)[:, None] * bk + columns[None, :] * bn)
        total = tl.dot(a_tile, b_tile, total, out_dtype=tl.int32)
    scaled = total.to(tl.float32) * tl.load(a_scale + rows)[:, None] * tl.load(b_scale + columns)[None, :]
    tl.store(c + rows[:, None] * N + columns[None, :], scaled.to(tl.float16))


@case("int8 matmul, columns of B contiguous", True)
@case("int8 matmul, rows of B contiguous", False)
@case("int8 matmul, columns of A contiguous", True, True)
@case("int8 matmul, columns of A and rows of B contiguous", False, True)
def int8(column_major, turned=False):
    M, N, K = 128, 128, 256
    a, b = torch.randint(-128, 128, (M, K), dtype=torch.int8), torch.randint(-128, 128, (K, N), dtype=torch.int8)
    b = b.T.contiguous().T if column_major else b
    a = a.T.contiguous().T if turned else a
    scales = torch.rand(M) * 0.01, torch.rand(N) * 0.01
    exact = (a.double() @ b.double()) * scales[0].double()[:, None] * scales[1].double()[None, :]
    arguments = {"a": a, "b": b, "c": poisoned(M, N, dtype=torch.float16), "a_scale": scales[0], "b_scale": scales[1]}
    arguments |= {"M": M, "N": N, "K": K} | dict(zip(("am", "ak", "bk", "bn"), (*a.stride(), *b.stride()), strict=True))
    constants = {"BLOCK_M": 64, "BLOCK_N": 64, "BLOCK_K": 64}
    return Case(int8_kernel, (2, 2), arguments, constants, {"c": exact}, 4, 3)


@triton.jit
def fp8_kernel(a, b, c, N, K, bk, bn, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr):
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    inner = tl.arange(0, BLOCK_K)
    total = tl.zeros([BLOCK_M, BLOCK_N], tl.float32)
    for k in range(0, K, BLOCK_K):
        a_tile = tl.load(a + rows[:, None] * K + (k + inner)[None, :]).to(tl.float16)
        b_tile = tl.load(b + (k + inner)[:, None] * bk + columns[None, :] * bn).to(tl.float16)
        total = tl.dot(a_tile, b_tile, total)
    tl.store(c + rows[:, None] * N + columns[None, :], total.to(tl.float16))


@case("fp8 e5m2 matmul", torch.float8_e5m2)
def fp8(dtype):
    M, N, K = 128, 128, 256
    a, b = torch.randn(M, K).to(dtype), torch.randn(K, N).to(dtype).T.contiguous().T
    arguments = {"a": a, "b": b, "c": poisoned(M, N, dtype=torch.float16), "N": N, "K": K}
    arguments |= {"bk": b.stride(0), "bn": b.stride(1)}
    constants = {"BLOCK_M": 64, "BLOCK_N": 64, "BLOCK_K": 64}
    return Case(fp8_kernel, (2, 2), arguments, constants, {"c": a.double() @ b.double()}, 4, 3)


@triton.jit
def w4a16_kernel(
    a, packed, scales, zeros, c, N, K, groups, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
    GROUP: tl.constexpr,
):  # fmt: skip
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    inner = tl.arange(0, BLOCK_K)
    total = tl.zeros([BLOCK_M, BLOCK_N], tl.float32)
    for k in range(0, K, BLOCK_K):
        at = k + inner
        a_tile = tl.load(a + rows[:, None] * K + at[None, :])
        words = tl.load(packed + (at[:, None] // 8) * N + columns[None, :])
        nibbles = (words >> ((at[:, None] % 8) * 4)) & 0xF
        group = k // GROUP
        scale = tl.load(scales + group * N + columns)
        zero = tl.load(zeros + group * N + columns)
        b_tile = (nibbles.to(tl.float16) - zero[None, :]) * scale[None, :]
        total = tl.dot(a_tile, b_tile, total)
    tl.store(c + rows[:, None] * N + columns[None, :], total.to(tl.float16))


@case("W4A16 matmul, 64 rows", 64)
@case("W4A16 matmul, 16 rows", 16)
def w4a16(M):
    N, K, group = 128, 256, 64
    a, nibbles = torch.randn(M, K).half(), torch.randint(0, 16, (K, N), dtype=torch.int32)
    packed = sum(nibbles.reshape(K // 8, 8, N)[:, i] << (4 * i) for i in range(8)).to(torch.int32)
    scales, zeros = torch.rand(K // group, N).half() * 0.1, torch.randint(0, 16, (K // group, N)).half()
    wide = [x.repeat_interleave(group, 0) for x in (scales, zeros)]
    weights = ((nibbles.half() - wide[1]) * wide[0]).double()
    arguments = {"a": a, "packed": packed, "scales": scales, "zeros": zeros, "c": poisoned(M, N, dtype=a.dtype)}
    constants = {"BLOCK_M": min(M, 64), "BLOCK_N": 64, "BLOCK_K": 64, "GROUP": group}
    arguments |= {"N": N, "K": K, "groups": K // group}
    return Case(w4a16_kernel, (1, 2), arguments, constants, {"c": a.double() @ weights}, 4, 3)


@triton.jit
def joined_kernel(
    a, packed, scales, c, N, K, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP: tl.constexpr
):
    rows, columns = tl.arange(0, BLOCK_M), tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    inner, pairs = tl.arange(0, BLOCK_K), tl.arange(0, BLOCK_K // 2)
    total = tl.zeros([BLOCK_M, BLOCK_N], tl.float32)
    for k in range(0, K, BLOCK_K):
        a_tile = tl.load(a + rows[:, None] * K + (k + inner)[None, :])
        both = tl.load(packed + columns[:, None] * (K // 2) + (k // 2 + pairs)[None, :])
        scale = tl.load(scales + k // GROUP * N + columns)
        low, high = (both & 15).to(tl.float16) - 8.0, (both >> 4).to(tl.float16) - 8.0
        b_tile = tl.reshape(tl.join(low, high), [BLOCK_N, BLOCK_K]) * scale[:, None]
        total = tl.dot(a_tile, tl.trans(b_tile), total)
    tl.store(c + rows[:, None] * N + columns[None, :], total.to(tl.float16))


@case("matmul of two numbers of 4 bits a byte, joined, 16 rows f16", 16)
@case("matmul of two numbers of 4 bits a byte, joined, 32 rows f16", 32)
def joined(M):
    N, K, group = 128, 256, 64
    a, nibbles = torch.randn(M, K).half(), torch.randint(0, 16, (K, N))
    packed = (nibbles[::2] | nibbles[1::2] << 4).T.to(torch.uint8).contiguous()
    scales = torch.rand(K // group, N).half() * 0.1
    weights = ((nibbles - 8).half() * scales.repeat_interleave(group, 0)).double()
    arguments = {"a": a, "packed": packed, "scales": scales, "c": poisoned(M, N, dtype=a.dtype), "N": N, "K": K}
    constants = {"BLOCK_M": M, "BLOCK_N": 64, "BLOCK_K": 64, "GROUP": group}
    return Case(joined_kernel, (2,), arguments, constants, {"c": a.double() @ weights}, 4, 3)


@triton.jit
def microscaled_loop_kernel(
    a, packed, scales, c, N, K, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr
):
    rows, columns = tl.arange(0, BLOCK_M), tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    inner, pairs, groups = tl.arange(0, BLOCK_K), tl.arange(0, BLOCK_K // 2), tl.arange(0, BLOCK_K // 32)
    total = tl.zeros([BLOCK_M, BLOCK_N], tl.float32)
    for k in range(0, K, BLOCK_K):
        a_tile = tl.load(a + rows[:, None] * K + (k + inner)[None, :])
        b_tile = tl.load(packed + columns[None, :] * (K // 2) + (k // 2 + pairs)[:, None])
        factors = tl.load(scales + columns[:, None] * (K // 32) + (k // 32 + groups)[None, :])
        total = tl.dot_scaled(a_tile, None, "bf16", b_tile, factors, "e2m1", total)
    tl.store(c + rows[:, None] * N + columns[None, :], total.to(tl.bfloat16))


@case("matmul of bf16 and microscaled e2m1, 16 rows", 16)
@case("matmul of bf16 and microscaled e2m1, 64 rows", 64)
def microscaled_loop(M):
    N, K = 128, 256
    a, codes = torch.randn(M, K).bfloat16(), torch.randint(0, 16, (N, K))
    packed = (codes[:, ::2] | codes[:, 1::2] << 4).to(torch.uint8)
    scales = torch.randint(124, 131, (N, K // 32), dtype=torch.uint8)
    magnitudes = torch.tensor([0, 0.5, 1, 1.5, 2, 3, 4, 6], dtype=torch.double)
    weights = torch.cat([magnitudes, -magnitudes])[codes] * (2.0 ** (scales.double() - 127)).repeat_interleave(32, 1)
    arguments = {"a": a, "packed": packed, "scales": scales, "c": poisoned(M, N, dtype=a.dtype), "N": N, "K": K}
    constants = {"BLOCK_M": M, "BLOCK_N": 64, "BLOCK_K": 64 if M > 16 else 128}
    return Case(microscaled_loop_kernel, (2,), arguments, constants, {"c": a.double() @ weights.T}, 4, 3)


@triton.jit
def block_scaled_kernel(
    a, b, a_scale, b_scale, c, N, K, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr
):
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    inner = tl.arange(0, BLOCK_K)
    total = tl.zeros([BLOCK_M, BLOCK_N], tl.float32)
    for block in range(0, tl.cdiv(K, BLOCK_K)):
        at = block * BLOCK_K + inner
        a_tile = tl.load(a + rows[:, None] * K + at[None, :])
        b_tile = tl.load(b + columns[None, :] * K + at[:, None])
        left = tl.load(a_scale + rows * tl.cdiv(K, BLOCK_K) + block)
        right = tl.load(b_scale + tl.program_id(1) * tl.cdiv(K, BLOCK_K) + block)
        total += tl.dot(a_tile, b_tile) * left[:, None] * right
    tl.store(c + rows[:, None] * N + columns[None, :], total.to(tl.bfloat16))


@case("matmul with scales of blocks bf16")
def block_scaled():
    M, N, K, B = 64, 128, 256, 64
    a, b = torch.randn(M, K).bfloat16(), torch.randn(N, K).bfloat16()
    left, right = torch.rand(M, K // B), torch.rand(N // 64, K // B)
    exact = (a.double() * left.double().repeat_interleave(B, 1)) @ (
        b.double() * right.double().repeat_interleave(B, 1).repeat_interleave(64, 0)
    ).T
    arguments = {"a": a, "b": b, "a_scale": left, "b_scale": right, "c": poisoned(M, N, dtype=a.dtype)}
    constants = {"BLOCK_M": 64, "BLOCK_N": 64, "BLOCK_K": B}
    return Case(block_scaled_kernel, (1, 2), arguments | {"N": N, "K": K}, constants, {"c": exact}, 4, 3)


@triton.jit
def experts_kernel(
    x, weights, tokens, experts, gates, out, N, K, top, count,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    block = tl.program_id(0)
    slots = block * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    inner = tl.arange(0, BLOCK_K)
    token = tl.load(tokens + slots)
    known = token < count
    expert = tl.load(experts + block).to(tl.int64)
    x_at = x + (token // top)[:, None] * K + inner[None, :]
    w_at = weights + expert * N * K + inner[:, None] + columns[None, :] * K
    total = tl.zeros([BLOCK_M, BLOCK_N], tl.float32)
    for k in range(0, tl.cdiv(K, BLOCK_K)):
        left = K - k * BLOCK_K
        x_tile = tl.load(x_at, mask=known[:, None] & (inner[None, :] < left), other=0.0)
        w_tile = tl.load(w_at, mask=inner[:, None] < left, other=0.0)
        total += tl.dot(x_tile, w_tile)
        x_at += BLOCK_K
        w_at += BLOCK_K
    gate = tl.load(gates + token, mask=known, other=0.0)
    mask = known[:, None] & (columns[None, :] < N)
    tl.store(out + token[:, None] * N + columns[None, :], (total * gate[:, None]).to(out.dtype.element_ty), mask=mask)


@case("matmul of experts bf16")
def experts():
    M, N, K, E, top, BM = 40, 128, 128, 3, 2, 32
    x, w = torch.randn(M, K).bfloat16(), torch.randn(E, N, K).bfloat16()
    gates, chosen = torch.rand(M * top), torch.stack([torch.randperm(E)[:top] for _ in range(M)]).reshape(-1)
    slots, owners = [], []
    for e in range(E):
        own = torch.nonzero(chosen == e).reshape(-1)
        padded = functional.pad(own, (0, -len(own) % BM), value=M * top)
        slots.append(padded)
        owners += [e] * (len(padded) // BM)
    exact = (
        torch.einsum("tk,tnk->tn", x.double().repeat_interleave(top, 0), w.double()[chosen]) * gates.double()[:, None]
    )
    arguments = {"x": x, "weights": w, "tokens": torch.cat(slots).int(), "experts": torch.tensor(owners).int()}
    arguments |= {"gates": gates, "out": poisoned(M * top, N, dtype=x.dtype), "N": N, "K": K, "top": top}
    constants = {"BLOCK_M": BM, "BLOCK_N": 64, "BLOCK_K": 64}
    grid = (len(owners), 2)
    return Case(experts_kernel, grid, arguments | {"count": M * top}, constants, {"out": exact}, 4, 3)


@triton.jit
def convolution_kernel(
    x, weight, out, H, W, C, K, P, Q, TAPS: tl.constexpr, PAD: tl.constexpr,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_C: tl.constexpr,
):  # fmt: skip
    pixels = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    image, place = pixels // (P * Q), pixels % (P * Q)
    p, q = place // Q, place % Q
    total = tl.zeros([BLOCK_M, BLOCK_N], tl.float32)
    for step in range(0, TAPS * TAPS * tl.cdiv(C, BLOCK_C)):
        tap, part = step // tl.cdiv(C, BLOCK_C), step % tl.cdiv(C, BLOCK_C)
        channels = part * BLOCK_C + tl.arange(0, BLOCK_C)
        h, w = p + tap // TAPS - PAD, q + tap % TAPS - PAD
        inside = (h >= 0) & (h < H) & (w >= 0) & (w < W)
        at = ((image * H + h) * W + w)[:, None] * C + channels[None, :]
        x_tile = tl.load(x + at, mask=inside[:, None] & (channels[None, :] < C), other=0.0)
        w_tile = tl.load(weight + (tap * C + channels)[:, None] * K + columns[None, :], mask=channels[:, None] < C)
        total += tl.dot(x_tile, w_tile)
    tl.store(out + pixels[:, None] * K + columns[None, :], total.to(tl.float16), mask=columns[None, :] < K)


@case("convolution 3×3 f16")
def convolution():
    B, H, W, C, K = 2, 8, 8, 64, 64
    x, w = torch.randn(B, H, W, C).half(), torch.randn(3, 3, C, K).half()
    exact = functional.conv2d(x.double().permute(0, 3, 1, 2), w.double().permute(3, 2, 0, 1), padding=1)
    arguments = {"x": x, "weight": w, "out": poisoned(B, H, W, K, dtype=x.dtype), "H": H, "W": W, "C": C, "K": K}
    constants = {"TAPS": 3, "PAD": 1, "BLOCK_M": 64, "BLOCK_N": 64, "BLOCK_C": 32}
    expected = {"out": exact.permute(0, 2, 3, 1)}
    return Case(convolution_kernel, (2, 1), arguments | {"P": H, "Q": W}, constants, expected, 4, 3)


@triton.jit
def unpacked_kernel(packed, scales, out, rows, columns, BLOCK_R: tl.constexpr, BLOCK_C: tl.constexpr, G: tl.constexpr):
    row = tl.program_id(0) * BLOCK_R + tl.arange(0, BLOCK_R)
    column = tl.program_id(1) * BLOCK_C + tl.arange(0, BLOCK_C)
    group = tl.program_id(1) * (2 * BLOCK_C // G) + tl.arange(0, 2 * BLOCK_C // G)
    inside = (row[:, None] < rows) & (column[None, :] < columns)
    pair = tl.load(packed + row[:, None] * columns + column[None, :], inside, other=0).to(tl.int32)
    values = tl.join((pair & 15).to(tl.float32) - 8, (pair >> 4).to(tl.float32) - 8)
    whole = (row[:, None] < rows) & (group[None, :] < 2 * columns // G)
    scale = tl.load(scales + row[:, None] * (2 * columns // G) + group[None, :], whole, other=0.0)
    scaled = tl.reshape(values, (BLOCK_R, 2 * BLOCK_C // G, G)) * scale[:, :, None]
    at = tl.program_id(1) * 2 * BLOCK_C + tl.arange(0, 2 * BLOCK_C)
    inside = (row[:, None] < rows) & (at[None, :] < 2 * columns)
    tl.store(out + row[:, None] * 2 * columns + at[None, :], tl.reshape(scaled, (BLOCK_R, 2 * BLOCK_C)), inside)


@case("two numbers of 4 bits a byte, with scales of groups, to f32")
def unpacked():
    M, N, G = 37, 512, 16
    packed, scales = torch.randint(0, 256, (M, N), dtype=torch.uint8), torch.randn(M, 2 * N // G)
    numbers = torch.stack([packed & 15, packed >> 4], -1).reshape(M, 2 * N).double() - 8
    arguments = {"packed": packed, "scales": scales, "out": poisoned(M, 2 * N), "rows": M, "columns": N}
    constants = {"BLOCK_R": 8, "BLOCK_C": 256, "G": G}
    expected = {"out": numbers * scales.double().repeat_interleave(G, 1)}
    return Case(unpacked_kernel, (5, 2), arguments, constants, expected, 4, 1)


@triton.jit
def turned_blocks_kernel(x, out, scales, M, N, BLOCK: tl.constexpr):
    rows = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    columns = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    mask = (rows[:, None] < M) & (columns[None, :] < N)
    block = tl.load(x + rows[:, None] * N + columns[None, :], mask=mask, other=0.0)
    scale = 127 / tl.maximum(tl.max(tl.abs(block)).to(tl.float32), 1e-6)
    rounded = tl.floor(block.to(tl.float32) * scale + 0.5).to(tl.int8)
    tl.store(out + columns[None, :] * M + rows[:, None], rounded, mask=mask)
    tl.store(scales + tl.program_id(0) * tl.num_programs(1) + tl.program_id(1), 1 / scale)


@case("blocks rounded to int8 and turned bf16")
def turned_blocks():
    M, N, BLOCK = 256, 128, 128
    x = torch.randn(M, N).bfloat16()
    highest = x.double().reshape(M // BLOCK, BLOCK, N // BLOCK, BLOCK).abs().amax((1, 3))
    scale = 127 / highest.repeat_interleave(BLOCK, 0).repeat_interleave(BLOCK, 1)
    expected = {"out": (x.double() * scale + 0.5).floor().T, "scales": highest / 127}
    arguments = {"x": x, "out": poisoned(N, M, dtype=torch.int8), "scales": poisoned(M // BLOCK, N // BLOCK)}
    grid = (M // BLOCK, N // BLOCK)  # a number half-way between two may be rounded either way: 1 of 127
    return Case(turned_blocks_kernel, grid, arguments | {"M": M, "N": N}, {"BLOCK": BLOCK}, expected, 4, 2, 0.008)
