# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Dropout of attention weights: which weights stay is a function of the seed and of the weight's place, so that nothing
is stored and the backward drops what the forward dropped.

    softmax(s) ⊙ keep / (1 - p)  =  softmax(s where keep) · exp(lse(s where keep) - lse(s)) / (1 - p)

The right side is two attentions, one over the kept pairs, and a gate for each row.
"""

from __future__ import annotations

import math
from typing import Any

from weft.compiler import places
from weft.patterns import Pattern, mask
from weft.programs import static
from weft.programs.elementwise import exp, where
from weft.programs.graph import agreeing
from weft.programs.mixers import diag
from weft.programs.philox import at_pair, is_below, philox
from weft.programs.sizes import Size, unify
from weft.programs.tensors import Tensor, described


def probability(dropout_p: Any) -> float:
    """``dropout_p`` as a number from 0 to 1, 1 left out."""
    share = static.real("dropout_p", dropout_p)
    if not 0 <= share < 1:
        raise places.error(f"expected 'dropout_p' from 0 to 1, 1 left out, but got {share}")
    return share


def kept(pattern: Pattern | None, seed: Any, share: float) -> Pattern:
    """The pairs of a pattern that stay when each is dropped with probability ``share``.

    ``seed`` [2] int32: the weight of row n and key m of batch b and query head h is dropped where 16 bits of
    philox((m', n'), philox((philox((h, b), seed[0]), seed[1]), seed[0])) are below share · 2^16 (philox.at_pair).
    """
    if not isinstance(seed, Tensor) or seed.ndim != 1 or seed.dtype.name != "int32":
        remedy = "torch.randint(2**31 - 1, (2,), dtype=torch.int32), anew for each call"
        given = "None" if seed is None else described(seed)
        raise places.error(f"expected 'dropout_seed' [2] of int32 with dropout_p, but got {given}", remedy)
    with agreeing("expected 'dropout_seed' of two numbers"):
        unify(seed.sizes[0], Size(2))

    def stays(b: Any, h: Any, n: Any, m: Any) -> Any:
        key, _ = philox(philox(h, b, seed[0])[0], seed[1], seed[0])
        return ~is_below(at_pair(n, m, key), share)

    return among(pattern, mask(stays, scattered=True))


def among(pattern: Pattern | None, pairs: Pattern) -> Pattern:
    """Those of ``pairs`` that are in the pattern; None is every pair, and what is no pattern is refused where it is
    used."""
    if pattern is None:
        return pairs
    return pattern & pairs if isinstance(pattern, Pattern) else pattern


def scaled(out: Any, kept_lse: Any, lse: Any, share: float) -> Any:
    """What the kept weights give, ``out``, as a part of the whole softmax, and scaled by 1 / (1 - share)."""
    # a row of which nothing is kept has 0; its own lse may be -inf too, of which a difference is NaN
    difference = where(kept_lse > -math.inf, kept_lse - lse, -math.inf)
    return diag(exp(difference) * (1 / (1 - share))) @ out
