# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""What instructions of warpgroups, and those of warps on sm_89, make of 8-bit floats: sums of about 14 bits, exactly,
for tests that compare with them. The rule and its source are in runtime/Simulator/Semantics/Matrix.h.
"""

from __future__ import annotations

import torch

LEAST = {torch.float8_e4m3fn: -6, torch.float8_e5m2: -14}
STEP = 32  # of K, which an instruction of warpgroups adds at once; one of warps on sm_89 adds half of that, twice


def exponents(x: torch.Tensor, least: int) -> torch.Tensor:
    """floor(log2 |x|), no less than a type's least; of zeros below all."""
    return torch.where(x == 0, -1000, torch.frexp(x).exponent.sub(1).clamp_min(least))


def cut(x: torch.Tensor, place: torch.Tensor) -> torch.Tensor:
    """x, float64, without what lies below 2^place."""
    return torch.ldexp(torch.ldexp(x, -place).trunc(), place)


def instruction(acc: torch.Tensor, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """acc [.., M, N] plus the products of a [.., M, 32] and b [.., N, 32], 8-bit floats, as one wgmma; float64."""
    left, right = a.double()[..., :, None, :], b.double()[..., None, :, :]
    places = exponents(left, LEAST[a.dtype]) + exponents(right, LEAST[b.dtype])
    top = torch.maximum(places.amax(-1), exponents(acc, -126)).clamp_min(-500)
    total = cut(acc, top - 13) + cut(left * right, (top - 13)[..., None]).sum(-1)
    return cut(total, exponents(total, -126).clamp_min(-500) - 13)


def product(a: torch.Tensor, b: torch.Tensor, promoted: int | None = None, step: int = STEP) -> torch.Tensor:
    """a [.., M, K] by b [.., N, K]; sums of every ``promoted`` along K are added in float32; float64."""
    K = a.shape[-1]
    shape = torch.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    total = torch.zeros(*shape, a.shape[-2], b.shape[-2], dtype=torch.float64)
    for start in range(0, K, promoted or K):
        acc = torch.zeros_like(total)
        for k in range(start, min(start + (promoted or K), K), step):
            acc = instruction(acc, a[..., k : k + step], b[..., k : k + step])
        total = (total.float() + acc.float()).double() if promoted else acc
    return total
