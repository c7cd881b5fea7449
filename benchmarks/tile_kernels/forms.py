# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Forms that others write kernels in: loops that count by themselves, several values reduced at once, batches of
products, operands taken from registers and turned, programs that wait for each other, words of bits."""

import torch
import triton
import triton.language as tl
from torch.nn import functional

from . import Case, case, poisoned


@triton.jit
def ranks_kernel(
    ids, places, sizes, experts, total, n, E: tl.constexpr, BLOCK: tl.constexpr, TILE: tl.constexpr, MOST: tl.constexpr
):
    i, e = tl.arange(0, BLOCK), tl.arange(0, E)
    own = tl.load(ids + i, mask=i < n, other=E)
    ones = (own[:, None] == e[None, :]).to(tl.int32)
    count = tl.sum(ones, 0)
    padded = (count + TILE - 1) // TILE * TILE
    end = tl.cumsum(padded, 0)
    rank = tl.cumsum(ones, 0) - ones
    place = tl.sum(ones * (rank + (end - padded)[None, :]), 1)
    tl.store(places + place, i, mask=i < n)
    tl.store(sizes + e, count)
    t, used = tl.arange(0, MOST), tl.sum(padded, 0)
    of = tl.sum((t[:, None] * TILE >= end[None, :]).to(tl.int32), 1)
    tl.store(experts + t, tl.where(t * TILE < used, of, -1))
    tl.store(total, used)


@case("tokens placed by expert in tiles of 16, by sums of ones, i32")
def ranks():
    n, E, B, TILE, MOST = 200, 16, 256, 16, 32
    ids = torch.randint(0, E, (n,), dtype=torch.int32)
    count = torch.bincount(ids.long(), minlength=E)
    padded = (count + TILE - 1) // TILE * TILE
    end = padded.cumsum(0)
    places = torch.full((512,), -7, dtype=torch.int32)
    exact = places.double()
    for e in range(E):
        mine = (ids == e).nonzero()[:, 0]
        begin = int(end[e] - padded[e])
        exact[begin : begin + len(mine)] = mine.double()
    t = torch.arange(MOST)
    of = (t[:, None] * TILE >= end[None]).sum(1).masked_fill(t * TILE >= end[-1], -1)
    empty = {name: poisoned(size, dtype=torch.int32) for name, size in (("sizes", E), ("experts", MOST), ("total", 1))}
    arguments = {"ids": ids, "places": places, "n": n, **empty}
    expected = {"places": exact, "sizes": count.double(), "experts": of.double(), "total": end[-1:].double()}
    constants = {"E": E, "BLOCK": B, "TILE": TILE, "MOST": MOST}
    return Case(ranks_kernel, (1,), arguments, constants, expected, 4, 1)


@triton.jit
def merged(mean0, squares0, n0, mean1, squares1, n1):
    n = n0 + n1
    gap, part = mean1 - mean0, tl.where(n == 0.0, 0.0, n1 / n)
    return mean0 + gap * part, squares0 + squares1 + gap * gap * n0 * part, n


@triton.jit
def statistics_kernel(
    x, means, variances, N, C, P, stride_n, stride_c, stride_p, BLOCK_N: tl.constexpr, BLOCK_C: tl.constexpr,
    BLOCK_P: tl.constexpr,
):  # fmt: skip
    c, n = tl.program_id(0) * BLOCK_C + tl.arange(0, BLOCK_C), tl.arange(0, BLOCK_N)
    mean, squares = tl.zeros((BLOCK_C,), tl.float32), tl.zeros((BLOCK_C,), tl.float32)
    count = tl.zeros((BLOCK_C,), tl.float32)
    for first in range(0, P, BLOCK_P):
        p = first + tl.arange(0, BLOCK_P)
        at = n[:, None, None] * stride_n + c[None, :, None] * stride_c + p[None, None, :] * stride_p
        mask = (n < N)[:, None, None] & (c < C)[None, :, None] & (p < P)[None, None, :]
        value = tl.load(x + at, mask=mask, other=0.0).to(tl.float32)
        rows = tl.reduce((value, tl.zeros_like(value), mask.to(tl.float32)), 2, merged)
        own_mean, own_squares, own_count = tl.reduce(rows, 0, merged)
        mean, squares, count = merged(mean, squares, count, own_mean, own_squares, own_count)
    tl.store(means + c, mean, mask=c < C)
    tl.store(variances + c, squares / count, mask=c < C)


@case("statistics of a batch's channels, three values merged at once, f16")
def statistics():
    N, C, P = 3, 21, 77
    x = (torch.randn(N, C, P) + 3).half()
    arguments = {"x": x, "means": poisoned(C), "variances": poisoned(C), "N": N, "C": C, "P": P}
    arguments |= {"stride_n": C * P, "stride_c": P, "stride_p": 1}
    expected = {"means": x.double().mean((0, 2)), "variances": x.double().var((0, 2), unbiased=False)}
    constants = {"BLOCK_N": 4, "BLOCK_C": 4, "BLOCK_P": 32}
    return Case(statistics_kernel, (6,), arguments, constants, expected, 4, 1)


@triton.jit
def orthogonal_kernel(g, out, stride, eps, STEPS: tl.constexpr, N: tl.constexpr, M: tl.constexpr):
    i, j = tl.arange(0, N), tl.arange(0, M)
    at = (tl.program_id(0) * N + i[:, None]) * stride + j[None, :]
    x = tl.load(g + at).to(tl.float32)
    x = x / (tl.sqrt(tl.sum(tl.sum(x * x, 1), 0)) + eps)
    for _ in range(STEPS):
        half = x.to(tl.float16)
        a = tl.dot(half, tl.trans(half))
        half_a = a.to(tl.float16)
        b = -4.775 * a + 2.0315 * tl.dot(half_a, half_a)
        x = 3.4445 * x + tl.dot(b.to(tl.float16), half)
    tl.store(out + at, x.to(out.dtype.element_ty))


@case("five steps of Newton-Schulz of 32x64 bf16")
def orthogonal():
    B, N, M = 2, 32, 64
    g = torch.randn(B, N, M).bfloat16()
    x = g.double() / (g.double().flatten(1).norm(dim=1)[:, None, None] + 1e-7)
    for _ in range(5):
        a = x @ x.mT
        x = 3.4445 * x + (-4.775 * a + 2.0315 * a @ a) @ x
    arguments = {"g": g, "out": poisoned(B, N, M, dtype=g.dtype), "stride": M, "eps": 1e-7}
    constants = {"STEPS": 5, "N": N, "M": M}
    return Case(orthogonal_kernel, (B,), arguments, constants, {"out": x}, 4, 2, 4e-2)  # steps in f16 add up


@triton.jit
def together_kernel(
    q, k, v, out, N, scale, SHARED: tl.constexpr, GROUP: tl.constexpr, D: tl.constexpr, BLOCK: tl.constexpr
):
    batch, h, d = tl.program_id(0), tl.arange(0, SHARED)[:, None, None], tl.arange(0, D)
    own = ((batch * SHARED + h) * GROUP + tl.arange(0, GROUP)[None, :, None]) * D + d[None, None, :]
    q_tile = tl.load(q + own)
    highest, total = tl.full((SHARED, GROUP), -1e30, tl.float32), tl.zeros((SHARED, GROUP), tl.float32)
    acc = tl.zeros((SHARED, GROUP, D), tl.float32)
    for first in range(0, N, BLOCK):
        n = first + tl.arange(0, BLOCK)
        across, down = n[None, None, :], n[None, :, None]
        k_at = ((batch * N + across) * SHARED + h) * D + d[None, :, None]
        scores = tl.dot(q_tile, tl.load(k + k_at, mask=across < N, other=0.0)) * scale
        scores = tl.where(across < N, scores, -1e30)
        new = tl.maximum(highest, tl.max(scores, 2))
        weights, decay = tl.exp(scores - new[:, :, None]), tl.exp(highest - new)
        v_at = ((batch * N + down) * SHARED + h) * D + d[None, None, :]
        v_tile = tl.load(v + v_at, mask=down < N, other=0.0)
        acc = acc * decay[:, :, None] + tl.dot(weights.to(v_tile.dtype), v_tile)
        total, highest = total * decay + tl.sum(weights, 2), new
    tl.store(out + own, (acc / total[:, :, None]).to(out.dtype.element_ty))


@case("decoding of 4 shared heads together by batched products, D 32, f16")
def together():
    B, N, H, G, D = 2, 100, 4, 16, 32
    q, k, v = torch.randn(B, H, G, D).half(), torch.randn(B, N, H, D).half(), torch.randn(B, N, H, D).half()
    weights = (torch.einsum("bhgd,bnhd->bhgn", q.double(), k.double()) * D**-0.5).softmax(-1)
    arguments = {"q": q, "k": k, "v": v, "out": poisoned(B, H, G, D, dtype=q.dtype), "N": N, "scale": D**-0.5}
    constants = {"SHARED": H, "GROUP": G, "D": D, "BLOCK": 32}
    expected = {"out": torch.einsum("bhgn,bnhd->bhgd", weights, v.double())}
    return Case(together_kernel, (B,), arguments, constants, expected, 4, 2)


@triton.jit
def overlaps_kernel(boxes, bits, N, words, threshold, BLOCK: tl.constexpr):
    i, j = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK), tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    x0, y0 = tl.load(boxes + i * 4, mask=i < N, other=0.0), tl.load(boxes + i * 4 + 1, mask=i < N, other=0.0)
    x1, y1 = tl.load(boxes + i * 4 + 2, mask=i < N, other=0.0), tl.load(boxes + i * 4 + 3, mask=i < N, other=0.0)
    u0, v0 = tl.load(boxes + j * 4, mask=j < N, other=0.0), tl.load(boxes + j * 4 + 1, mask=j < N, other=0.0)
    u1, v1 = tl.load(boxes + j * 4 + 2, mask=j < N, other=0.0), tl.load(boxes + j * 4 + 3, mask=j < N, other=0.0)
    width = tl.minimum(x1[:, None], u1[None, :]) - tl.maximum(x0[:, None], u0[None, :])
    height = tl.minimum(y1[:, None], v1[None, :]) - tl.maximum(y0[:, None], v0[None, :])
    both = tl.maximum(width, 0.0) * tl.maximum(height, 0.0)
    either = ((x1 - x0) * (y1 - y0))[:, None] + ((u1 - u0) * (v1 - v0))[None, :] - both
    hit = (both > threshold * either) & (j[None, :] > i[:, None]) & (j < N)[None, :]
    word = tl.sum(hit.to(tl.int64) << (tl.arange(0, BLOCK) % 64)[None, :].to(tl.int64), 1)
    tl.store(bits + i * words + tl.program_id(1), word, mask=i < N)


@case("boxes that overlap, 64 bits a word, f32")
def overlaps():
    N, B = 100, 64
    low = torch.rand(N, 2) * 10
    boxes = torch.cat([low, low + 1 + torch.rand(N, 2) * 4], 1)
    sides = torch.minimum(boxes[:, None, 2:], boxes[:, 2:]) - torch.maximum(boxes[:, None, :2], boxes[:, :2])
    both, area = sides.clamp(min=0).prod(-1), (boxes[:, 2:] - boxes[:, :2]).prod(-1)
    hit = (both > 0.3 * (area[:, None] + area - both)).triu(1)
    hit = functional.pad(hit.long(), (0, 2 * B - N)).view(N, 2, B)
    words = torch.zeros(N, 2, dtype=torch.int64)
    for bit in range(B):
        words |= hit[:, :, bit] << bit
    arguments = {"boxes": boxes, "bits": poisoned(N, 2, dtype=torch.int64), "N": N, "words": 2, "threshold": 0.3}
    return Case(overlaps_kernel, (2, 2), arguments, {"BLOCK": B}, {"bits": words.double()}, 4, 1)


@triton.jit
def look_back_kernel(x, out, states, ticket, n, BLOCK: tl.constexpr):
    block = tl.atomic_add(ticket, 1)
    i = block * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + i, mask=i < n, other=0)
    sums, total = tl.cumsum(value, 0), tl.sum(value, 0).to(tl.int64)
    if block == 0:
        tl.atomic_xchg(states, (total << 2) | 2, sem="release")
    else:
        tl.atomic_xchg(states + block, (total << 2) | 1, sem="release")
    before, at = tl.zeros((), tl.int64), block - 1
    while at >= 0:
        word = tl.atomic_add(states + at, 0, sem="acquire")
        while word == 0:
            word = tl.atomic_add(states + at, 0, sem="acquire")
        before += word >> 2
        at = tl.where((word & 3) == 2, -1, at - 1)
    if block > 0:
        tl.atomic_xchg(states + block, ((before + total) << 2) | 2, sem="release")
    tl.store(out + i, sums + before.to(tl.int32), mask=i < n)


@case("sums of a long row by tickets, looking back, i32")
def look_back():
    n, B = 2500, 512
    x = torch.randint(0, 1000, (n,), dtype=torch.int32)
    arguments = {"x": x, "out": poisoned(n, dtype=torch.int32), "states": torch.zeros(8, dtype=torch.int64)}
    arguments |= {"ticket": torch.zeros(1, dtype=torch.int32), "n": n}
    return Case(look_back_kernel, (5,), arguments, {"BLOCK": B}, {"out": x.double().cumsum(0)}, 4, 1)


@triton.jit
def listed_kernel(q, k, v, begins, blocks, out, M, H, scale, D: tl.constexpr, BLOCK: tl.constexpr):
    part, head = tl.program_id(0), tl.program_id(1)
    rows, d, columns = part * BLOCK + tl.arange(0, BLOCK), tl.arange(0, D), tl.arange(0, BLOCK)
    own = (rows[:, None] * H + head) * D + d[None, :]
    q_tile = tl.load(q + own, mask=rows[:, None] < M, other=0.0)
    highest, total = tl.full((BLOCK,), -1e30, tl.float32), tl.zeros((BLOCK,), tl.float32)
    acc = tl.zeros((BLOCK, D), tl.float32)
    at, end = tl.load(begins + part), tl.load(begins + part + 1)
    while at < end:
        entry = tl.load(blocks + at)
        n = (entry >> 1) * BLOCK + columns
        k_at = (n[None, :] * H + head) * D + d[:, None]
        scores = tl.dot(q_tile, tl.load(k + k_at, mask=n[None, :] < M, other=0.0)) * scale
        if entry & 1:
            scores = tl.where((n[None, :] <= rows[:, None]) & (n[None, :] < M), scores, -1e30)
        new = tl.maximum(highest, tl.max(scores, 1))
        weights, decay = tl.exp(scores - new[:, None]), tl.exp(highest - new)
        v_at = (n[:, None] * H + head) * D + d[None, :]
        v_tile = tl.load(v + v_at, mask=n[:, None] < M, other=0.0)
        acc = acc * decay[:, None] + tl.dot(weights.to(v_tile.dtype), v_tile)
        total, highest = total * decay + tl.sum(weights, 1), new
        at += 1
    tl.store(out + own, (acc / total[:, None]).to(out.dtype.element_ty), mask=rows[:, None] < M)


@case("attention to listed blocks, whole or masked, by a while loop, D 64, f16")
def listed():
    M, H, D, B = 150, 2, 64, 32
    q, k, v = (torch.randn(M, H, D).half() for _ in range(3))
    begins, blocks, seen = [0], [], torch.zeros(M, M, dtype=torch.bool)
    for i in range(triton.cdiv(M, B)):
        for j in range(i + 1):
            if j == i or torch.rand(()) < 0.6:
                blocks.append(2 * j + (j == i))
                seen[i * B : (i + 1) * B, j * B : (j + 1) * B] = True
        begins.append(len(blocks))
    scores = torch.einsum("mhd,nhd->hmn", q.double(), k.double()) * D**-0.5
    weights = scores.masked_fill(~seen.tril(), -torch.inf).softmax(-1)
    arguments = {"q": q, "k": k, "v": v, "begins": torch.tensor(begins, dtype=torch.int32)}
    arguments |= {"blocks": torch.tensor(blocks, dtype=torch.int32), "out": poisoned(M, H, D, dtype=q.dtype)}
    arguments |= {"M": M, "H": H, "scale": D**-0.5}
    expected = {"out": torch.einsum("hmn,nhd->mhd", weights, v.double())}
    return Case(listed_kernel, (len(begins) - 1, H), arguments, {"D": D, "BLOCK": B}, expected, 4, 2)


@triton.jit
def clipped_kernel(base, offsets, sizes, norms, BLOCK: tl.constexpr):
    number, columns = tl.program_id(0), tl.arange(0, BLOCK)
    tensor = (base.to(tl.int64, bitcast=True) + tl.load(offsets + number)).to(tl.pointer_type(tl.float16), bitcast=True)
    size, first = tl.load(sizes + number), 0
    squares = tl.zeros((BLOCK,), tl.float32)
    while first < size:
        value = tl.load(tensor + first + columns, mask=first + columns < size, other=0.0).to(tl.float32)
        squares += value * value
        first += BLOCK
    norm, first = tl.sqrt(tl.sum(squares, 0)), 0
    while first < size:
        mask = first + columns < size
        value = tl.load(tensor + first + columns, mask=mask, other=0.0).to(tl.float32)
        tl.store(tensor + first + columns, (value / tl.maximum(norm, 1.0)).to(tl.float16), mask=mask)
        first += BLOCK
    tl.store(norms + number, norm)


@case("norms of tensors by their addresses, clipped in place, f16")
def clipped():
    sizes, offsets, length = [100, 513, 64, 1], [], 0
    for size in sizes:
        offsets.append(2 * length)
        length += (size + 7) // 8 * 8
    base = torch.randn(length).half()
    exact, norms = base.double().clone(), torch.zeros(len(sizes)).double()
    for number, (size, offset) in enumerate(zip(sizes, offsets, strict=True)):
        own = exact[offset // 2 : offset // 2 + size]
        norms[number] = own.norm()
        own /= max(1.0, float(norms[number]))
    arguments = {"base": base, "offsets": torch.tensor(offsets), "sizes": torch.tensor(sizes, dtype=torch.int32)}
    arguments |= {"norms": poisoned(len(sizes))}
    return Case(clipped_kernel, (len(sizes),), arguments, {"BLOCK": 256}, {"base": exact, "norms": norms}, 4, 1)
