# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Attention: forward, backward, decoding in parts, merging."""

import math

import torch
import triton
import triton.language as tl

from . import Case, case, poisoned


@triton.jit
def forward_kernel(
    q, k, v, out, lse, scale, N, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, D: tl.constexpr, CAUSAL: tl.constexpr
):
    head = tl.program_id(1).to(tl.int64) * N * D
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    keys, channels = tl.arange(0, BLOCK_N), tl.arange(0, D)
    q_tile = tl.load(q + head + rows[:, None] * D + channels[None, :], mask=rows[:, None] < N, other=0.0)
    k_at = k + head + keys[None, :] * D + channels[:, None]
    v_at = v + head + keys[:, None] * D + channels[None, :]
    highest = tl.full([BLOCK_M], -float("inf"), tl.float32)
    total = tl.zeros([BLOCK_M], tl.float32)
    acc = tl.zeros([BLOCK_M, D], tl.float32)
    end = tl.minimum((tl.program_id(0) + 1) * BLOCK_M, N) if CAUSAL else N
    for start in range(0, end, BLOCK_N):
        k_tile = tl.load(k_at + start * D, mask=start + keys[None, :] < N, other=0.0)
        scores = tl.dot(q_tile, k_tile) * scale
        scores = tl.where(start + keys[None, :] < N, scores, -float("inf"))
        if CAUSAL:
            scores = tl.where(rows[:, None] >= start + keys[None, :], scores, -float("inf"))
        new = tl.maximum(highest, tl.max(scores, 1))
        weights = tl.exp2(scores - new[:, None])
        decay = tl.exp2(highest - new)
        total = total * decay + tl.sum(weights, 1)
        v_tile = tl.load(v_at + start * D, mask=start + keys[:, None] < N, other=0.0)
        acc = tl.dot(weights.to(v.dtype.element_ty), v_tile, acc * decay[:, None])
        highest = new
    tl.store(lse + tl.program_id(1) * N + rows, highest + tl.log2(total), mask=rows < N)
    out_at = out + head + rows[:, None] * D + channels[None, :]
    tl.store(out_at, (acc / total[:, None]).to(out.dtype.element_ty), mask=rows[:, None] < N)


def reference(q, k, v, causal):
    """Results, weights and log2-sum-exp in float64."""
    scores = q.double() @ k.double().transpose(-1, -2) * q.shape[-1] ** -0.5
    if causal:
        scores = scores.masked_fill(torch.ones_like(scores, dtype=torch.bool).triu(1), -torch.inf)
    weights = scores.softmax(-1)
    return weights @ v.double(), weights, scores.logsumexp(-1) / math.log(2)


@case("attention D 64 f16", 64, False)
@case("attention D 64 causal f16", 64, True)
@case("attention D 128 bf16", 128, False, torch.bfloat16)
@case("attention D 128 causal bf16", 128, True, torch.bfloat16)
def forward(D, causal, dtype=torch.float16):
    H, N, warps = 1, 250, D // 16
    q, k, v = (torch.randn(H, N, D).to(dtype) for _ in range(3))
    exact, _, lse = reference(q, k, v, causal)
    arguments = {"q": q, "k": k, "v": v, "out": poisoned(H, N, D, dtype=dtype), "lse": poisoned(H, N)}
    arguments |= {"scale": math.log2(math.e) * D**-0.5, "N": N}
    constants = {"BLOCK_M": 128, "BLOCK_N": 64, "D": D, "CAUSAL": causal}
    return Case(forward_kernel, (2, H), arguments, constants, {"out": exact, "lse": lse}, warps, 3)


@triton.jit
def uneven_forward_kernel(
    q, k, v, out, scale, N, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, D: tl.constexpr, WIDTH: tl.constexpr
):
    """Heads of D channels in tiles of WIDTH, which is D where the compiler takes any size."""
    head = tl.program_id(1).to(tl.int64) * N * D
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    keys, channels = tl.arange(0, BLOCK_N), tl.arange(0, WIDTH)
    q_mask = rows[:, None] < N
    if WIDTH > D:
        q_mask = q_mask & (channels[None, :] < D)
    q_tile = tl.load(q + head + rows[:, None] * D + channels[None, :], mask=q_mask, other=0.0)
    k_at = k + head + keys[None, :] * D + channels[:, None]
    v_at = v + head + keys[:, None] * D + channels[None, :]
    highest = tl.full([BLOCK_M], -float("inf"), tl.float32)
    total = tl.zeros([BLOCK_M], tl.float32)
    acc = tl.zeros([BLOCK_M, WIDTH], tl.float32)
    for start in range(0, N, BLOCK_N):
        k_mask, v_mask = start + keys[None, :] < N, start + keys[:, None] < N
        if WIDTH > D:
            k_mask, v_mask = k_mask & (channels[:, None] < D), v_mask & (channels[None, :] < D)
        scores = tl.dot(q_tile, tl.load(k_at + start * D, mask=k_mask, other=0.0)) * scale
        scores = tl.where(start + keys[None, :] < N, scores, -float("inf"))
        new = tl.maximum(highest, tl.max(scores, 1))
        weights = tl.exp2(scores - new[:, None])
        decay = tl.exp2(highest - new)
        total = total * decay + tl.sum(weights, 1)
        v_tile = tl.load(v_at + start * D, mask=v_mask, other=0.0)
        acc = tl.dot(weights.to(v.dtype.element_ty), v_tile, acc * decay[:, None])
        highest = new
    out_at = out + head + rows[:, None] * D + channels[None, :]
    tl.store(out_at, (acc / total[:, None]).to(out.dtype.element_ty), mask=q_mask)


@case("attention D 80 f16", 80)
@case("attention D 96 f16", 96)
def uneven_forward(D):
    H, N = 1, 250
    q, k, v = (torch.randn(H, N, D).to(torch.float16) for _ in range(3))
    exact, _, _ = reference(q, k, v, False)
    arguments = {"q": q, "k": k, "v": v, "out": poisoned(H, N, D, dtype=torch.float16)}
    arguments |= {"scale": math.log2(math.e) * D**-0.5, "N": N}
    constants = {"BLOCK_M": 128, "BLOCK_N": 64, "D": D, "WIDTH": D}
    return Case(
        uneven_forward_kernel, (2, H), arguments, constants, {"out": exact}, 4, 3, peer_constants={"WIDTH": 128}
    )


@triton.jit
def keys_backward_kernel(
    q, k, v, grad, lse, delta, dk, dv, scale, scale_log2, N,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, D: tl.constexpr, CAUSAL: tl.constexpr,
):  # fmt: skip
    keys = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    channels = tl.arange(0, D)
    at = keys[:, None] * D + channels[None, :]
    k_tile, v_tile = tl.load(k + at), tl.load(v + at)
    dk_tile, dv_tile = tl.zeros([BLOCK_N, D], tl.float32), tl.zeros([BLOCK_N, D], tl.float32)
    first = tl.program_id(0) * BLOCK_N // BLOCK_M * BLOCK_M if CAUSAL else 0
    for start in range(first, N, BLOCK_M):
        rows = start + tl.arange(0, BLOCK_M)
        q_tile = tl.load(q + rows[:, None] * D + channels[None, :])
        g_tile = tl.load(grad + rows[:, None] * D + channels[None, :])
        weights = tl.exp2(tl.dot(k_tile, tl.trans(q_tile)) * scale_log2 - tl.load(lse + rows)[None, :])
        if CAUSAL:
            weights = tl.where(rows[None, :] >= keys[:, None], weights, 0.0)
        dv_tile += tl.dot(weights.to(grad.dtype.element_ty), g_tile)
        d = tl.dot(v_tile, tl.trans(g_tile)) - tl.load(delta + rows)[None, :]
        dk_tile += tl.dot((weights * d).to(q.dtype.element_ty), q_tile)
    tl.store(dk + at, (dk_tile * scale).to(dk.dtype.element_ty))
    tl.store(dv + at, dv_tile.to(dv.dtype.element_ty))


@triton.jit
def queries_backward_kernel(
    q, k, v, grad, lse, delta, dq, scale, scale_log2, N,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, D: tl.constexpr, CAUSAL: tl.constexpr,
):  # fmt: skip
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    channels = tl.arange(0, D)
    at = rows[:, None] * D + channels[None, :]
    q_tile, g_tile = tl.load(q + at), tl.load(grad + at)
    row_lse, row_delta = tl.load(lse + rows), tl.load(delta + rows)
    dq_tile = tl.zeros([BLOCK_M, D], tl.float32)
    end = (tl.program_id(0) + 1) * BLOCK_M if CAUSAL else N
    for start in range(0, end, BLOCK_N):
        keys = start + tl.arange(0, BLOCK_N)
        k_tile = tl.load(k + keys[:, None] * D + channels[None, :])
        v_tile = tl.load(v + keys[:, None] * D + channels[None, :])
        weights = tl.exp2(tl.dot(q_tile, tl.trans(k_tile)) * scale_log2 - row_lse[:, None])
        if CAUSAL:
            weights = tl.where(rows[:, None] >= keys[None, :], weights, 0.0)
        d = weights * (tl.dot(g_tile, tl.trans(v_tile)) - row_delta[:, None])
        dq_tile += tl.dot(d.to(k.dtype.element_ty), k_tile)
    tl.store(dq + at, (dq_tile * scale).to(dq.dtype.element_ty))


@case("attention backward, keys, D 64 f16", "keys", 64, False, 64, 64, 4)
@case("attention backward, keys, D 64 causal f16", "keys", 64, True, 32, 128, 4)
@case("attention backward, keys, D 128 f16", "keys", 128, False, 32, 128, 8)
@case("attention backward, queries, D 64 f16", "queries", 64, False, 64, 64, 4)
@case("attention backward, queries, D 128 causal f16", "queries", 128, True, 128, 32, 8)
def backward(which, D, causal, BM, BN, warps):
    N = 256
    q, k, v, g = (torch.randn(N, D).half() for _ in range(4))
    leaves = [x.double().requires_grad_() for x in (q, k, v)]
    out, _, lse = reference(*leaves, causal)
    dq, dk, dv = torch.autograd.grad(out, leaves, g.double())
    delta = (out.detach() * g.double()).sum(-1).float()
    scale = D**-0.5
    arguments = {"q": q, "k": k, "v": v, "grad": g, "lse": lse.detach().float(), "delta": delta}
    expected = {"dk": dk, "dv": dv} if which == "keys" else {"dq": dq}
    arguments |= {name: poisoned(N, D, dtype=q.dtype) for name in expected}
    arguments |= {"scale": scale, "scale_log2": scale * math.log2(math.e), "N": N}
    constants = {"BLOCK_M": BM, "BLOCK_N": BN, "D": D, "CAUSAL": causal}
    kernel, block = (keys_backward_kernel, BN) if which == "keys" else (queries_backward_kernel, BM)
    return Case(kernel, (N // block,), arguments, constants, expected, warps, 3, 4e-3)


@triton.jit
def decode_kernel(
    q, k, v, table, lengths, acc_out, lse_out, scale, pages, SPLITS: tl.constexpr, GROUP: tl.constexpr,
    PAGE: tl.constexpr, D: tl.constexpr,
):  # fmt: skip
    sequence, head, split = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    heads = tl.num_programs(1)
    length = tl.load(lengths + sequence)
    rows, channels, within = tl.arange(0, GROUP), tl.arange(0, D), tl.arange(0, PAGE)
    q_tile = tl.load(q + ((sequence * heads + head) * GROUP + rows[:, None]) * D + channels[None, :])
    highest = tl.full([GROUP], -float("inf"), tl.float32)
    total = tl.zeros([GROUP], tl.float32)
    acc = tl.zeros([GROUP, D], tl.float32)
    each = tl.cdiv(tl.cdiv(length, PAGE), SPLITS)
    for number in range(split * each, tl.minimum((split + 1) * each, tl.cdiv(length, PAGE))):
        page = tl.load(table + sequence * pages + number).to(tl.int64)
        at = ((page * PAGE + within) * heads + head) * D
        known = number * PAGE + within < length
        k_tile = tl.load(k + at[None, :] + channels[:, None], mask=known[None, :], other=0.0)
        v_tile = tl.load(v + at[:, None] + channels[None, :], mask=known[:, None], other=0.0)
        scores = tl.where(known[None, :], tl.dot(q_tile, k_tile) * scale, -float("inf"))
        new = tl.maximum(highest, tl.max(scores, 1))
        weights = tl.exp2(scores - new[:, None])
        decay = tl.exp2(highest - new)
        total = total * decay + tl.sum(weights, 1)
        acc = acc * decay[:, None] + tl.dot(weights.to(v.dtype.element_ty), v_tile)
        highest = new
    place = ((sequence * heads + head) * SPLITS + split) * GROUP + rows
    some = total > 0
    divided = acc / tl.where(some, total, 1.0)[:, None]
    tl.store(acc_out + place[:, None] * D + channels[None, :], divided)
    tl.store(lse_out + place, tl.where(some, highest + tl.log2(tl.where(some, total, 1.0)), -float("inf")))


@case("attention decoding of pages f16")
def decode():
    S, H, G, PAGE, D, pages, splits = 2, 2, 16, 32, 64, 6, 2
    lengths = torch.tensor([150, 170], dtype=torch.int32)
    table = torch.randperm(S * pages).reshape(S, pages).int()
    k, v = (torch.randn(S * pages, PAGE, H, D).half() for _ in range(2))
    q = torch.randn(S, H, G, D).half()
    accs, lses = torch.zeros(S, H, splits, G, D).double(), torch.zeros(S, H, splits, G).double()
    for s in range(S):
        own_k = k[table[s].long()].reshape(-1, H, D).transpose(0, 1)
        own_v = v[table[s].long()].reshape(-1, H, D).transpose(0, 1)
        each = triton.cdiv(triton.cdiv(int(lengths[s]), PAGE), splits) * PAGE
        for part in range(splits):
            span = slice(part * each, min((part + 1) * each, int(lengths[s])))
            accs[s, :, part], _, lses[s, :, part] = reference(q[s], own_k[:, span], own_v[:, span], False)
    arguments = {"q": q, "k": k, "v": v, "table": table, "lengths": lengths, "acc_out": poisoned(*accs.shape)}
    arguments |= {"lse_out": poisoned(*lses.shape), "scale": math.log2(math.e) * D**-0.5, "pages": pages}
    constants = {"SPLITS": splits, "GROUP": G, "PAGE": PAGE, "D": D}
    return Case(decode_kernel, (S, H, splits), arguments, constants, {"acc_out": accs, "lse_out": lses}, 4, 2, 2e-3)


@triton.jit
def merge_kernel(parts, lses, out, SPLITS: tl.constexpr, D: tl.constexpr, ROWS: tl.constexpr):
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    splits, channels = tl.arange(0, SPLITS), tl.arange(0, D)
    lse = tl.load(lses + rows[:, None] * SPLITS + splits[None, :])
    shares = tl.exp2(lse - tl.max(lse, 1)[:, None])
    shares = shares / tl.sum(shares, 1)[:, None]
    at = (rows[:, None] * SPLITS + splits[None, :])[:, :, None] * D + channels[None, None, :]
    tl.store(out + rows[:, None] * D + channels[None, :], tl.sum(tl.load(parts + at) * shares[:, :, None], 1))


@case("merging of attention's parts f32")
def merge():
    parts, lses = torch.randn(16, 8, 64), torch.randn(16, 8) * 3
    shares = (lses.double() * math.log(2)).softmax(-1)
    arguments = {"parts": parts, "lses": lses, "out": poisoned(16, 64)}
    exact = (parts.double() * shares[..., None]).sum(1)
    return Case(merge_kernel, (4,), arguments, {"SPLITS": 8, "D": 64, "ROWS": 4}, {"out": exact})
