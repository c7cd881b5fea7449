# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Groups given as meshes, and tensors that know how they are sharded (DTensor): their parts here, and results like
them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch.distributed as dist
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.tensor import DTensor, Replicate, Shard


def group_of(group: Any) -> Any:
    """The group that is meant: one of torch.distributed, that of a mesh of one axis, or all ranks for None."""
    if not dist.is_available() or not dist.is_initialized():
        raise ValueError("expected ranks that know each other; call torch.distributed.init_process_group first")
    if group is None:
        return dist.group.WORLD
    if isinstance(group, DeviceMesh):
        if group.ndim != 1:
            raise ValueError(
                f"expected 'group' to be a mesh of one axis, such as mesh['cp'], but got {group.ndim} axes"
            )
        return group.get_group()
    if not isinstance(group, dist.ProcessGroup):
        raise TypeError(f"expected 'group' to be a group of torch.distributed, but got '{type(group).__name__}'")
    return group


def attend_sharded(attend: Callable[..., Any], q: Any, k: Any, v: Any, plain: bool, group: Any) -> Any:
    """What ``attend(q, k, v, group)`` of this rank's parts gives, sharded as the queries are. One axis of the mesh
    shards the sequence, axis 2; others may shard batches, and heads where all heads are alike (``plain``)."""
    mesh, placements = q.device_mesh, tuple(q.placements)
    for name, x in (("k", k), ("v", v)):
        if not isinstance(x, DTensor) or x.device_mesh != mesh or tuple(x.placements) != placements:
            given = tuple(x.placements) if isinstance(x, DTensor) else type(x).__name__
            raise ValueError(f"expected '{name}' to be sharded as 'q' is, {placements}, but got {given}")
    along = [axis for axis, each in enumerate(placements) if each == Shard(2)]
    allowed = (Shard(0), Shard(1), Shard(2), Replicate())
    if len(along) != 1 or any(each not in allowed for each in placements):
        raise ValueError(f"expected one axis of the mesh to shard the sequence, axis 2, but got {placements}")
    if Shard(1) in placements and not plain:
        raise ValueError(
            "expected all heads on each rank for a score_mod, a sink, or a pattern with arrays or functions"
        )
    own = mesh.get_group(along[0])
    if group is not None and group_of(group) is not own:
        raise ValueError("expected no 'group' with sharded tensors, or that of the axis that shards the sequence")
    found = attend(q.to_local(), k.to_local(), v.to_local(), own)
    if isinstance(found, tuple):
        return tuple(DTensor.from_local(each, mesh, placements) for each in found)
    return DTensor.from_local(found, mesh, placements)


def is_sharded(x: Any) -> bool:
    """Whether a tensor knows how it is sharded."""
    return isinstance(x, DTensor)
