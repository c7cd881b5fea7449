# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""weft.attention.gau: the gated attention unit, single-head attention under a gate of as many heads as channels."""

from __future__ import annotations

from typing import Any

from weft.compiler import places
from weft.programs.eager import operation
from weft.programs.graph import agreeing
from weft.programs.mixers import diag, softmax
from weft.programs.sizes import Size, unify
from weft.programs.tensors import Tensor


@operation
def gau(
    u: Any,
    v: Any,
    g: Any,
    kappa_q: Any,
    mu_q: Any,
    kappa_k: Any,
    mu_k: Any,
    pattern: Any = None,
    *,
    scale: float | None = None,
    cu_seqlens: Any = None,
) -> Any:
    """The gated attention unit, y = g ⊙ softmax(scale · q kᵀ) v with q = κ_q ⊙ u + μ_q and k = κ_k ⊙ u + μ_k.

    ``u``             [B, 1, N, d], what queries and keys are generated from, after its activation
    ``v``, ``g``      [B, 1, N, Dv], values and gate, after theirs; Dv may be thousands
    ``kappa``, ``mu`` [d], of queries and of keys
    ``pattern``       which pairs attend (weft.causal(), ...); None is every pair
    ``scale``         1/sqrt(d) unless given
    ``cu_seqlens``    [S+1] int32, where each of S sequences packed into N starts; then B is 1
    """
    _check(u, v, g, {"kappa_q": kappa_q, "mu_q": mu_q, "kappa_k": kappa_k, "mu_k": mu_k})
    q = (kappa_q * u + mu_q).to(u.dtype)
    k = (kappa_k * u + mu_k).to(u.dtype)
    return diag(g) @ softmax(q, k, pattern, scale=scale, cu_seqlens=cu_seqlens) @ v


def _check(u: Any, v: Any, g: Any, vectors: dict[str, Any]) -> None:
    _expect("u", u, "[B, 1, N, d]", 4)
    _expect("v", v, "[B, 1, N, Dv]", 4)
    _expect("g", g, "[B, 1, N, Dv]", 4)
    batch, _, length, head = u.sizes
    for name, tensor, last in (("u", u, head), ("v", v, v.sizes[3]), ("g", g, v.sizes[3])):
        with agreeing(f"expected '{name}' [B, 1, N, {'d' if tensor is u else 'Dv'}], of 'u' and 'v'"):
            for mine, wanted in zip(tensor.sizes, (batch, Size(1), length, last), strict=True):
                unify(wanted, mine)
        if tensor.dtype != u.dtype:
            raise places.error(f"expected '{name}' of the type of 'u', {u.dtype}, but got {tensor.dtype}")
    for name, vector in vectors.items():
        _expect(name, vector, "[d]", 1)
        with agreeing(f"expected '{name}' [d], of the last size of 'u'"):
            unify(head, vector.sizes[0])


def _expect(name: str, tensor: Any, shape: str, rank: int) -> None:
    if not isinstance(tensor, Tensor):
        raise places.error(f"expected '{name}' {shape}, but got '{type(tensor).__name__}'")
    if tensor.ndim != rank:
        raise places.error(f"expected '{name}' {shape}, but got {tensor.ndim} axes: {list(tensor.shape)}")
    if not tensor.dtype.name.startswith(("fp", "bf", "float")):
        raise places.error(f"expected '{name}' of floating-point numbers, but got {tensor.dtype}")
