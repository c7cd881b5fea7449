# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""weft.merge: softmaxes over parts of the keys, made one."""

from __future__ import annotations

import math
from typing import Any

from ..compiler import places
from ..language.types import float32
from . import static
from .eager import operation
from .elementwise import exp, log, maximum, where
from .graph import agreeing
from .mixers import diag
from .sizes import unify
from .tensors import Tensor, described, four_axes


@operation
def merge(out1: Any, lse1: Any, out2: Any, lse2: Any) -> Any:
    """Attention over two sets of keys as one softmax: (out, lse) of each one's output [B, H, N, D] and natural
    log-sum-exp [B, H, N]. A row without keys has lse -inf, and may have any finite output. Differentiable."""
    for name, out, lse in (("1", out1, lse1), ("2", out2, lse2)):
        four_axes(out, "outputs")
        static.floating("outputs", out)
        if not isinstance(lse, Tensor) or lse.ndim != 3 or lse.dtype != float32:
            raise places.error(f"expected 'lse{name}' [B, H, N] of float32, but got {described(lse)}")
        with agreeing(f"expected 'lse{name}' [B, H, N] of 'out{name}' [B, H, N, D]"):
            for axis in (0, 1, 2):
                unify(out.sizes[axis], lse.sizes[axis])
    if out1.dtype != out2.dtype:
        raise places.error(f"expected outputs of one type, but got {out1.dtype} and {out2.dtype}")
    with agreeing("expected outputs of one shape"):
        for axis in (0, 1, 2, 3):
            unify(out1.sizes[axis], out2.sizes[axis])
    larger = maximum(lse1, lse2)
    # 0 in the place of -inf keeps their difference, which is NaN, out of weights and gradients.
    shift = where(larger == -math.inf, 0.0, larger)
    weight1, weight2 = (_weight(lse, shift) for lse in (lse1, lse2))
    total = weight1 + weight2
    seen = total != 0.0
    some = where(seen, total, 1.0)
    lse = where(seen, shift + log(some), -math.inf)
    out = diag(weight1 / some) @ out1.to(float32) + diag(weight2 / some) @ out2.to(float32)
    return out.to(out1.dtype), lse


def _weight(lse: Tensor, shift: Tensor) -> Tensor:
    """e^(lse - shift), 0 of -inf."""
    none = lse == -math.inf
    return where(none, 0.0, exp(where(none, 0.0, lse) - shift))
