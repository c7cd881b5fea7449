# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""What serves a language model beside its dense products: attention of groups, of latents and of 8-bit caches, routing
and experts, adapters, positions, caches, and the choice of a token."""

import math

import torch
import triton
import triton.language as tl

from . import Case, case, poisoned


@triton.jit
def grouped_decode_kernel(
    q, k, v, out, lse, lengths, k_scale, v_scale, scale, M, HEADS: tl.constexpr, GROUP: tl.constexpr,
    BLOCK_H: tl.constexpr, BLOCK_N: tl.constexpr, D: tl.constexpr, SPLIT: tl.constexpr,
):  # fmt: skip
    batch, head, part = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    own, channels, keys = tl.arange(0, BLOCK_H), tl.arange(0, D), tl.arange(0, BLOCK_N)
    query = batch * HEADS + head * GROUP + own
    known = own < GROUP
    q_tile = tl.load(q + query[:, None] * D + channels[None, :], mask=known[:, None], other=0.0)
    length = tl.load(lengths + batch)
    first = part * SPLIT
    last = tl.minimum(first + SPLIT, length)
    highest = tl.full([BLOCK_H], -float("inf"), tl.float32)
    total = tl.zeros([BLOCK_H], tl.float32)
    acc = tl.zeros([BLOCK_H, D], tl.float32)
    base = (batch * (HEADS // GROUP) + head) * M
    for start in range(first, last, BLOCK_N):
        at = start + keys
        k_tile = tl.load(k + (base + at[None, :]) * D + channels[:, None], mask=at[None, :] < last, other=0.0)
        scores = tl.dot(q_tile, k_tile.to(q_tile.dtype)) * (scale * k_scale)
        scores = tl.where(at[None, :] < last, scores, -float("inf"))
        new = tl.maximum(highest, tl.max(scores, 1))
        weights = tl.exp2(scores - new[:, None])
        decay = tl.exp2(highest - new)
        total = total * decay + tl.sum(weights, 1)
        v_tile = tl.load(v + (base + at[:, None]) * D + channels[None, :], mask=at[:, None] < last, other=0.0)
        acc = acc * decay[:, None] + tl.dot(weights.to(q_tile.dtype), v_tile.to(q_tile.dtype))
        highest = new
    place = query * tl.num_programs(2) + part
    tl.store(out + place[:, None] * D + channels[None, :], acc * v_scale / total[:, None], mask=known[:, None])
    tl.store(lse + place, highest + tl.log2(total), mask=known)


@case("decoding of 64 heads in groups of 8 bf16", torch.bfloat16, 8, 128)
@case("decoding of an e4m3 cache bf16", torch.float8_e4m3fn, 8, 128)
def grouped_decode(kind, group, D):
    B, shared, M, SPLIT = 2, 4 if group != 8 else 8, 200, 128
    H = shared * group
    kind_q = torch.float16 if kind == torch.float16 else torch.bfloat16
    q = torch.randn(B, H, D).to(kind_q)
    k, v = (torch.randn(B, shared, M, D).to(kind) for _ in range(2))
    lengths = torch.tensor([M, 150], dtype=torch.int32)
    parts = triton.cdiv(M, SPLIT)
    k_scale, v_scale = (0.5, 2.0) if kind in (torch.float8_e4m3fn, torch.float8_e5m2) else (1.0, 1.0)
    scores = torch.einsum("bhd,bhmd->bhm", q.double(), k.double().repeat_interleave(group, 1)) * D**-0.5 * k_scale
    out, lse = poisoned(B, H, parts, D).double(), poisoned(B, H, parts).double()
    for b in range(B):
        for p in range(parts):
            run = slice(p * SPLIT, min((p + 1) * SPLIT, int(lengths[b])))
            chosen = scores[b, :, run]
            values = v.double().repeat_interleave(group, 1)[b, :, run] * v_scale
            out[b, :, p] = torch.einsum("hm,hmd->hd", chosen.softmax(-1), values)
            lse[b, :, p] = chosen.logsumexp(-1) / math.log(2)
    arguments = {"q": q, "k": k, "v": v, "out": poisoned(B, H, parts, D), "lse": poisoned(B, H, parts)}
    arguments |= {"lengths": lengths, "k_scale": k_scale, "v_scale": v_scale}
    arguments |= {"scale": D**-0.5 / math.log(2), "M": M}
    constants = {"HEADS": H, "GROUP": group, "BLOCK_H": 16, "BLOCK_N": 64, "D": D, "SPLIT": SPLIT}
    expected = {"out": out, "lse": lse}
    return Case(grouped_decode_kernel, (B, shared, parts), arguments, constants, expected, 4, 2, 1.2e-2)


@triton.jit
def latent_decode_kernel(
    q, cache, out, scale, M, HEADS: tl.constexpr, BLOCK_H: tl.constexpr, BLOCK_N: tl.constexpr,
    LATENT: tl.constexpr, ROPE: tl.constexpr,
):  # fmt: skip
    batch = tl.program_id(0)
    heads = tl.program_id(1) * BLOCK_H + tl.arange(0, BLOCK_H)
    latent, turned, keys = tl.arange(0, LATENT), LATENT + tl.arange(0, ROPE), tl.arange(0, BLOCK_N)
    q_at = q + (batch * HEADS + heads)[:, None] * (LATENT + ROPE)
    q_tile, q_turned = tl.load(q_at + latent[None, :]), tl.load(q_at + turned[None, :])
    highest = tl.full([BLOCK_H], -float("inf"), tl.float32)
    total = tl.zeros([BLOCK_H], tl.float32)
    acc = tl.zeros([BLOCK_H, LATENT], tl.float32)
    for start in range(0, M, BLOCK_N):
        at = start + keys
        c_at = cache + (batch * M + at)[None, :] * (LATENT + ROPE)
        c_tile = tl.load(c_at + latent[:, None], mask=at[None, :] < M, other=0.0)
        c_turned = tl.load(c_at + turned[:, None], mask=at[None, :] < M, other=0.0)
        scores = tl.dot(q_tile, c_tile)
        scores = tl.dot(q_turned, c_turned, scores) * scale
        scores = tl.where(at[None, :] < M, scores, -float("inf"))
        new = tl.maximum(highest, tl.max(scores, 1))
        weights, decay = tl.exp2(scores - new[:, None]), tl.exp2(highest - new)
        total = total * decay + tl.sum(weights, 1)
        acc = tl.dot(weights.to(cache.dtype.element_ty), tl.trans(c_tile), acc * decay[:, None])
        highest = new
    out_at = out + (batch * HEADS + heads)[:, None] * LATENT + latent[None, :]
    tl.store(out_at, (acc / total[:, None]).to(out.dtype.element_ty))


@case("decoding of latents, 64 heads, bf16")
def latent_decode():
    B, H, M, L, R = 1, 64, 100, 256, 64
    q, cache = torch.randn(B, H, L + R).bfloat16(), torch.randn(B, M, L + R).bfloat16()
    weights = (torch.einsum("bhd,bmd->bhm", q.double(), cache.double()) * (L + R) ** -0.5).softmax(-1)
    exact = torch.einsum("bhm,bmd->bhd", weights, cache[..., :L].double())
    arguments = {"q": q, "cache": cache, "out": poisoned(B, H, L, dtype=q.dtype)}
    arguments |= {"scale": (L + R) ** -0.5 / math.log(2), "M": M}
    constants = {"HEADS": H, "BLOCK_H": 16, "BLOCK_N": 32, "LATENT": L, "ROPE": R}
    return Case(latent_decode_kernel, (B, H // 16), arguments, constants, {"out": exact}, 4, 2)


@triton.jit
def packed_attention_kernel(
    q, k, v, out, starts, scale, cap, HEADS: tl.constexpr, GROUP: tl.constexpr, WINDOW: tl.constexpr,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, D: tl.constexpr,
):  # fmt: skip
    sequence, head = tl.program_id(1), tl.program_id(2)
    begin, end = tl.load(starts + sequence), tl.load(starts + sequence + 1)
    length = end - begin
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    if tl.program_id(0) * BLOCK_M >= length:
        return
    channels, keys = tl.arange(0, D), tl.arange(0, BLOCK_N)
    q_at = q + ((begin + rows)[:, None] * HEADS + head) * D + channels[None, :]
    q_tile = tl.load(q_at, mask=rows[:, None] < length, other=0.0)
    shared: tl.constexpr = HEADS // GROUP
    highest = tl.full([BLOCK_M], -float("inf"), tl.float32)
    total = tl.zeros([BLOCK_M], tl.float32)
    acc = tl.zeros([BLOCK_M, D], tl.float32)
    first = tl.maximum(0, tl.program_id(0) * BLOCK_M - WINDOW + 1) // BLOCK_N * BLOCK_N
    last = tl.minimum(length, (tl.program_id(0) + 1) * BLOCK_M)
    for start in range(first, last, BLOCK_N):
        at = start + keys
        kv_at = (begin + at) * shared + head // GROUP
        k_tile = tl.load(k + kv_at[None, :] * D + channels[:, None], mask=at[None, :] < length, other=0.0)
        scores = tl.dot(q_tile, k_tile) * scale / cap
        scores = cap * (2 * tl.sigmoid(2 * scores) - 1)
        seen = (rows[:, None] >= at[None, :]) & (rows[:, None] - at[None, :] < WINDOW) & (at[None, :] < length)
        scores = tl.where(seen, scores * 1.4426950408889634, -1e30)
        new = tl.maximum(highest, tl.max(scores, 1))
        weights, decay = tl.exp2(scores - new[:, None]), tl.exp2(highest - new)
        total = total * decay + tl.sum(weights, 1)
        v_tile = tl.load(v + kv_at[:, None] * D + channels[None, :], mask=at[:, None] < length, other=0.0)
        acc = acc * decay[:, None] + tl.dot(weights.to(v_tile.dtype), v_tile)
        highest = new
    out_at = out + ((begin + rows)[:, None] * HEADS + head) * D + channels[None, :]
    tl.store(out_at, (acc / total[:, None]).to(out.dtype.element_ty), mask=rows[:, None] < length)


@case("attention of packed sequences, window and soft cap, D 64 f16", 64, torch.float16)
def packed_attention(D, dtype):
    H, G, W, cap, lengths = 4, 2, 48, 20.0, [100, 37]
    T = sum(lengths)
    q, k, v = torch.randn(T, H, D).to(dtype), *(torch.randn(T, H // G, D).to(dtype) for _ in range(2))
    exact, begin = torch.zeros(T, H, D).double(), 0
    for n in lengths:
        run = slice(begin, begin + n)
        keys, values = (x[run].double().repeat_interleave(G, 1) for x in (k, v))
        scores = torch.einsum("nhd,mhd->hnm", q[run].double(), keys) * D**-0.5
        scores, away = cap * torch.tanh(scores / cap), torch.arange(n)[:, None] - torch.arange(n)[None, :]
        weights = scores.masked_fill((away < 0) | (away >= W), -torch.inf).softmax(-1)
        exact[run] = torch.einsum("hnm,mhd->nhd", weights, values)
        begin += n
    starts = torch.tensor([0, lengths[0], T], dtype=torch.int32)
    arguments = {"q": q, "k": k, "v": v, "out": poisoned(T, H, D, dtype=dtype), "starts": starts}
    arguments |= {"scale": D**-0.5, "cap": cap}
    constants = {"HEADS": H, "GROUP": G, "WINDOW": W, "BLOCK_M": 64, "BLOCK_N": 32, "D": D}
    return Case(packed_attention_kernel, (2, 2, H), arguments, constants, {"out": exact}, 4, 2)


@triton.jit
def int8_attention_kernel(
    q, k, v, q_scale, k_scale, out, N, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, D: tl.constexpr
):
    head = tl.program_id(1).to(tl.int64)
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    channels, keys = tl.arange(0, D), tl.arange(0, BLOCK_N)
    q_tile = tl.load(q + (head * N + rows)[:, None] * D + channels[None, :])
    own = tl.load(q_scale + head * tl.num_programs(0) + tl.program_id(0))
    highest = tl.full([BLOCK_M], -float("inf"), tl.float32)
    total = tl.zeros([BLOCK_M], tl.float32)
    acc = tl.zeros([BLOCK_M, D], tl.float32)
    for start in range(0, N, BLOCK_N):
        at = head * N + start + keys
        k_tile = tl.load(k + at[None, :] * D + channels[:, None])
        scores = tl.dot(q_tile, k_tile).to(tl.float32) * (own * tl.load(k_scale + (head * N + start) // BLOCK_N))
        new = tl.maximum(highest, tl.max(scores, 1))
        weights, decay = tl.exp2(scores - new[:, None]), tl.exp2(highest - new)
        total = total * decay + tl.sum(weights, 1)
        v_tile = tl.load(v + at[:, None] * D + channels[None, :])
        acc = acc * decay[:, None] + tl.dot(weights.to(tl.float16), v_tile)
        highest = new
    tl.store(out + (head * N + rows)[:, None] * D + channels[None, :], (acc / total[:, None]).to(tl.float16))


@case("attention of int8 scores D 64 f16", 64)
def int8_attention(D):
    H, N, BM, BN = 2, 256, 128, 64
    q, k = (torch.randint(-127, 128, (H, N, D)).to(torch.int8) for _ in range(2))
    v, q_scale, k_scale = torch.randn(H, N, D).half(), torch.rand(H, N // BM) * 0.02, torch.rand(H, N // BN) * 0.02
    scores = q.double() @ k.double().transpose(1, 2) * q_scale.double().repeat_interleave(BM, 1)[:, :, None]
    scores = scores * k_scale.double().repeat_interleave(BN, 1)[:, None, :] * math.log(2)
    arguments = {"q": q, "k": k, "v": v, "q_scale": q_scale, "k_scale": k_scale}
    arguments |= {"out": poisoned(H, N, D, dtype=v.dtype), "N": N}
    constants = {"BLOCK_M": BM, "BLOCK_N": BN, "D": D}
    return Case(
        int8_attention_kernel, (N // BM, H), arguments, constants, {"out": scores.softmax(-1) @ v.double()}, D // 16, 2
    )


@triton.jit
def route_kernel(logits, chosen, gates, E: tl.constexpr, TOP: tl.constexpr, ROWS: tl.constexpr):
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    experts = tl.arange(0, E)
    value = tl.load(logits + rows[:, None] * E + experts[None, :]).to(tl.float32)
    value = tl.exp(value - tl.max(value, 1)[:, None])
    value = value / tl.sum(value, 1)[:, None]
    sums = tl.zeros([ROWS], tl.float32)
    for i in tl.static_range(TOP):
        best, place = tl.max(value, 1, return_indices=True)
        tl.store(chosen + rows * TOP + i, place)
        tl.store(gates + rows * TOP + i, best)
        value = tl.where(experts[None, :] == place[:, None], -1.0, value)
        sums += best
    for i in tl.static_range(TOP):
        tl.store(gates + rows * TOP + i, tl.load(gates + rows * TOP + i) / sums)


@case("routing to 4 of 64 experts bf16")
def route():
    M, E, TOP = 32, 64, 4
    logits = torch.stack([torch.randperm(E) for _ in range(M)]).float() * 0.125 - 3
    best = logits.bfloat16().double().softmax(-1).topk(TOP)
    expected = {"chosen": best.indices.double(), "gates": best.values / best.values.sum(-1, keepdim=True)}
    arguments = {"logits": logits.bfloat16(), "chosen": poisoned(M, TOP, dtype=torch.int32), "gates": poisoned(M, TOP)}
    return Case(route_kernel, (M // 4,), arguments, {"E": E, "TOP": TOP, "ROWS": 4}, expected, 4, 1)


@triton.jit
def combine_kernel(x, gates, out, N, TOP: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    columns = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    total = tl.zeros([BLOCK], tl.float32)
    for i in range(0, TOP):
        total += tl.load(x + (row * TOP + i) * N + columns, mask=columns < N, other=0.0) * tl.load(
            gates + row * TOP + i
        )
    tl.store(out + row * N + columns, total.to(out.dtype.element_ty), mask=columns < N)


@case("results of experts added bf16")
def combine():
    M, N, TOP = 16, 1000, 6
    x, gates = torch.randn(M, TOP, N).bfloat16(), torch.rand(M, TOP)
    exact = (x.double() * gates.double()[..., None]).sum(1)
    arguments = {"x": x, "gates": gates, "out": poisoned(M, N, dtype=x.dtype), "N": N}
    return Case(combine_kernel, (M, 1), arguments, {"TOP": TOP, "BLOCK": 1024}, {"out": exact}, 4, 2)


@triton.jit
def shrink_kernel(
    x, weights, of, out, M, K, RANK: tl.constexpr, SPLIT: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_K: tl.constexpr
):
    adapter = tl.load(of + tl.program_id(1))
    rows = tl.program_id(1) * BLOCK_M + tl.arange(0, BLOCK_M)
    ranks, inner = tl.arange(0, RANK), tl.program_id(0) * BLOCK_K + tl.arange(0, BLOCK_K)
    total = tl.zeros([BLOCK_M, RANK], tl.float32)
    for step in range(0, tl.cdiv(K, BLOCK_K * SPLIT)):
        at = inner + step * BLOCK_K * SPLIT
        x_tile = tl.load(x + rows[:, None] * K + at[None, :], mask=(rows[:, None] < M) & (at[None, :] < K), other=0.0)
        w_tile = tl.load(weights + (adapter * RANK + ranks)[None, :] * K + at[:, None], mask=at[:, None] < K, other=0.0)
        total += tl.dot(x_tile, w_tile)
    tl.atomic_add(out + rows[:, None] * RANK + ranks[None, :], total, mask=rows[:, None] < M, sem="relaxed")


@case("adapters of rank 16, down, bf16")
def shrink():
    M, K, R, BM = 60, 600, 16, 16
    x, weights = torch.randn(M, K).bfloat16(), torch.randn(3, R, K).bfloat16()
    of = torch.tensor([2, 0, 1, 2], dtype=torch.int32)
    own = weights[of.long()].double().repeat_interleave(BM, 0)[:M]
    arguments = {"x": x, "weights": weights, "of": of, "out": torch.zeros(M, R), "M": M, "K": K}
    constants = {"RANK": R, "SPLIT": 2, "BLOCK_M": BM, "BLOCK_K": 64}
    exact = torch.einsum("mk,mrk->mr", x.double(), own)
    return Case(shrink_kernel, (2, 4), arguments, constants, {"out": exact}, 4, 2)


@triton.jit
def expand_kernel(x, weights, of, out, M, N, RANK: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):
    adapter = tl.load(of + tl.program_id(1))
    rows = tl.program_id(1) * BLOCK_M + tl.arange(0, BLOCK_M)
    ranks, columns = tl.arange(0, RANK), tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    mask = (rows[:, None] < M) & (columns[None, :] < N)
    x_tile = tl.load(x + rows[:, None] * RANK + ranks[None, :], mask=rows[:, None] < M, other=0.0).to(tl.bfloat16)
    w_tile = tl.load(weights + (adapter * N + columns)[None, :] * RANK + ranks[:, None], mask=columns[None, :] < N)
    at = out + rows[:, None] * N + columns[None, :]
    tl.store(at, (tl.load(at, mask=mask) + tl.dot(x_tile, w_tile)).to(tl.bfloat16), mask=mask)


@case("adapters of rank 16, up, bf16")
def expand():
    M, N, R, BM = 60, 300, 16, 16
    x, weights, out = torch.randn(M, R), torch.randn(3, N, R).bfloat16(), torch.randn(M, N).bfloat16()
    of = torch.tensor([2, 0, 1, 2], dtype=torch.int32)
    own = weights[of.long()].double().repeat_interleave(BM, 0)[:M]
    exact = out.double() + torch.einsum("mr,mnr->mn", x.bfloat16().double(), own)
    arguments = {"x": x, "weights": weights, "of": of, "out": out, "M": M, "N": N}
    constants = {"RANK": R, "BLOCK_M": BM, "BLOCK_N": 128}
    return Case(expand_kernel, (3, 4), arguments, constants, {"out": exact}, 4, 1)


@triton.jit
def norm_rope_kernel(
    x, weight, cos, sin, positions, out, eps, HEADS: tl.constexpr, D: tl.constexpr, BLOCK_H: tl.constexpr
):
    token = tl.program_id(0)
    heads, half = tl.program_id(1) * BLOCK_H + tl.arange(0, BLOCK_H), tl.arange(0, D // 2)
    at = (token * HEADS + heads)[:, None] * D + half[None, :]
    first = tl.load(x + at, mask=heads[:, None] < HEADS, other=0.0).to(tl.float32)
    second = tl.load(x + at + D // 2, mask=heads[:, None] < HEADS, other=0.0).to(tl.float32)
    factor = tl.rsqrt((tl.sum(first * first, 1) + tl.sum(second * second, 1)) / D + eps)[:, None]
    first = first * factor * tl.load(weight + half)[None, :]
    second = second * factor * tl.load(weight + D // 2 + half)[None, :]
    place = tl.load(positions + token)
    c, s = tl.load(cos + place * (D // 2) + half)[None, :], tl.load(sin + place * (D // 2) + half)[None, :]
    tl.store(out + at, (first * c - second * s).to(out.dtype.element_ty), mask=heads[:, None] < HEADS)
    tl.store(out + at + D // 2, (second * c + first * s).to(out.dtype.element_ty), mask=heads[:, None] < HEADS)


@case("norm of heads, then rotary positions bf16")
def norm_rope():
    T, H, D, L = 12, 20, 128, 64
    x, weight, positions = torch.randn(T, H, D).bfloat16(), torch.randn(D), torch.randint(0, L, (T,)).int()
    angle = torch.rand(L, D // 2) * 6
    value = x.double() * (x.double().square().mean(-1, keepdim=True) + 1e-6).rsqrt() * weight.double()
    c, s = (f(angle).double()[positions.long()][:, None] for f in (torch.cos, torch.sin))
    a, b = value.chunk(2, -1)
    arguments = {"x": x, "weight": weight, "cos": angle.cos(), "sin": angle.sin(), "positions": positions}
    arguments |= {"out": poisoned(T, H, D, dtype=x.dtype), "eps": 1e-6}
    expected = {"out": torch.cat([a * c - b * s, b * c + a * s], -1)}
    return Case(norm_rope_kernel, (T, 1), arguments, {"HEADS": H, "D": D, "BLOCK_H": 32}, expected, 4, 1)


@triton.jit
def cache_kernel(k, cache, slots, scale, HEADS: tl.constexpr, D: tl.constexpr, PAGE: tl.constexpr, BLOCK: tl.constexpr):
    token, at = tl.program_id(0), tl.arange(0, BLOCK)
    slot = tl.load(slots + token)
    if slot < 0:
        return
    page, place = slot // PAGE, slot % PAGE
    value = tl.load(k + token * HEADS * D + at, mask=at < HEADS * D, other=0.0).to(tl.float32) / scale
    head, channel = at // D, at % D
    to = ((page * HEADS + head) * PAGE + place) * D + channel
    tl.store(cache + to, value.to(cache.dtype.element_ty), mask=at < HEADS * D)


@case("keys to the pages of an e4m3 cache bf16")
def to_cache():
    T, H, D, P, pages = 10, 6, 64, 16, 4
    k, slots = torch.randn(T, H, D).bfloat16(), torch.randperm(pages * P)[:T]
    slots[3] = -1
    cache = torch.zeros(pages, H, P, D).to(torch.float8_e4m3fn)
    exact = cache.double()
    for t in range(T):
        if slots[t] >= 0:
            exact[slots[t] // P, :, slots[t] % P] = k[t].double() / 0.5
    arguments = {"k": k, "cache": cache, "slots": slots, "scale": 0.5}
    constants = {"HEADS": H, "D": D, "PAGE": P, "BLOCK": 512}
    return Case(cache_kernel, (T,), arguments, constants, {"cache": exact}, 4, 1)


@triton.jit
def top_k_kernel(logits, threshold, kept, N, TOP: tl.constexpr, BLOCK: tl.constexpr):
    row, columns = tl.program_id(0), tl.arange(0, BLOCK)
    value = tl.load(logits + row * N + columns, mask=columns < N, other=-float("inf")).to(tl.float32)
    low, high = tl.min(tl.where(columns < N, value, float("inf")), 0), tl.max(value, 0)
    for _ in range(0, 24):
        middle = 0.5 * (low + high)
        enough = tl.sum((value >= middle).to(tl.int32), 0) >= TOP
        low = tl.where(enough, middle, low)
        high = tl.where(enough, high, middle)
    weights = tl.where(value >= low, tl.exp(value - tl.max(value, 0)), 0.0)
    tl.store(kept + row * N + columns, weights / tl.sum(weights, 0), mask=columns < N)
    tl.store(threshold + row, tl.min(tl.where(value >= low, value, float("inf")), 0))


@case("the 50 likeliest of 4 000 kept f16")
def top_k():
    M, N, TOP = 4, 4000, 50
    logits = torch.stack([torch.randperm(N) for _ in range(M)]).float() / 512
    logits = logits.half()
    best = logits.double().topk(TOP).values[:, -1:]
    weights = logits.double().masked_fill(logits.double() < best, -torch.inf).softmax(-1)
    arguments = {"logits": logits, "threshold": poisoned(M), "kept": poisoned(M, N), "N": N}
    expected = {"threshold": best[:, 0], "kept": weights}
    return Case(top_k_kernel, (M,), arguments, {"TOP": TOP, "BLOCK": 4096}, expected, 8, 1)


@triton.jit
def top_p_kernel(logits, out, p, N: tl.constexpr):
    row, columns = tl.program_id(0), tl.arange(0, N)
    value = tl.load(logits + row * N + columns)
    weights = tl.exp(value - tl.max(value, 0))
    weights = weights / tl.sum(weights, 0)
    sorted_ = tl.sort(weights, descending=True)
    before = tl.cumsum(sorted_, 0) - sorted_
    least = tl.min(tl.where(before < p, sorted_, 2.0), 0)
    kept = tl.where(weights >= least, weights, 0.0)
    tl.store(out + row * N + columns, kept / tl.sum(kept, 0))


@case("the likeliest 0.9 of 512 kept f32")
def top_p():
    M, N = 4, 512
    logits = torch.stack([torch.randperm(N) for _ in range(M)]).float() / 64
    weights = logits.double().softmax(-1)
    order = weights.sort(-1, descending=True)
    least = order.values.masked_fill(order.values.cumsum(-1) - order.values >= 0.9, 2.0).amin(-1, keepdim=True)
    kept = weights.masked_fill(weights < least, 0)
    arguments = {"logits": logits, "out": poisoned(M, N), "p": 0.9}
    return Case(top_p_kernel, (M,), arguments, {"N": N}, {"out": kept / kept.sum(-1, keepdim=True)}, 4, 1)
