# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""What lies apart in memory: a cache's pages of a few channels a key, columns that are stored as rows, tokens that are
counted by expert, groups of channels that lie last, rows longer than a block."""

import torch
import triton
import triton.language as tl
from torch.nn import functional

from . import Case, case, poisoned


@triton.jit
def prefill_kernel(
    q, k, v, keys, values, table, out, starts, lengths, scale, H: tl.constexpr, D: tl.constexpr, TOGETHER: tl.constexpr,
    PAGE: tl.constexpr, PAGES: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
):  # fmt: skip
    batch, head, first = tl.program_id(0), tl.program_id(1), tl.program_id(2) * BLOCK_M
    begin = tl.load(starts + batch)
    fresh = tl.load(starts + batch + 1) - begin
    cached = tl.load(lengths + batch) - fresh
    if first >= fresh:
        return
    rows, channels, columns = first + tl.arange(0, BLOCK_M), tl.arange(0, D), tl.arange(0, BLOCK_N)
    own = ((begin + rows)[:, None] * H + head) * D + channels[None, :]
    q_tile = tl.load(q + own, mask=(rows < fresh)[:, None], other=0.0)
    highest, total = tl.full([BLOCK_M], float("-inf"), tl.float32), tl.zeros([BLOCK_M], tl.float32)
    acc = tl.zeros([BLOCK_M, D], tl.float32)
    for start in range(0, cached, BLOCK_N):
        at = start + columns
        known = at < cached
        page = tl.load(table + batch * PAGES + at // PAGE, mask=known, other=0).to(tl.int64)
        place = ((page * H + head) * (D // TOGETHER) * PAGE + at % PAGE) * TOGETHER
        k_at = place[None, :] + (channels // TOGETHER * PAGE * TOGETHER + channels % TOGETHER)[:, None]
        v_at = ((page[:, None] * H + head) * D + channels[None, :]) * PAGE + (at % PAGE)[:, None]
        scores = tl.dot(q_tile, tl.load(keys + k_at, mask=known[None, :], other=0.0)) * scale
        scores = tl.where(known[None, :], scores, float("-inf"))
        new = tl.maximum(highest, tl.max(scores, 1))
        weights, decay = tl.exp(scores - new[:, None]), tl.exp(highest - new)
        v_tile = tl.load(values + v_at, mask=known[:, None], other=0.0)
        acc = tl.dot(weights.to(v_tile.dtype), v_tile, acc * decay[:, None])
        total = total * decay + tl.sum(weights, 1)
        highest = new
    for start in range(0, tl.minimum(first + BLOCK_M, fresh), BLOCK_N):
        at = start + columns
        place = ((begin + at) * H + head) * D
        k_tile = tl.load(k + place[None, :] + channels[:, None], mask=(at < fresh)[None, :], other=0.0)
        scores = tl.where(rows[:, None] >= at[None, :], tl.dot(q_tile, k_tile) * scale, float("-inf"))
        new = tl.maximum(highest, tl.max(scores, 1))
        weights, decay = tl.exp(scores - new[:, None]), tl.exp(highest - new)
        v_tile = tl.load(v + place[:, None] + channels[None, :], mask=(at < fresh)[:, None], other=0.0)
        acc = tl.dot(weights.to(v_tile.dtype), v_tile, acc * decay[:, None])
        total = total * decay + tl.sum(weights, 1)
        highest = new
    tl.store(out + own, (acc / total[:, None]).to(out.dtype.element_ty), mask=(rows < fresh)[:, None])


@case("prompts behind a cache of pages, eight channels a key together, f16")
def prefill():
    H, D, together, page, pages, fresh, cached = 2, 64, 8, 16, 6, [40, 23], [50, 77]
    T = sum(fresh)
    q, k, v = (torch.randn(T, H, D).half() for _ in range(3))
    keys, values = torch.randn(16, H, D // together, page, together).half(), torch.randn(16, H, D, page).half()
    table, exact, begin = torch.randperm(16)[: 2 * pages].view(2, pages), torch.zeros(T, H, D).double(), 0
    for b, (n, c) in enumerate(zip(fresh, cached, strict=True)):
        own = slice(begin, begin + n)
        old_k = keys[table[b]].double().permute(0, 3, 1, 2, 4).reshape(-1, H, D)[:c]
        old_v = values[table[b]].double().permute(0, 3, 1, 2).reshape(-1, H, D)[:c]
        all_k, all_v = torch.cat([old_k, k[own].double()]), torch.cat([old_v, v[own].double()])
        scores = torch.einsum("nhd,mhd->hnm", q[own].double(), all_k) * D**-0.5
        later = torch.arange(c + n)[None, :] > (torch.arange(n) + c)[:, None]
        exact[own] = torch.einsum("hnm,mhd->nhd", scores.masked_fill(later, -torch.inf).softmax(-1), all_v)
        begin += n
    starts = torch.tensor([0, fresh[0], T], dtype=torch.int32)
    lengths = torch.tensor([n + c for n, c in zip(fresh, cached, strict=True)], dtype=torch.int32)
    arguments = {"q": q, "k": k, "v": v, "keys": keys, "values": values, "table": table.int()}
    arguments |= {"out": poisoned(T, H, D, dtype=q.dtype), "starts": starts, "lengths": lengths, "scale": D**-0.5}
    constants = {"H": H, "D": D, "TOGETHER": together, "PAGE": page, "PAGES": pages, "BLOCK_M": 32, "BLOCK_N": 32}
    return Case(prefill_kernel, (2, H, 2), arguments, constants, {"out": exact}, 4, 1)


@triton.jit
def steps_kernel(
    dt, rate, bias, out, sums, T, H, chunk, stride_t, stride_h, BLOCK_H: tl.constexpr, BLOCK_C: tl.constexpr
):
    number, heads = tl.program_id(0), tl.program_id(1) * BLOCK_H + tl.arange(0, BLOCK_H)
    steps, limit = tl.arange(0, BLOCK_C), min(chunk, T - number * chunk)
    mask = (heads < H)[:, None] & (steps < limit)[None, :]
    at = dt + heads[:, None] * stride_h + (number * chunk + steps)[None, :] * stride_t
    value = tl.load(at, mask=mask, other=0.0).to(tl.float32)
    value += tl.load(bias + heads, mask=heads < H, other=0.0)[:, None]
    value = tl.where(value <= 20.0, tl.log(1 + tl.exp(value)), value)
    value = tl.where(mask, tl.clamp(value, 0.001, 100.0), 0.0)
    to = (heads[:, None] * tl.num_programs(0) + number) * chunk + steps[None, :]
    stored = (heads < H)[:, None] & (steps < chunk)[None, :]
    tl.store(out + to, value, mask=stored)
    decay = tl.load(rate + heads, mask=heads < H, other=0.0)[:, None]
    tl.store(sums + to, tl.cumsum(value * decay, axis=1), mask=stored)


@case("steps of a state space by chunks, heads last, and their sums f16")
def steps():
    T, H, C = 300, 24, 128
    chunks = triton.cdiv(T, C)
    dt, rate, bias = torch.randn(T, H).half(), -torch.rand(H), torch.rand(H)
    value = functional.softplus(dt.double() + bias.double()).clamp(0.001, 100)
    value = functional.pad(value, (0, 0, 0, chunks * C - T)).view(chunks, C, H).permute(2, 0, 1)
    arguments = {"dt": dt, "rate": rate, "bias": bias, "out": poisoned(H, chunks, C), "sums": poisoned(H, chunks, C)}
    arguments |= {"T": T, "H": H, "chunk": C, "stride_t": H, "stride_h": 1}
    expected = {"out": value, "sums": (value * rate.double()[:, None, None]).cumsum(-1)}
    return Case(steps_kernel, (chunks, 3), arguments, {"BLOCK_H": 8, "BLOCK_C": 128}, expected, 4, 1)


@triton.jit
def count_kernel(experts, counts, n, E: tl.constexpr, PER: tl.constexpr):
    first, row = tl.program_id(0) * PER, counts + (tl.program_id(0) + 1) * E
    for i in range(PER):
        if first + i < n:
            expert = tl.load(experts + first + i)
            tl.store(row + expert, tl.load(row + expert) + 1)


@case("tokens counted by expert, one by one, i32")
def count():
    E, n, programs = 8, 50, 4
    per = triton.cdiv(n, programs)
    experts = torch.randint(0, E, (n,), dtype=torch.int32)
    exact = torch.zeros(programs + 1, E).double()
    exact.index_put_((torch.arange(n) // per + 1, experts.long()), torch.ones(n).double(), accumulate=True)
    arguments = {"experts": experts, "counts": torch.zeros(programs + 1, E, dtype=torch.int32), "n": n}
    return Case(count_kernel, (programs,), arguments, {"E": E, "PER": per}, {"counts": exact}, 4, 1)


@triton.jit
def gated_groups_kernel(x, out, scales, counts, T, N, BLOCK: tl.constexpr, STAGES: tl.constexpr):
    expert, part = tl.program_id(2).to(tl.int64), tl.program_id(0)
    columns = part * BLOCK + tl.arange(0, BLOCK)
    for token in tl.range(tl.program_id(1), tl.load(counts + expert), tl.num_programs(1), num_stages=STAGES):
        at = x + (expert * T + token) * 2 * N + columns
        gate = tl.load(at, mask=columns < N, other=0.0).to(tl.float32)
        value = tl.load(at + N, mask=columns < N, other=0.0).to(tl.float32)
        value *= gate * tl.sigmoid(gate)
        scale = tl.maximum(tl.max(tl.abs(value), 0), 1e-10) / 127.0
        number = tl.floor(value / scale + 0.5).to(tl.int8)
        tl.store(out + (expert * T + token) * N + columns, number, mask=columns < N)
        tl.store(scales + (expert * tl.num_programs(0) + part) * T + token, scale)


@case("gated silu of experts' tokens to int8 with scales of groups, stages asked for, bf16")
def gated_groups():
    E, T, N, B = 3, 24, 256, 128
    x, counts = torch.randn(E, T, 2 * N).bfloat16(), torch.tensor([20, 24, 3], dtype=torch.int32)
    value = functional.silu(x.double()[..., :N]) * x.double()[..., N:]
    value = (value * (torch.arange(T)[None, :] < counts[:, None])[..., None]).unflatten(-1, (-1, B))
    scale = value.abs().amax(-1) / 127
    numbers = (value / scale[..., None].clamp(min=1e-9)).flatten(2)
    arguments = {"x": x, "out": torch.zeros(E, T, N, dtype=torch.int8), "scales": torch.zeros(E, N // B, T)}
    arguments |= {"counts": counts, "T": T, "N": N}
    expected = {"out": numbers, "scales": scale.transpose(1, 2)}
    return Case(gated_groups_kernel, (N // B, 4, E), arguments, {"BLOCK": B, "STAGES": 3}, expected, 1, 3, 1e-2)


@triton.jit
def channels_last_kernel(
    x, weight, bias, out, places, C, eps, GROUP: tl.constexpr, BLOCK_C: tl.constexpr, BLOCK_P: tl.constexpr
):
    channels = tl.arange(0, BLOCK_C)
    first = tl.program_id(0) * places * C + tl.program_id(1) * GROUP
    total, squares = tl.zeros((BLOCK_P, BLOCK_C), tl.float32), tl.zeros((BLOCK_P, BLOCK_C), tl.float32)
    for begin in range(0, places, BLOCK_P):
        rows = begin + tl.arange(0, BLOCK_P)
        mask = (rows < places)[:, None] & (channels < GROUP)[None, :]
        value = tl.load(x + first + rows[:, None] * C + channels[None, :], mask=mask, other=0.0).to(tl.float32)
        total += value
        squares += value * value
    count = places * GROUP
    mean = tl.sum(total) / count
    scale = tl.rsqrt(tl.sum(squares) / count - mean * mean + eps)
    own = tl.program_id(1) * GROUP + channels
    factors = tl.load(weight + own, mask=channels < GROUP, other=0.0)[None, :]
    terms = tl.load(bias + own, mask=channels < GROUP, other=0.0)[None, :]
    for begin in range(0, places, BLOCK_P):
        rows = begin + tl.arange(0, BLOCK_P)
        mask = (rows < places)[:, None] & (channels < GROUP)[None, :]
        value = tl.load(x + first + rows[:, None] * C + channels[None, :], mask=mask, other=0.0).to(tl.float32)
        value = (value - mean) * scale * factors + terms
        value *= tl.sigmoid(value)
        tl.store(out + first + rows[:, None] * C + channels[None, :], value.to(out.dtype.element_ty), mask=mask)


@case("group norm and silu, channels last, groups of 10, f16")
def channels_last():
    N, places, C, groups = 2, 90, 40, 4
    x, weight, bias = torch.randn(N, places, C).half(), torch.randn(C), torch.randn(C)
    y = functional.group_norm(x.double().transpose(1, 2), groups, weight.double(), bias.double(), 1e-5)
    arguments = {"x": x, "weight": weight, "bias": bias, "out": poisoned(N, places, C, dtype=x.dtype)}
    arguments |= {"places": places, "C": C, "eps": 1e-5}
    constants = {"GROUP": C // groups, "BLOCK_C": 16, "BLOCK_P": 64}
    expected = {"out": functional.silu(y).transpose(1, 2)}
    return Case(channels_last_kernel, (N, groups), arguments, constants, expected, 4, 1)


@triton.jit
def long_sums_kernel(x, before, out, n, BLOCK: tl.constexpr):
    block, carried = tl.program_id(0), 0.0
    for i in range(0, block):
        carried += tl.load(before + i)
    at = block * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + at, mask=at < n, other=0.0)
    sums = tl.cumsum(value, 0) + carried
    tl.store(out + at, sums, mask=at < n)
    tl.store(out + n + at, sums - value, mask=at < n)


@case("sums of a long row, with and without its own element, f32")
def long_sums():
    n, B = 3000, 1024
    x = torch.randn(n)
    before = torch.stack([part.sum() for part in x.split(B)])
    exact = x.double().cumsum(0)
    arguments = {"x": x, "before": before, "out": poisoned(2, n), "n": n}
    expected = {"out": torch.stack([exact, exact - x.double()])}
    return Case(long_sums_kernel, (triton.cdiv(n, B),), arguments, {"BLOCK": B}, expected, 4, 1, 1e-4)
