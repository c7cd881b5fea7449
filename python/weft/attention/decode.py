# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""weft.attention.decode: attention of a sequence's last tokens over a cache of keys and values."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from weft.attention.append import append
from weft.attention.attend import SoftmaxAttention
from weft.attention.scales import by_page, of_outputs, of_scores, scale_of
from weft.compiler import places
from weft.language.types import float32
from weft.patterns import causal
from weft.programs import graph, static
from weft.programs.eager import operation, whole
from weft.programs.graph import agreeing
from weft.programs.mixers import result_type, widened
from weft.programs.pages import paged
from weft.programs.sizes import group, unify
from weft.programs.tensors import Tensor, described, four_axes


@functools.partial(whole, writes="k_new")
def decode(
    q: Any,
    k_cache: Any,
    v_cache: Any,
    pattern: Any = None,
    *,
    block_table: Any = None,
    seqused_k: Any = None,
    k_new: Any = None,
    v_new: Any = None,
    slot_mapping: Any = None,
    num_splits: int | None = None,
    score_mod: Callable[..., Any] | None = None,
    sink: Any = None,
    scale: float | None = None,
    rope_base: float | None = None,
    k_scale: Any = None,
    v_scale: Any = None,
    return_lse: bool = False,
) -> Any:
    """Softmax attention of the last N tokens of each sequence, q [B, H, N, D], over its cached keys and values; gives
    [B, H, N, Dv].

    ``k_cache``, ``v_cache``  pages [P, page, Hkv, D] and [P, page, Hkv, Dv] with ``block_table``; without it
                              [B, Hkv, M, D] and [B, Hkv, M, Dv]
    ``pattern``               which pairs attend; None is weft.causal(), with the last query at the last key
    ``block_table``           [B, most pages] int32: row m lies in page block_table[b, m // page], at m % page
    ``seqused_k``             [B] int32, how many keys each sequence has, the N tokens' own included; None is all of a
                              cache without pages
    ``k_new``, ``v_new``      [B, Hkv, N, D] and [B, Hkv, N, Dv], of the N tokens: written into the cache first, in
                              place, as weft.attention.append writes them; not within a program
    ``slot_mapping``          [B, N] int32 or int64, where they go; None is after what the sequence has
    ``rope_base``             turn the new keys by their position before they are written; queries are taken as given
    ``num_splits``            into how many runs each sequence's keys are divided among programs; None is as many as its
                              own length asks for, so that nothing else in a batch changes a bit of its result
    ``k_scale``, ``v_scale``  [Hkv] float32, or of pages [P, Hkv]: what the caches' numbers are multiplied by.
                              Caches may be of float8_e4m3fn or float8_e5m2, whatever the queries' type
    ``score_mod``, ``sink``, ``scale``, ``return_lse``  as weft.attention.attend has them

    A length of more tokens than the cache has rows is taken as all of its rows, and tokens whose place it has no row
    for are not written: who manages the cache makes room. What lies behind a sequence's end, in its last page or in
    entries of the table, may be anything and is never read.
    """
    if (k_new is None) != (v_new is None):
        raise ValueError("expected 'k_new' and 'v_new' together, but got one of them")
    if k_new is None and (slot_mapping is not None or rope_base is not None):
        raise ValueError("expected 'k_new' and 'v_new' with 'slot_mapping' or 'rope_base', but got None")
    if k_new is not None:
        if graph.present() is not None:
            raise places.error(
                "expected no 'k_new' within a program, which changes none of its operands",
                "weft.attention.append(k_cache, v_cache, k_new, v_new, seqused_k=...) before it",
            )
        if seqused_k is None:
            raise ValueError("expected 'seqused_k' [B] of int32 with 'k_new', but got None")
        append(
            *(k_cache, v_cache, k_new, v_new),
            seqused_k=seqused_k,
            block_table=block_table,
            slot_mapping=slot_mapping,
            rope_base=rope_base,
            k_scale=k_scale,
            v_scale=v_scale,
        )
    found: Any = over_cache(
        *(q, k_cache, v_cache, pattern),
        block_table=block_table,
        seqused_k=seqused_k,
        splits=0 if num_splits is None else static.integer("num_splits", num_splits, 1),
        score_mod=score_mod,
        sink=sink,
        scale=scale,
        k_scale=k_scale,
        v_scale=v_scale,
        return_lse=return_lse,
    )
    return found


def _rows_of(q: Tensor, k_cache: Tensor) -> None:
    """Refuse a cache without pages that is not of the queries' sequences, as pages given without their table are."""
    remedy = "pages [P, page, Hkv, D] are read by 'block_table' [B, most pages] of int32"
    with agreeing(f"expected 'k_cache' [B, Hkv, M, D] of q's batch, but got {described(k_cache)}", remedy):
        unify(q.sizes[0], k_cache.sizes[0])
    with agreeing(f"expected 'k_cache' [B, Hkv, M, D] whose heads divide q's, but got {described(k_cache)}", remedy):
        group(q.sizes[1], k_cache.sizes[1])


@operation
def over_cache(
    q: Any,
    k_cache: Any,
    v_cache: Any,
    pattern: Any,
    *,
    block_table: Any = None,
    seqused_k: Any = None,
    splits: int | None = None,
    score_mod: Callable[..., Any] | None = None,
    sink: Any = None,
    scale: float | None = None,
    k_scale: Any = None,
    v_scale: Any = None,
    return_lse: bool = False,
) -> Any:
    """weft.attention.decode, of caches that have all tokens; ``splits`` are those of weft.softmax."""
    four_axes(q, "queries")
    four_axes(k_cache, "cached keys")
    four_axes(v_cache, "cached values")
    if v_cache.dtype != k_cache.dtype:
        raise places.error(f"expected cached values of the keys' type {k_cache.dtype}, but got {v_cache.dtype}")
    return_lse = static.truth("return_lse", return_lse)
    if q.dtype.is_fp8() and not k_cache.dtype.is_fp8():
        raise places.error(
            f"expected caches of 8-bit floats, as queries of {q.dtype} have, but got {k_cache.dtype}", "use .to(dtype)"
        )
    element, q = result_type(q.dtype), widened(q)
    k, v, count = k_cache, v_cache, seqused_k
    if block_table is not None:
        if seqused_k is None:
            raise places.error("expected 'seqused_k' [B] of int32 with 'block_table', but got None")
        with agreeing("expected pages of keys and of values of one shape but for the last size"):
            for axis in (0, 1, 2):
                unify(k_cache.sizes[axis], v_cache.sizes[axis])
        k, v = paged(k_cache, block_table, seqused_k), paged(v_cache, block_table, seqused_k)
        count = None
    else:
        _rows_of(q, k_cache)
        if seqused_k is not None and (
            not isinstance(seqused_k, Tensor) or seqused_k.ndim != 1 or seqused_k.dtype.name != "int32"
        ):
            raise places.error(f"expected 'seqused_k' [B] of int32, but got {described(seqused_k)}")
    heads = k_cache.sizes[1 if block_table is None else 2]
    of_rows = [
        scale_of(name, each, k_cache, heads, block_table is not None)
        for name, each in (("k_scale", k_scale), ("v_scale", v_scale))
    ]
    k, v = (
        by_page(rows, each, block_table, int(k_cache.sizes[1]), q.dtype)
        if each_page
        else rows.to(q.dtype)
        if rows.dtype.is_fp8()
        else rows
        for rows, each, each_page in zip((k, v), (k_scale, v_scale), of_rows, strict=True)
    )
    by_head = [each is not None and not paged for each, paged in zip((k_scale, v_scale), of_rows, strict=True)]
    sharing = int(q.sizes[1]) // int(heads) if any(by_head) else 1
    if by_head[0]:
        score_mod = of_scores([k_scale], sharing, score_mod)
    attention = SoftmaxAttention(score_mod, None, sink, scale, None, True, (), splits)
    made = float32 if by_head[1] else element
    out, lse = attention.of(q, k, v, causal() if pattern is None else pattern, made, count)
    if by_head[1]:
        out = of_outputs(out, v_scale, sharing, element)
    return (out, lse) if return_lse else out
