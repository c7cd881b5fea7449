# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""weft.attention.sfa: semantic foundation attention, in which runs of adjacent tokens serve as one key."""

from __future__ import annotations

from typing import Any

from weft import patterns
from weft.attention import checks
from weft.programs import functions, merging, mixers, static
from weft.programs.eager import whole
from weft.programs.merging import MODES
from weft.programs.program import program


@whole
def sfa(
    q: Any,
    k: Any,
    v: Any,
    q_gain: Any = None,
    k_gain: Any = None,
    *,
    eps: float = 1e-6,
    similarity_heads: int | None = None,
    similarity_threshold: float = 2e-4,
    difference_threshold: float = 0.0175,
    max_joins: int = 20,
    decisions: Any = None,
    value_merge: str = "sum",
    value_offset: int = 0,
    cu_seqlens: Any = None,
    rope: bool = False,
    deterministic: bool = False,
    scale: float | None = None,
    return_loss: bool = False,
    loss_factor: float = 1.0,
    loss_pairs: str = "all",
) -> Any:
    """Causal attention of q [B, H, N, D] over k [B, Hkv, N, D] and v [B, Hkv, N, Dv], all rows of q and k normalised:
    a token attends to itself and to the units, runs of joined tokens, that end before it. Gives [B, H, N, Dv].

    ``q_gain``, ``k_gain``  [H, D] and [Hkv, D], of the RMSNorm with ``eps``; None is 1
    ``similarity_heads``    how many key heads, the first ones, join tokens where 1 - cosine is below
                            ``similarity_threshold``; the rest join where abs(cosine) is below ``difference_threshold``.
                            Half of them unless given
    ``max_joins``           every (max_joins + 1)st join of a chain is dropped; 0 merges nothing
    ``decisions``           bool [B, Hkv, N] in their place: token n joins the one before it
    ``value_merge``         a unit's value is the "sum" of its tokens', their "mean", or the "last"
    ``value_offset``        1: a unit carries the value of the next one, and is seen when that has ended
    ``cu_seqlens``          [S+1] int32, where each of S sequences packed into N starts; then B is 1
    ``rope``                turn queries and keys by their position, after the decisions
    ``deterministic``       results are the same bits every time with it and without
    ``return_loss``         (out, loss): the compression loss, a float32 scalar, times ``loss_factor``; its sum is over
                            "all" pairs of neighbours or the "merged" ones of ``loss_pairs``
    """
    max_joins = checked(
        *(q, k, v, q_gain, k_gain, decisions, value_merge, loss_pairs, max_joins),
        offset=static.integer("value_offset", value_offset),
    )
    static.truth("deterministic", deterministic)
    checks.starts(cu_seqlens, q)
    return _sfa(
        *(q, k, v, q_gain, k_gain, decisions, cu_seqlens),
        eps=static.real("eps", eps),
        heads=similarity_heads,
        thresholds=(
            static.real("similarity_threshold", similarity_threshold),
            static.real("difference_threshold", difference_threshold),
        ),
        max_joins=max_joins,
        values=(value_merge, value_offset),
        rope=static.truth("rope", rope),
        scale=scale,
        loss=(static.real("loss_factor", loss_factor), loss_pairs)
        if static.truth("return_loss", return_loss)
        else None,
    )


def checked(
    q: Any,
    k: Any,
    v: Any,
    q_gain: Any,
    k_gain: Any,
    decisions: Any,
    merge: Any,
    pairs: Any,
    max_joins: Any,
    offset: int = 0,
) -> int:
    """How many joins a unit has at most. Refuses tensors and options that do not agree."""
    _check_tensors(q, k, v, q_gain, k_gain)
    joins = static.integer("max_joins", max_joins)
    _check(k, decisions, merge, offset, pairs, joins)
    return joins


def _check_tensors(q: Any, k: Any, v: Any, q_gain: Any, k_gain: Any) -> None:
    checks.operands(q, k, v)
    if (kind := checks.floating("q", q)) != checks.floating("v", v):
        raise TypeError(f"expected 'v' of the type of 'q', {kind}, but got {checks.floating('v', v)}")
    for name, gain, shape, x in (("q_gain", q_gain, "[H, D]", q), ("k_gain", k_gain, "[Hkv, D]", k)):
        if gain is not None:
            checks.tensor(name, gain, shape, (x.shape[1], x.shape[3]))
            checks.floating(name, gain)


def _check(k: Any, decisions: Any, merge: Any, offset: Any, pairs: Any, joins: int) -> None:
    def expect(holds: bool, name: str, wanted: str, given: Any) -> None:
        if not holds:
            raise ValueError(f"expected {name} {wanted}, but got {given!r}")

    expect(merge in MODES, "value_merge", "to be 'sum', 'last' or 'mean'", merge)
    expect(offset in (0, 1), "value_offset", "to be 0 or 1", offset)
    expect(joins >= 0, "max_joins", "to be an integer of at least 0", joins)
    expect(pairs in ("all", "merged"), "loss_pairs", "to be 'all' or 'merged'", pairs)
    if decisions is not None:
        checks.tensor("decisions", decisions, "[B, Hkv, N]")
        shape = tuple(k.shape[:3])
        expect(tuple(decisions.shape) == shape, "decisions", f"of shape {list(shape)}", list(decisions.shape))
        expect(
            "bool" in str(decisions.dtype) or str(decisions.dtype) == "int1", "decisions", "of bool", decisions.dtype
        )


@program
def _sfa(
    q: Any,
    k: Any,
    v: Any,
    q_gain: Any,
    k_gain: Any,
    decisions: Any,
    cu_seqlens: Any,
    *,
    eps: float,
    heads: int | None,
    thresholds: tuple[float, float],
    max_joins: int,
    values: tuple[str, int],
    rope: bool,
    scale: float | None,
    loss: tuple[float, str] | None,
) -> Any:
    # 3.2: rows are normalised, keys in float32 until they enter a product
    q_hat = functions.rms_norm(q.to("fp32"), q_gain, eps)
    k_hat = functions.rms_norm(k.to("fp32"), k_gain, eps)
    # 3.1: who joins the token before, by the cosines of k_hat, which those of k times its gain are
    joins = decisions
    if joins is None:
        joins = merging.merge_decide(
            *(k, k_gain),
            similarity_heads=heads,
            similarity_threshold=thresholds[0],
            difference_threshold=thresholds[1],
            cu_seqlens=cu_seqlens,
        )
    if rope:
        q_hat, k_hat = functions.rope(q_hat, k_hat)
    merge, offset = values
    units = merging.merge_units(
        *(joins, k_hat, v),
        max_joins=max_joins,
        modes=("sum", merge),
        offsets=(0, offset),
        to=q.dtype,
        cu_seqlens=cu_seqlens,
    )
    keys, merged = units.merged
    # 3.3: the token itself and the units before it, under one softmax
    itself = mixers.domain(k_hat.to(q.dtype), patterns.window(0, 0))
    out = mixers.softmax(q_hat.to(q.dtype), itself, mixers.domain(keys, units.seen), scale=scale) @ (v, merged)
    if loss is None:
        return out
    return out, loss[0] * merging.merge_loss(
        *(k, k_gain, units.kept), similarity_heads=heads, pairs=loss[1], cu_seqlens=cu_seqlens
    )
