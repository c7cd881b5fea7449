# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Whether all ranks ask for the same: a rank that is refused alone would leave the others waiting."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np
import torch
import torch.distributed as dist

from ..patterns import Pattern
from ..patterns.host import to_numpy

T = TypeVar("T")


def device_of(group: Any) -> Any:
    """Where the tensors are that ranks of a group exchange."""
    nccl = "nccl" in str(dist.get_backend(group))
    return torch.device("cuda", torch.cuda.current_device()) if nccl else torch.device("cpu")


def digest_of(patterns: Sequence[Pattern | None]) -> str:
    """What tells the arrays in patterns apart, in short."""
    digest = hashlib.blake2b(digest_size=8)

    def add(pattern: Pattern) -> None:
        for value in pattern.values:
            if hasattr(value, "shape"):
                digest.update(np.ascontiguousarray(to_numpy(value)).tobytes())
        for part in pattern.parts:
            add(part)

    for pattern in patterns:
        if pattern is not None and not pattern.is_plain:
            add(pattern)
    return digest.hexdigest()


def agreed(group: Any, make: Callable[[], tuple[T, str]]) -> T:
    """What ``make`` gives, beside a description that is to be the same on all ranks. Where it raises an error on one of
    them, or descriptions differ, all ranks raise."""
    failure: Exception | None = None
    made: T | None = None
    try:
        made, said = make()
    except Exception as error:  # functions of the user's, as score_mods are, raise any
        failure, said = error, f"{type(error).__name__}: {error}"
    digest = hashlib.blake2b(said.encode(), digest_size=8).digest()
    mine = torch.tensor([failure is not None, int.from_bytes(digest, "little", signed=True)], dtype=torch.int64)
    mine = mine.to(device_of(group))
    size = dist.get_world_size(group)
    found = [torch.empty_like(mine) for _ in range(size)]
    dist.all_gather(found, mine, group=group)
    table = torch.stack(found).cpu()
    if not table[:, 0].any() and (table[:, 1] == table[0, 1]).all():
        if made is None:
            raise AssertionError
        return made
    texts: list[Any] = [None] * size
    dist.all_gather_object(texts, said, group=group)
    if failure is not None:
        raise failure
    failed = [rank for rank in range(size) if table[rank, 0]]
    if failed:
        raise ValueError(f"expected a call that all ranks can make, but rank {failed[0]} has {texts[failed[0]]}")
    other = next(rank for rank in range(size) if texts[rank] != texts[0])
    raise ValueError(f"expected the same on all ranks, but rank 0 has {texts[0]}, and rank {other} has {texts[other]}")
