# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""torch.vmap of programs: one call for each element of the batch that torch.vmap goes over, stacked."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch


def one_by_one(
    call: Callable[..., Any], count: int, in_dims: Sequence[int | None], tensors: Sequence[Any]
) -> tuple[Any, Any]:
    """What ``call`` gives of each of ``count`` elements along ``in_dims``, and where the results have them: as a rule
    for torch.vmap gives it."""
    found = [
        call(*(t if dim is None else t.select(dim, number) for t, dim in zip(tensors, in_dims, strict=True)))
        for number in range(count)
    ]
    if isinstance(found[0], torch.Tensor):
        return torch.stack(found), 0
    return tuple(torch.stack(each) for each in zip(*found, strict=True)), (0,) * len(found[0])
