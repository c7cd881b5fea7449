# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Patterns: which pairs of a query and a key attend. Values that combine: & | ~ .shift(n) weft.per_head .transpose().

With N queries and M keys, query n stands at position p = n + (M - N): the last query at the last key.

    weft.full()                      every pair
    weft.causal()                    m <= p
    weft.window(left, right)         p - left <= m <= p + right; None is open
    weft.block_window(w)             p and m in one window of w; (rows, columns) with grid=(h, w) over a grid of tokens
    weft.prefix(n)                   m < n
    weft.global_tokens(n)            p < n or m < n
    weft.strided(step)               step divides p - m
    weft.dilated(step, width)        step divides p - m, and |p - m| <= step * width
    weft.neighbourhood(shape, kernel, dilation=1)    as NATTEN, on one to three axes
    weft.random_blocks(seed, per_row, block)         per_row distinct blocks of keys for each block of queries
    weft.document(q_ids, k_ids)      equal ids, [N] or [B, N] and [M] or [B, M]
    weft.blocks(index, count, block=(bm, bn))        blocks listed: index [B, H, R, K], count [B, H, R]
    weft.block_bitmap(bits, block=(bm, bn))          blocks set: bits [B, H, R, C]
    weft.span(lower, upper, first, past)             lower[b, h, n] <= m < upper[b, h, n]; its transpose by first, past
    weft.mask(f)                     f(b, h, n, m) of scalars gives the truth
"""

from __future__ import annotations

from .families import (
    block_bitmap,
    block_window,
    blocks,
    causal,
    dilated,
    document,
    full,
    global_tokens,
    mask,
    neighbourhood,
    per_head,
    prefix,
    random_blocks,
    span,
    strided,
    window,
)
from .pattern import Pattern

__all__ = [
    "Pattern",
    "block_bitmap",
    "block_window",
    "blocks",
    "causal",
    "dilated",
    "document",
    "full",
    "global_tokens",
    "mask",
    "neighbourhood",
    "per_head",
    "prefix",
    "random_blocks",
    "span",
    "strided",
    "window",
]
