# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Dropout of attention weights: which weights stay is a function of the seed and of the weight's place, so that nothing
is stored and the backward drops what the forward dropped.

    out = (softmax(s) ⊙ keep) v / (1 - p)
"""

from __future__ import annotations

from typing import Any

from weft.compiler import places
from weft.patterns import Pattern, full, mask
from weft.programs import static
from weft.programs.graph import agreeing
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
    """A pattern of whose weights each is dropped with probability ``share``, after the softmax over all of them.

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

    if pattern is not None and not isinstance(pattern, Pattern):
        return pattern  # which is refused where it is used
    return Pattern("kept", (), (full() if pattern is None else pattern, mask(stays, scattered=True)))
