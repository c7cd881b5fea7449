# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Keys and values of new tokens written into a cache, in place: by slots, or after those that the cache has."""

from __future__ import annotations

import math
from typing import Any

import weft.language as wl
from weft.attention import checks
from weft.compiler.jit import jit
from weft.integers import next_power_of_2
from weft.programs import static
from weft.programs.eager import apart
from weft.runtime.plain import changed


@jit
def _append(
    new, cache, scales, slots, table, lengths, N, page, pages, entries, most,
    new_b, new_h, new_n, cache_p, cache_s, cache_h, table_b, scale_p, log2_base,
    D: wl.constexpr, CHANNELS: wl.constexpr, BY_SLOT: wl.constexpr, PAGED: wl.constexpr, TURNED: wl.constexpr,
    SCALED: wl.constexpr,
):  # fmt: skip
    """One token of one sequence and head. Without slots its row is lengths[b] - N + n, in pages or not. What has no
    place in the cache is not written."""
    n, h, b = wl.program_id(0), wl.program_id(1), wl.program_id(2)
    position = wl.load(lengths + b) - N + n
    if BY_SLOT:
        slot = wl.load(slots + b.to(wl.int64) * N + n).to(wl.int64)
        at, row = slot // page, slot % page
        exists = (slot >= 0) & (at < pages)
    elif PAGED:
        number = position // page
        exists = (position >= 0) & (number < entries)
        at = wl.load(table + b.to(wl.int64) * table_b + number, mask=exists, other=-1).to(wl.int64)
        row = (position % page).to(wl.int64)
        exists = exists & (at >= 0) & (at < pages)
    else:
        at, row = b.to(wl.int64), position.to(wl.int64)
        exists = (position >= 0) & (position < most)
    channel = wl.arange(0, CHANNELS)
    source = new + b.to(wl.int64) * new_b + h.to(wl.int64) * new_h + n.to(wl.int64) * new_n
    x = wl.load(source + channel, mask=channel < D, other=0.0)
    if TURNED:
        # Channels 2i and 2i + 1 turn by position · base^(-2i/D), as weft.rope has them.
        other = wl.load(source + (channel ^ 1), mask=channel < D, other=0.0).to(wl.float32)
        angle = position.to(wl.float32) * wl.exp2((channel - channel % 2).to(wl.float32) * (-log2_base / D))
        sign = wl.where(channel % 2 == 0, -1.0, 1.0)
        x = x.to(wl.float32) * wl.cos(angle) + sign * other * wl.sin(angle)
    if SCALED:
        x = x.to(wl.float32) / wl.load(scales + at * scale_p + h, mask=exists, other=1.0)
    target = cache + at * cache_p + row * cache_s + h.to(wl.int64) * cache_h
    wl.store(target + channel, x.to(cache.dtype.element_ty), mask=(channel < D) & exists)


@apart
def append(
    k_cache: Any,
    v_cache: Any,
    k_new: Any,
    v_new: Any,
    *,
    seqused_k: Any,
    block_table: Any = None,
    slot_mapping: Any = None,
    rope_base: float | None = None,
    k_scale: Any = None,
    v_scale: Any = None,
) -> None:
    """Write keys k_new [B, Hkv, N, D] and values v_new [B, Hkv, N, Dv] of the last N tokens into a cache, in place.

    ``seqused_k`` [B] int32 is how many tokens each sequence has with these; the cache is [B, Hkv, M, D], or pages
    [P, page, Hkv, D] with ``block_table`` [B, most pages] int32. ``slot_mapping`` [B, N] or [B·N], int32 or int64, says
    where a token goes instead: row slot % page of page slot // page; negative ones are not written. With ``rope_base``
    keys are turned by their position first, as weft.rope turns them. ``k_scale`` and ``v_scale``, [Hkv] or of pages
    [P, Hkv] float32, are what the caches' numbers are multiplied by when they are read, so new ones are divided by
    them. A cache of float8_e4m3fn or float8_e5m2 takes tokens of any type, and its largest number for what is larger.
    Tokens whose place the cache has no row for are not written.

    What is written passes no gradient on: tensors that require one are refused, but under torch.no_grad().
    """
    checks.readable(
        k_cache=k_cache, v_cache=v_cache, k_new=k_new, v_new=v_new, seqused_k=seqused_k, block_table=block_table,
        slot_mapping=slot_mapping, k_scale=k_scale, v_scale=v_scale,
    )  # fmt: skip
    checks.without_gradients(
        k_cache=k_cache, v_cache=v_cache, k_new=k_new, v_new=v_new, k_scale=k_scale, v_scale=v_scale
    )
    paged = block_table is not None or slot_mapping is not None
    if rope_base is not None:
        rope_base = static.real("rope_base", rope_base)
        if not 0 < rope_base < math.inf:
            raise ValueError(f"expected 'rope_base' to be positive and finite, but got {rope_base}")
    for letter, new, cache, scale in (("k", k_new, k_cache, k_scale), ("v", v_new, v_cache, v_scale)):
        checks.appended(letter, new, cache, scale, paged)
        checks.places(new, seqused_k, block_table, slot_mapping)
    checks.tensor("v_new", v_new, "[B, Hkv, N, Dv]", (*k_new.shape[:3], None))
    if rope_base is not None and k_new.shape[3] % 2:
        raise ValueError(f"expected keys of an even size with 'rope_base', to turn in pairs, but got {k_new.shape[3]}")
    lengths = seqused_k.contiguous()  # a column of a larger table, or one length for all, as decode takes them too
    table = lengths if block_table is None else _rows(block_table)
    slots = lengths if slot_mapping is None else slot_mapping.contiguous()
    for new, cache, scale, base in ((k_new, k_cache, k_scale, rope_base), (v_new, v_cache, v_scale, None)):
        batch, heads, tokens, size = new.shape
        if not new.numel():
            continue
        page_axis, row_axis, head_axis = (0, 1, 2) if paged else (0, 2, 1)
        scales = scale.contiguous() if scale is not None else lengths
        new = _rows(new)
        _append[(tokens, heads, batch)](
            new, cache, scales, slots, table, lengths, tokens, cache.shape[row_axis], cache.shape[0],
            table.shape[-1], cache.shape[row_axis], new.stride(0), new.stride(1), new.stride(2),
            cache.stride(page_axis), cache.stride(row_axis), cache.stride(head_axis), table.stride(0),
            heads if scale is not None and scale.ndim == 2 else 0, math.log2(base) if base is not None else 0.0,
            D=size, CHANNELS=next_power_of_2(size), BY_SLOT=slot_mapping is not None, PAGED=paged,
            TURNED=base is not None, SCALED=scale is not None, num_warps=1,
        )  # fmt: skip
        changed([cache])


def _rows(x: Any) -> Any:
    """A tensor whose last axis has stride 1."""
    return x if x.stride(-1) == 1 else x.contiguous()
