# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""What models of narrow weights run on GPUs of one's own: products of packed weights, of 8-bit floats and of ternary
numbers, and the quantisation around them."""

import torch
import triton
import triton.language as tl

from . import Case, case, poisoned


@triton.jit
def gptq_kernel(
    a, packed, scales, packed_zeros, groups_of, c, M, N, K,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    rows = tl.arange(0, BLOCK_M)
    columns = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    inner = tl.arange(0, BLOCK_K)
    total = tl.zeros([BLOCK_M, BLOCK_N], tl.float32)
    for k in range(0, K, BLOCK_K):
        at = k + inner
        a_tile = tl.load(a + rows[:, None] * K + at[None, :], mask=rows[:, None] < M, other=0.0)
        group = tl.load(groups_of + at)
        words = tl.load(packed + (at[:, None] // 8) * N + columns[None, :])
        scale = tl.load(scales + group[:, None] * N + columns[None, :])
        zero = tl.load(packed_zeros + group[:, None] * (N // 8) + columns[None, :] // 8)
        zero = (zero >> ((columns[None, :] % 8) * 4)) & 0xF
        number = (words >> ((at[:, None] % 8) * 4)) & 0xF
        b_tile = (number - zero).to(tl.float16) * scale
        total = tl.dot(a_tile, b_tile, total)
    tl.store(c + rows[:, None] * N + columns[None, :], total.to(tl.float16), mask=rows[:, None] < M)


def packed_along(numbers, axis, order=range(8)):
    """Words of eight numbers of four bits that lie along an axis."""
    parts = numbers.unflatten(axis, (-1, 8)).movedim(axis + 1, 0).long()
    word = sum(parts[element] << (4 * place) for place, element in enumerate(order))
    return torch.where(word >= 2**31, word - 2**32, word).int()


@case("GPTQ matmul, groups in any order, 5 rows f16", 5)
def gptq(M):
    N, K, G = 128, 256, 64
    a, numbers = torch.randn(M, K).half(), torch.randint(0, 16, (K, N))
    scales, zeros = torch.rand(K // G, N).half() * 0.1, torch.randint(0, 16, (K // G, N))
    group = torch.randperm(K) // G
    weights = ((numbers - zeros[group]).half() * scales[group]).double()
    arguments = {"a": a, "packed": packed_along(numbers, 0), "scales": scales, "packed_zeros": packed_along(zeros, 1)}
    arguments |= {"groups_of": group.int(), "c": poisoned(M, N, dtype=a.dtype), "M": M, "N": N, "K": K}
    constants = {"BLOCK_M": 16 if M < 16 else 32, "BLOCK_N": 64, "BLOCK_K": 64}
    return Case(gptq_kernel, (2,), arguments, constants, {"c": a.double() @ weights}, 4, 3)


@triton.jit
def awq_kernel(
    a, packed, scales, packed_zeros, c, M, N, K, GROUP: tl.constexpr,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    rows = tl.arange(0, BLOCK_M)
    words = tl.program_id(0) * (BLOCK_N // 8) + tl.arange(0, BLOCK_N // 8)
    columns = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    inner = tl.arange(0, BLOCK_K)
    place = tl.arange(0, BLOCK_N) % 8
    shifts = ((place % 2) * 4 + place // 2) * 4
    total = tl.zeros([BLOCK_M, BLOCK_N], tl.float32)
    for k in range(0, K, BLOCK_K):
        at = k + inner
        a_tile = tl.load(a + rows[:, None] * K + at[None, :], mask=rows[:, None] < M, other=0.0)
        b = tl.load(packed + at[:, None] * (N // 8) + words[None, :])
        b = tl.interleave(b, b)
        b = tl.interleave(b, b)
        b = tl.interleave(b, b)
        b = (b >> shifts[None, :]) & 0xF
        group = k // GROUP + tl.arange(0, 1)
        zero = tl.load(packed_zeros + group[:, None] * (N // 8) + words[None, :])
        zero = tl.interleave(zero, zero)
        zero = tl.interleave(zero, zero)
        zero = tl.interleave(zero, zero)
        zero = tl.broadcast_to((zero >> shifts[None, :]) & 0xF, (BLOCK_K, BLOCK_N))
        scale = tl.broadcast_to(tl.load(scales + group[:, None] * N + columns[None, :]), (BLOCK_K, BLOCK_N))
        b_tile = ((b - zero) * scale).to(tl.float16)
        total = tl.dot(a_tile, b_tile, total)
    tl.store(c + rows[:, None] * N + columns[None, :], total.to(tl.float16), mask=rows[:, None] < M)


@case("AWQ matmul, 8 rows f16", 8)
def awq(M):
    N, K, G = 128, 256, 128
    a, numbers = torch.randn(M, K).half(), torch.randint(0, 16, (K, N))
    scales, zeros = torch.rand(K // G, N).half() * 0.1, torch.randint(0, 16, (K // G, N))
    group = torch.arange(K) // G
    weights = ((numbers - zeros[group]) * scales[group].double()).half().double()
    order = (0, 2, 4, 6, 1, 3, 5, 7)
    arguments = {"a": a, "packed": packed_along(numbers, 1, order), "scales": scales}
    arguments |= {"packed_zeros": packed_along(zeros, 1, order), "c": poisoned(M, N, dtype=a.dtype)}
    constants = {"GROUP": G, "BLOCK_M": 16 if M < 16 else 64, "BLOCK_N": 64, "BLOCK_K": 64}
    arguments |= {"M": M, "N": N, "K": K}
    return Case(awq_kernel, (2,), arguments, constants, {"c": a.double() @ weights}, 4, 3)


@triton.jit
def table_kernel(
    a, packed, table, absmax, c, N, K, GROUP: tl.constexpr,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    rows = tl.program_id(1) * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    total = tl.zeros([BLOCK_M, BLOCK_N], tl.float32)
    for k in range(0, K, BLOCK_K):
        at = k + tl.arange(0, BLOCK_K)
        a_tile = tl.load(a + rows[:, None] * K + at[None, :])
        pairs = tl.load(packed + columns[None, :] * (K // 2) + at[:, None] // 2)
        number = (pairs >> (4 * (1 - at[:, None] % 2))) & 0xF
        largest = tl.load(absmax + columns[None, :] * (K // GROUP) + at[:, None] // GROUP)
        b_tile = (tl.load(table + number) * largest).to(tl.bfloat16)
        total = tl.dot(a_tile, b_tile, total)
    tl.store(c + rows[:, None] * N + columns[None, :], total.to(tl.bfloat16))


@case("NF4 matmul by a table bf16")
def by_table():
    M, N, K, G = 32, 128, 256, 64
    a, numbers = torch.randn(M, K).bfloat16(), torch.randint(0, 16, (N, K))
    table, absmax = torch.randn(16).sort().values, torch.rand(N, K // G)
    packed = (numbers[:, 0::2] * 16 + numbers[:, 1::2]).to(torch.uint8)
    weights = (table[numbers] * absmax.repeat_interleave(G, 1)).bfloat16().double()
    arguments = {"a": a, "packed": packed, "table": table, "absmax": absmax, "c": poisoned(M, N, dtype=a.dtype)}
    constants = {"GROUP": G, "BLOCK_M": 32, "BLOCK_N": 64, "BLOCK_K": 64}
    arguments |= {"N": N, "K": K}
    return Case(table_kernel, (2, 1), arguments, constants, {"c": a.double() @ weights.T}, 4, 2)


@triton.jit
def w8a16_kernel(a, b, scale, c, M, N, K, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr):
    rows = tl.arange(0, BLOCK_M)
    columns = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    inner = tl.arange(0, BLOCK_K)
    total = tl.zeros([BLOCK_M, BLOCK_N], tl.float32)
    for k in range(0, K, BLOCK_K):
        a_tile = tl.load(a + rows[:, None] * K + (k + inner)[None, :], mask=rows[:, None] < M, other=0.0)
        b_tile = tl.load(b + columns[None, :] * K + (k + inner)[:, None])
        total = tl.dot(a_tile, b_tile.to(a_tile.dtype), total)
    total *= tl.load(scale + columns)[None, :]
    tl.store(c + rows[:, None] * N + columns[None, :], total.to(c.dtype.element_ty), mask=rows[:, None] < M)


@case("W8A16 matmul, 16 rows f16", 16, torch.float16, torch.int8)
@case("matmul of e4m3 weights, 64 rows bf16", 64, torch.bfloat16, torch.float8_e4m3fn)
def w8a16(M, dtype, kind):
    N, K = 128, 256
    a, scale = torch.randn(M, K).to(dtype), torch.rand(N) * 0.02
    b = torch.randint(-128, 128, (N, K)).to(kind) if kind == torch.int8 else torch.randn(N, K).to(kind)
    arguments = {"a": a, "b": b, "scale": scale, "c": poisoned(M, N, dtype=dtype), "M": M, "N": N, "K": K}
    constants = {"BLOCK_M": M, "BLOCK_N": 64, "BLOCK_K": 64}
    exact = (a.double() @ b.double().T) * scale.double()
    return Case(w8a16_kernel, (2,), arguments, constants, {"c": exact}, 4, 3)


@triton.jit
def eight_bit_kernel(
    a, b, c, N, K, bk, bn, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, RUN: tl.constexpr
):
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    inner = tl.arange(0, BLOCK_K)
    total = tl.zeros([BLOCK_M, BLOCK_N], tl.float32)
    for k in range(0, K, BLOCK_K):
        a_tile = tl.load(a + rows[:, None] * K + (k + inner)[None, :])
        b_tile = tl.load(b + (k + inner)[:, None] * bk + columns[None, :] * bn)
        total = tl.dot(a_tile, b_tile, total, max_num_imprecise_acc=RUN)
    tl.store(c + rows[:, None] * N + columns[None, :], total.to(tl.bfloat16))


@case("e4m3 matmul 64x64x64", (64, 64, 64), torch.float8_e4m3fn, True)
@case("e4m3 matmul 128x128x64, 8 warps", (128, 128, 64), torch.float8_e4m3fn, True, 8)
@case("e4m3 matmul 64x64x64, rows of B contiguous", (64, 64, 64), torch.float8_e4m3fn, False)
@case("e5m2 matmul 64x64x64 of 8-bit products", (64, 64, 64), torch.float8_e5m2, True)
def eight_bit(tile, dtype, column_major, warps=4, run=None):
    BM, BN, BK = tile
    M, N, K = max(BM, 32), 128, 256
    a, b = torch.randn(M, K).to(dtype), torch.randn(K, N).to(dtype)
    b = b.T.contiguous().T if column_major else b
    arguments = {"a": a, "b": b, "c": poisoned(M, N, dtype=torch.bfloat16), "N": N, "K": K}
    arguments |= {"bk": b.stride(0), "bn": b.stride(1)}
    constants = {"BLOCK_M": BM, "BLOCK_N": BN, "BLOCK_K": BK, "RUN": run}
    grid = (M // BM, N // BN)
    return Case(eight_bit_kernel, grid, arguments, constants, {"c": a.double() @ b.double()}, warps, 3)


@triton.jit
def scaled_blocks_kernel(
    a, b, a_scale, b_scale, c, M, N, K, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr
):
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    inner = tl.arange(0, BLOCK_K)
    count = tl.cdiv(K, BLOCK_K)
    a_at = a + (rows % M)[:, None] * K + inner[None, :]
    b_at = b + columns[None, :] * K + inner[:, None]
    left_at, right_at = a_scale + (rows % M) * count, b_scale + (columns // 128) * count
    total = tl.zeros([BLOCK_M, BLOCK_N], tl.float32)
    for block in range(0, count):
        a_tile = tl.load(a_at, mask=inner[None, :] < K - block * BLOCK_K, other=0.0)
        b_tile = tl.load(b_at, mask=inner[:, None] < K - block * BLOCK_K, other=0.0)
        left, right = tl.load(left_at + block), tl.load(right_at + block)
        total += tl.dot(a_tile, b_tile) * left[:, None] * right[None, :]
        a_at += BLOCK_K
        b_at += BLOCK_K
    mask = (rows[:, None] < M) & (columns[None, :] < N)
    tl.store(c + rows[:, None] * N + columns[None, :], total.to(tl.bfloat16), mask=mask)


@case("e4m3 matmul with scales of blocks, 64 rows", 64, 64, 64)
@case("e4m3 matmul with scales of blocks, 7 rows", 7, 16, 64)
@case("int8 matmul with scales of blocks", 64, 64, 64, torch.int8)
def scaled_blocks(M, BM, BN, kind=torch.float8_e4m3fn):
    N, K, G = 256, 384, 128
    if kind == torch.int8:
        a, b = (torch.randint(-128, 128, size).to(kind) for size in ((M, K), (N, K)))
    else:
        a, b = torch.randn(M, K).to(kind), torch.randn(N, K).to(kind)
    left, right = torch.rand(M, K // G), torch.rand(N // 128, K // G)
    exact = (a.double() * left.double().repeat_interleave(G, 1)) @ (
        b.double() * right.double().repeat_interleave(G, 1).repeat_interleave(128, 0)
    ).T
    arguments = {"a": a, "b": b, "a_scale": left, "b_scale": right, "c": poisoned(M, N, dtype=torch.bfloat16)}
    constants = {"BLOCK_M": BM, "BLOCK_N": BN, "BLOCK_K": G}
    grid = (triton.cdiv(M, BM), N // BN)
    return Case(scaled_blocks_kernel, grid, arguments | {"M": M, "N": N, "K": K}, constants, {"c": exact}, 4, 3)


@triton.jit
def ternary_kernel(
    a, packed, a_scale, c, N, K, w_scale, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr
):
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    inner = tl.arange(0, BLOCK_K)
    total = tl.zeros([BLOCK_M, BLOCK_N], tl.int32)
    for part in range(0, 4):
        for k in range(0, K // 4, BLOCK_K):
            a_tile = tl.load(a + rows[:, None] * K + (part * (K // 4) + k + inner)[None, :])
            bytes_ = tl.load(packed + columns[None, :] * (K // 4) + (k + inner)[:, None])
            b_tile = ((bytes_ >> (2 * part)) & 3).to(tl.int8) - 1
            total = tl.dot(a_tile, b_tile, total, out_dtype=tl.int32)
    scaled = total.to(tl.float32) * tl.load(a_scale + rows)[:, None] * w_scale
    tl.store(c + rows[:, None] * N + columns[None, :], scaled.to(tl.bfloat16))


@case("matmul of int8 and ternary weights")
def ternary():
    M, N, K = 32, 64, 512
    a, weights = torch.randint(-128, 128, (M, K)).to(torch.int8), torch.randint(-1, 2, (N, K))
    packed = sum((weights[:, i * K // 4 : (i + 1) * K // 4] + 1) << (2 * i) for i in range(4)).to(torch.uint8)
    scale = torch.rand(M) * 0.01
    arguments = {"a": a, "packed": packed, "a_scale": scale, "c": poisoned(M, N, dtype=torch.bfloat16), "N": N, "K": K}
    exact = (a.double() @ weights.double().T) * scale.double()[:, None] * 0.75
    constants = {"BLOCK_M": 32, "BLOCK_N": 32, "BLOCK_K": 64}
    return Case(ternary_kernel, (1, 2), arguments | {"w_scale": 0.75}, constants, {"c": exact}, 4, 3)


@triton.jit
def unpack_kernel(packed, scales, zeros, out, N, GROUP: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    columns = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    words = tl.load(packed + row * N + columns)
    scale = tl.load(scales + (row * 8 // GROUP) * N + columns).to(tl.float32)
    zero = tl.load(zeros + (row * 8 // GROUP) * N + columns).to(tl.float32)
    for i in tl.static_range(8):
        number = (words >> (4 * i)) & 0xF
        tl.store(out + (row * 8 + i) * N + columns, ((number.to(tl.float32) - zero) * scale).to(tl.float16))


@case("weights of 4 bits unpacked f16")
def unpacked():
    N, K, G = 1024, 64, 32
    numbers = torch.randint(0, 16, (K, N))
    scales, zeros = torch.rand(K // G, N).half(), torch.randint(0, 16, (K // G, N)).half()
    group = torch.arange(K) // G
    exact = (numbers - zeros[group].double()) * scales[group].double()
    arguments = {"packed": packed_along(numbers, 0), "scales": scales, "zeros": zeros}
    arguments |= {"out": poisoned(K, N, dtype=torch.float16), "N": N}
    return Case(unpack_kernel, (K // 8, 2), arguments, {"GROUP": G, "BLOCK": 512}, {"out": exact}, 4, 1)


@triton.jit
def quantised_norm_kernel(x, weight, out, scales, N, eps, LARGEST: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    columns = tl.arange(0, BLOCK)
    mask = columns < N
    value = tl.load(x + row * N + columns, mask=mask, other=0.0).to(tl.float32)
    value *= tl.rsqrt(tl.sum(value * value, 0) / N + eps)
    value *= tl.load(weight + columns, mask=mask, other=0.0).to(tl.float32)
    scale = tl.maximum(tl.max(tl.abs(value), 0), 1e-10) / LARGEST
    number = value / scale
    if out.dtype.element_ty == tl.int8:
        number = tl.floor(number + 0.5)
    tl.store(out + row * N + columns, number.to(out.dtype.element_ty), mask=mask)
    tl.store(scales + row, scale)


@case("RMS norm to e4m3 with scales of rows bf16", torch.float8_e4m3fn)
@case("RMS norm to int8 with scales of rows bf16", torch.int8)
def quantised_norm(kind):
    M, N = 8, 2000
    x, weight = torch.randn(M, N).bfloat16(), torch.randn(N).bfloat16()
    largest = 127.0 if kind == torch.int8 else 448.0
    value = x.double() * (x.double().square().mean(1, keepdim=True) + 1e-6).rsqrt() * weight.double()
    scales = value.abs().amax(1) / largest
    out = torch.full((M, N), -128, dtype=kind) if kind == torch.int8 else poisoned(M, N, dtype=kind)
    expected = {"scales": scales, "out": value / scales[:, None]}
    arguments = {"x": x, "weight": weight, "out": out, "scales": poisoned(M), "N": N, "eps": 1e-6}
    tolerance = 0.6 / 127 if kind == torch.int8 else None
    return Case(quantised_norm_kernel, (M,), arguments, {"LARGEST": largest, "BLOCK": 2048}, expected, 8, 1, tolerance)


@triton.jit
def gated_quantised_kernel(x, out, scales, N, GROUP: tl.constexpr, GROUPS: tl.constexpr):
    row, part = tl.program_id(0), tl.program_id(1)
    columns = (part * GROUPS + tl.arange(0, GROUPS))[:, None] * GROUP + tl.arange(0, GROUP)[None, :]
    gate = tl.load(x + row * 2 * N + columns).to(tl.float32)
    value = tl.load(x + row * 2 * N + N + columns).to(tl.float32)
    value = gate * tl.sigmoid(gate) * value
    scale = tl.maximum(tl.max(tl.abs(value), 1), 1e-10) / 448.0
    tl.store(out + row * N + columns, (value / scale[:, None]).to(tl.float8e4nv))
    tl.store(scales + row * (N // GROUP) + part * GROUPS + tl.arange(0, GROUPS), scale)


@case("gated silu to e4m3 with scales of groups bf16")
def gated_quantised():
    M, N, G = 16, 1024, 128
    x = torch.randn(M, 2 * N).bfloat16()
    value = torch.nn.functional.silu(x[:, :N].double()) * x[:, N:].double()
    scales = value.unflatten(1, (-1, G)).abs().amax(-1) / 448
    expected = {"scales": scales, "out": value / scales.repeat_interleave(G, 1)}
    arguments = {"x": x, "out": poisoned(M, N, dtype=torch.float8_e4m3fn), "scales": poisoned(M, N // G), "N": N}
    return Case(gated_quantised_kernel, (M, 2), arguments, {"GROUP": G, "GROUPS": 4}, expected, 4, 1)
