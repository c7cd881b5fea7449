# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Which target kernels for a device are compiled for."""

from __future__ import annotations

import os
import types
from collections.abc import Iterable
from typing import Any

from ..targets import default_target, target_for, targets
from . import places
from .diagnostics import CompilationError

_targets: dict[int, str] = {}


def asked(target: str | Iterable[str] | None) -> list[str]:
    """The names of targets, each once, given as a text or as several; that of the default where none is given."""
    target = default_target() if target is None else target
    several = isinstance(target, (list, tuple, set, frozenset, dict, types.GeneratorType, map, filter))
    names = list(target) if several else target.split(",") if isinstance(target, str) else []
    if not names or not all(isinstance(name, str) and name.strip() for name in names):
        given = places.described(target)
        raise TypeError(f"expected the name of a target, such as '{default_target()}', or several, but got {given}")
    return list(dict.fromkeys(name.strip() for name in names))


def target_of(device: Any) -> str:
    """The compiler's target for a device, such as "sm_80"; WEFT_TARGET overrides. CompilationError for old GPUs."""
    override = os.environ.get("WEFT_TARGET")
    if override:
        return override
    target = _targets.get(id(device))
    if target is None:
        target = _targets[id(device)] = _best_target(device)
    return target


def _best_target(device: Any) -> str:
    if device.simulated:  # "simulator:TARGET" names one; PTX for the default runs on all of them
        return device.name.partition(":")[2] or default_target()
    major, minor = device.properties["capability"]
    target = target_for((major, minor), device.properties["max_shared_bytes"])
    if target is None:
        oldest = min(each.capability for each in targets().values())
        raise CompilationError(
            f"expected a device of compute capability {oldest // 10}.{oldest % 10} or more, "
            f"but '{device.name}' has {major}.{minor}"
        )
    return target
