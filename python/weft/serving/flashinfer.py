# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Paged decoding by FlashInfer's arguments: pages of sequences as a list with where each one's begin, log-sum-exps to
the base 2. The functions take what the traces of flashinfer-bench hand to a solution of that name."""

from __future__ import annotations

import math
from typing import Any

import torch

from weft.attention import decode


def gqa_paged_decode(
    q: Any,
    k_cache: Any,
    v_cache: Any,
    kv_indptr: Any,
    kv_indices: Any,
    kv_last_page_len: Any = None,
    sm_scale: float | None = None,
) -> dict[str, Any]:
    """One query of each sequence, q [B, H, D], over pages [P, page, Hkv, D]: {"output": [B, H, D], "lse": [B, H]}, the
    log-sum-exp to the base 2. Pages of sequence b are kv_indices[kv_indptr[b] : kv_indptr[b + 1]], the last with
    kv_last_page_len[b] rows; without that all are full."""
    table, lengths = _table(kv_indptr, kv_indices, kv_last_page_len, k_cache.shape[1])
    out, lse = decode(
        q[:, :, None], k_cache, v_cache, block_table=table, seqused_k=lengths, scale=sm_scale, return_lse=True
    )
    return {"output": out[:, :, 0], "lse": lse[:, :, 0] * (1 / math.log(2))}


def mla_paged_decode(
    q_nope: Any,
    q_pe: Any,
    ckv_cache: Any,
    kpe_cache: Any,
    kv_indptr: Any,
    kv_indices: Any,
    sm_scale: float | None = None,
) -> dict[str, Any]:
    """Latent attention of q_nope [B, H, 512] and q_pe [B, H, 64] over pages ckv_cache [P, page, 512] and kpe_cache
    [P, page, 64], as ``gqa_paged_decode`` has the rest. The two caches are joined: a copy, which a server that keeps
    them in one tensor does not need."""
    cache = torch.cat([ckv_cache, kpe_cache], -1)[:, :, None]
    table, lengths = _table(kv_indptr, kv_indices, None, cache.shape[1])
    q = torch.cat([q_nope, q_pe], -1)[:, :, None]
    values = cache[..., : ckv_cache.shape[-1]]
    out, lse = decode(q, cache, values, block_table=table, seqused_k=lengths, scale=sm_scale, return_lse=True)
    return {"output": out[:, :, 0], "lse": lse[:, :, 0] * (1 / math.log(2))}


def _table(starts: Any, pages: Any, last: Any, page: int) -> tuple[Any, Any]:
    """The table of pages and the sequences' lengths, made on the device; the table has room for all pages in each row,
    since how many the longest sequence has is not known on the host."""
    counts = starts[1:] - starts[:-1]
    places = starts[:-1, None] + torch.arange(max(len(pages), 1), device=pages.device, dtype=starts.dtype)
    table = pages[places.clamp(max=max(len(pages) - 1, 0)).long()] if len(pages) else places.clamp(0, 0)
    lengths = counts * page if last is None else torch.where(counts > 0, (counts - 1) * page + last, 0)
    return table.to(torch.int32), lengths.to(torch.int32)
