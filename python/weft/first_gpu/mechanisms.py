# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""The papers' mechanisms with operands of given sizes: what is compared, and what is timed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch

from weft import attention, patterns, testing
from weft.integers import cdiv
from weft.testing import masks
from weft.testing import sas as plain_sas

_HEAD, _WINDOW, _KERNEL = 64, 256, 5
_GAU_HEAD = 128


@dataclass(frozen=True)
class Operands:
    """A mechanism's call and its operands, tensors or dicts of them; ``formula`` is the same in PyTorch's operations,
    whole matrices at once (None where that is a loop over tokens); ``operations`` those of scores and values."""

    call: Callable[..., Any]
    tensors: tuple[Any, ...]
    formula: Callable[..., torch.Tensor] | None
    operations: float


def operands(name: str, *, batch: int, length: int, width: int, dtype: torch.dtype, where: str) -> Operands:
    """Fresh operands of "SEMA", "SFA", "SAS" or "GAU", whose heads are ``width`` channels together."""

    def randn(*shape: int) -> torch.Tensor:
        return torch.randn(shape).to(where, dtype)

    made: Operands = _MADE[name](randn, batch, length, width)
    return made


Draw = Callable[..., torch.Tensor]


def _sema(randn: Draw, batch: int, length: int, width: int) -> Operands:
    heads = width // _HEAD
    window = min(_WINDOW, length)

    def sema(q: Any, k: Any, v: Any, lepe: Any) -> Any:
        return attention.sema(q, k, v, lepe, window=window)

    def formula(*tensors: torch.Tensor) -> torch.Tensor:
        return testing.sema(*tensors, window=window)

    heads_of = [randn(batch, heads, length, _HEAD) for _ in range(3)]
    pairs = length * window
    return Operands(sema, (*heads_of, randn(width, 1, 3)), formula, 4 * batch * width * pairs)


def _sfa(randn: Draw, batch: int, length: int, width: int) -> Operands:
    heads = width // _HEAD

    def sfa(q: Any, k: Any, v: Any, q_gain: Any, k_gain: Any) -> Any:
        return attention.sfa(q, k, v, q_gain, k_gain)

    heads_of = [randn(batch, heads, length, _HEAD) for _ in range(3)]
    gains = [1 + randn(heads, _HEAD) / 8 for _ in range(2)]
    return Operands(sfa, (*heads_of, *gains), None, 4 * batch * width * _causal_pairs(length))


def _sas(randn: Draw, batch: int, length: int, width: int) -> Operands:
    heads = width // _HEAD
    many, wide = 3 * heads, 8 * cdiv(3 * _HEAD, 16)

    def sas(q: Any, k: Any, v: Any, q_expand: Any, k_expand: Any, v_expand: Any) -> Any:
        return attention.sas(q, k, v, q_expand, k_expand, v_expand, kernel=_KERNEL)

    def formula(*tensors: Any) -> torch.Tensor:
        return plain_sas.sas(*tensors)

    def weights(last: int | None) -> Mapping[str, torch.Tensor]:
        return plain_sas.drawn_weights(randn, plain_sas.expansion_shapes(heads, many, _HEAD, last, _KERNEL))

    heads_of = [randn(batch, heads, length, _HEAD) for _ in range(3)]
    operations = 2 * batch * many * (wide + _HEAD) * _causal_pairs(length)
    return Operands(sas, (*heads_of, weights(wide), weights(wide), weights(None)), formula, operations)


def _gau(randn: Draw, batch: int, length: int, width: int) -> Operands:
    def gau(u: Any, v: Any, g: Any, kappa_q: Any, mu_q: Any, kappa_k: Any, mu_k: Any) -> Any:
        return attention.gau(u, v, g, kappa_q, mu_q, kappa_k, mu_k, patterns.causal())

    def formula(*tensors: torch.Tensor) -> torch.Tensor:
        return testing.gau(*tensors, mask=masks.causal(length, length))

    wide = [randn(batch, 1, length, channels) for channels in (_GAU_HEAD, width, width)]
    vectors = [1 + randn(_GAU_HEAD) / 8, randn(_GAU_HEAD) / 8, 1 + randn(_GAU_HEAD) / 8, randn(_GAU_HEAD) / 8]
    return Operands(gau, (*wide, *vectors), formula, 2 * batch * (_GAU_HEAD + width) * _causal_pairs(length))


def _causal_pairs(length: int) -> int:
    return length * (length + 1) // 2


_MADE: dict[str, Callable[[Draw, int, int, int], Operands]] = {"SEMA": _sema, "SFA": _sfa, "SAS": _sas, "GAU": _gau}


def flat(operands: tuple[Any, ...]) -> list[torch.Tensor]:
    """The tensors of operands, those of dicts in their order."""
    return [x for each in operands for x in (each.values() if isinstance(each, Mapping) else [each])]
