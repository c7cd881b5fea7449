# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Attention to keys and values that lie in pages, which a table lists for each sequence."""

import math

import torch
import triton
import triton.language as tl

from . import Case, case, poisoned


@triton.jit
def paged_attention_kernel(
    q, pool_k, pool_v, table, lengths, out, scale, stride_table, stride_page, stride_row,
    H: tl.constexpr, D: tl.constexpr, PAGE: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
):  # fmt: skip
    batch, head, first = tl.program_id(1), tl.program_id(2), tl.program_id(0) * BLOCK_M
    rows, channels, keys = first + tl.arange(0, BLOCK_M), tl.arange(0, D), tl.arange(0, BLOCK_N)
    length = tl.load(lengths + batch)
    own = (batch * tl.num_programs(0) * BLOCK_M + rows) * H + head
    q_tile = tl.load(q + own[:, None] * D + channels[None, :])
    highest, total = tl.full([BLOCK_M], -float("inf"), tl.float32), tl.zeros([BLOCK_M], tl.float32)
    acc = tl.zeros([BLOCK_M, D], tl.float32)
    for start in range(0, tl.cdiv(length, BLOCK_N)):
        at = start * BLOCK_N + keys
        page = tl.load(table + batch * stride_table + at // PAGE).to(tl.int64)
        place = page * stride_page + (at % PAGE) * stride_row + head * D
        known = at < length
        k_tile = tl.load(pool_k + place[None, :] + channels[:, None], mask=known[None, :], other=0.0)
        v_tile = tl.load(pool_v + place[:, None] + channels[None, :], mask=known[:, None], other=0.0)
        scores = tl.where(known[None, :], tl.dot(q_tile, k_tile) * scale, -float("inf"))
        new = tl.maximum(highest, tl.max(scores, 1))
        weights, decay = tl.exp2(scores - new[:, None]), tl.exp2(highest - new)
        total = total * decay + tl.sum(weights, 1)
        acc = tl.dot(weights.to(v_tile.dtype), v_tile, acc * decay[:, None])
        highest = new
    tl.store(out + own[:, None] * D + channels[None, :], (acc / total[:, None]).to(out.dtype.element_ty))


@case("attention to pages of 16 rows, D 128 f16", 128, torch.float16)
@case("attention to pages of 16 rows, D 256 bf16", 256, torch.bfloat16)
def paged_attention(D, dtype):
    B, M, H, PAGE, BLOCK_N = 2, 32, 2, 16, 32
    lengths = torch.tensor([250, 90], dtype=torch.int32)
    pages = triton.cdiv(256, PAGE)
    table = torch.randperm(B * pages).int().view(B, pages)
    pool_k, pool_v = (torch.randn(B * pages, PAGE, H, D).to(dtype) for _ in range(2))
    q, expected = torch.randn(B, M, H, D).to(dtype), torch.empty(B, M, H, D, dtype=torch.float64)
    for b, length in enumerate(lengths.tolist()):
        k, v = (pool[table[b].long()].reshape(-1, H, D)[:length].double() for pool in (pool_k, pool_v))
        weights = (torch.einsum("mhd,nhd->hmn", q[b].double(), k) * D**-0.5).softmax(-1)
        expected[b] = torch.einsum("hmn,nhd->mhd", weights, v)
    arguments = {"q": q, "pool_k": pool_k, "pool_v": pool_v, "table": table, "lengths": lengths}
    arguments |= {"out": poisoned(B, M, H, D, dtype=dtype), "scale": D**-0.5 / math.log(2)}
    arguments |= {"stride_table": pages, "stride_page": PAGE * H * D, "stride_row": H * D}
    constants = {"H": H, "D": D, "PAGE": PAGE, "BLOCK_M": 16, "BLOCK_N": BLOCK_N}
    return Case(paged_attention_kernel, (M // 16, B, H), arguments, constants, {"out": expected}, 4, 3, 1.2e-2)
