# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Keys and values of new tokens written into a cache, in place: by slots, or after those that the cache has."""

from __future__ import annotations

import math
from typing import Any

import weft.language as wl
from weft.compiler.jit import jit
from weft.integers import next_power_of_2
from weft.programs import static


@jit
def _append(
    new, cache, slots, table, lengths, N, page, pages, entries, most,
    new_b, new_h, new_n, cache_p, cache_s, cache_h, table_b, log2_base,
    D: wl.constexpr, CHANNELS: wl.constexpr, BY_SLOT: wl.constexpr, PAGED: wl.constexpr, TURNED: wl.constexpr,
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
    target = cache + at * cache_p + row * cache_s + h.to(wl.int64) * cache_h
    wl.store(target + channel, x.to(cache.dtype.element_ty), mask=(channel < D) & exists)


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
) -> None:
    """Write keys k_new [B, Hkv, N, D] and values v_new [B, Hkv, N, Dv] of the last N tokens into a cache, in place.

    ``seqused_k`` [B] int32 is how many tokens each sequence has with these; the cache is [B, Hkv, M, D], or pages
    [P, page, Hkv, D] with ``block_table`` [B, most pages] int32. ``slot_mapping`` [B, N] or [B·N], int32 or int64, says
    where a token goes instead: row slot % page of page slot // page; negative ones are not written. With ``rope_base``
    keys are turned by their position first, as weft.rope turns them.
    """
    paged = block_table is not None or slot_mapping is not None
    if rope_base is not None:
        rope_base = static.real("rope_base", rope_base)
        if not 0 < rope_base < math.inf:
            raise ValueError(f"expected 'rope_base' to be positive and finite, but got {rope_base}")
    for name, new, cache in (("k_new", k_new, k_cache), ("v_new", v_new, v_cache)):
        _check(name, new, cache, paged, seqused_k, block_table, slot_mapping)
    for new, cache, base in ((k_new, k_cache, rope_base), (v_new, v_cache, None)):
        batch, heads, tokens, size = new.shape
        if not new.numel():
            continue
        page_axis, row_axis, head_axis = (0, 1, 2) if paged else (0, 2, 1)
        table = block_table if block_table is not None else seqused_k
        slots = slot_mapping.contiguous() if slot_mapping is not None else seqused_k
        new = new if new.stride(3) == 1 else new.contiguous()
        _append[(tokens, heads, batch)](
            new, cache, slots, table, seqused_k, tokens, cache.shape[row_axis], cache.shape[0],
            table.shape[-1], cache.shape[row_axis], new.stride(0), new.stride(1), new.stride(2),
            cache.stride(page_axis), cache.stride(row_axis), cache.stride(head_axis), table.stride(0),
            math.log2(base) if base is not None else 0.0,
            D=size, CHANNELS=next_power_of_2(size), BY_SLOT=slot_mapping is not None, PAGED=paged,
            TURNED=base is not None, num_warps=1,
        )  # fmt: skip


def _check(name: str, new: Any, cache: Any, paged: bool, lengths: Any, table: Any, slots: Any) -> None:
    form = "[P, page, Hkv, D]" if paged else "[B, Hkv, M, D]"
    for what, each in ((name, new), (name.replace("new", "cache"), cache)):
        if not _is_tensor(each):
            raise TypeError(f"expected '{what}' to be a torch tensor, but got '{type(each).__name__}'")
    if new.ndim != 4 or cache.ndim != 4:
        raise ValueError(
            f"expected '{name}' [B, Hkv, N, D] and a cache {form}, but got {list(new.shape)} and {list(cache.shape)}"
        )
    heads = cache.shape[2 if paged else 1]
    if new.shape[1] != heads or new.shape[3] != cache.shape[3]:
        raise ValueError(f"expected '{name}' of {heads} heads of {cache.shape[3]} channels, but got {list(new.shape)}")
    if not paged and new.shape[0] != cache.shape[0]:
        raise ValueError(f"expected '{name}' of {cache.shape[0]} sequences, but got {new.shape[0]}")
    if new.dtype != cache.dtype:
        raise TypeError(f"expected '{name}' of its cache's type {cache.dtype}, but got {new.dtype}")
    if cache.stride(3) != 1:
        raise ValueError(f"expected a cache {form} whose last axis has stride 1, but got {cache.stride(3)}")
    wanted = (("seqused_k", lengths, (new.shape[0],)), ("block_table", table, (new.shape[0], None)))
    for what, each, shape in wanted:
        if each is None and what == "block_table":
            continue
        sizes = list(each.shape) if _is_tensor(each) else []
        fits = len(sizes) == len(shape) and all(b in (None, a) for a, b in zip(sizes, shape, strict=True))
        if not fits or str(each.dtype) != "torch.int32":
            raise ValueError(f"expected '{what}' of int32 for {new.shape[0]} sequences, but got {_described(each)}")
    if slots is not None:
        types = ("torch.int32", "torch.int64")
        if not _is_tensor(slots) or str(slots.dtype) not in types or slots.numel() != new.shape[0] * new.shape[2]:
            raise ValueError(
                f"expected 'slot_mapping' of int32 or int64 for {new.shape[0]} x {new.shape[2]} tokens, but got "
                f"{_described(slots)}"
            )


def _is_tensor(x: Any) -> bool:
    return hasattr(x, "data_ptr") and hasattr(x, "stride")


def _described(x: Any) -> str:
    return f"{x.dtype} {list(x.shape)}" if _is_tensor(x) else f"'{type(x).__name__}'"
