# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""torch.vmap of programs: the axis that it goes over becomes part of the program's batch, so that one run computes all.

    attend(q: [B, H, N, D], ...)   under vmap over V   attend(q: [V·B, H, N, D], ...)

A plan says what its batch is (docs/LibraryFormat.md). One call for each element of the axis, stacked, is left for a
program without a batch, whose results sum over it or depend on an entry's number; for a mapped operand that has no
batch, such as weights; and for more blocks than a grid holds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

from .plans import folded_batch


def batched(
    call: Callable[..., Any], plan: Mapping[str, Any], count: int, in_dims: Sequence[int | None], tensors: Sequence[Any]
) -> tuple[Any, Any]:
    """What ``call`` gives of each of ``count`` elements along ``in_dims``, and where the results have them: as a rule
    for torch.vmap gives it. ``plan`` is that of the operator which is called."""
    whole = [t if dim is None else t.movedim(dim, 0) for t, dim in zip(tensors, in_dims, strict=True)]
    mapped = [dim is not None for dim in in_dims]
    size = folded_batch(plan, count, mapped, [t.shape for t in whole])
    if size is None:
        return _one_by_one(call, count, mapped, whole)
    folded = []
    for each, is_mapped, described in zip(whole, mapped, plan["inputs"], strict=True):
        if described["dims"][:1] == [plan["batch"]]:
            spread = each if is_mapped else each.unsqueeze(0).expand(count, *each.shape)
            each = spread.flatten(0, 1)
        folded.append(each)
    found = call(*folded)
    if isinstance(found, torch.Tensor):
        return found.unflatten(0, (count, size)), 0
    return tuple(each.unflatten(0, (count, size)) for each in found), (0,) * len(found)


def _one_by_one(
    call: Callable[..., Any], count: int, mapped: Sequence[bool], tensors: Sequence[Any]
) -> tuple[Any, Any]:
    found = [
        call(*(t[number] if is_mapped else t for t, is_mapped in zip(tensors, mapped, strict=True)))
        for number in range(count)
    ]
    if isinstance(found[0], torch.Tensor):
        return torch.stack(found), 0
    return tuple(torch.stack(each) for each in zip(*found, strict=True)), (0,) * len(found[0])
