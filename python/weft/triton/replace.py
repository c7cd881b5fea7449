# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""``weft.triton`` under the name ``triton``, so that what imports Triton gets Weft."""

from __future__ import annotations

import os
import pkgutil
import sys
from importlib import import_module
from typing import Any

import weft.triton
from weft.triton.backends.driver import SimulatorDriver

_ABSENT = ("__main__", "replace")


def replace() -> None:
    """From now on ``import triton``, and of every module below it that Weft has, gives Weft's. Call it before Triton is
    imported: what was imported from it stays its."""
    own = weft.triton.__name__
    for each in pkgutil.walk_packages(weft.triton.__path__, f"{own}."):
        if each.name.rpartition(".")[2] not in _ABSENT:
            import_module(each.name)
    names = [name for name in sys.modules if name == own or name.startswith(f"{own}.")]
    for name in names:
        if name.rpartition(".")[2] not in _ABSENT:
            sys.modules[name.removeprefix("weft.")] = sys.modules[name]
    foreign = [name for name in sys.modules if name.startswith("triton.") and f"weft.{name}" not in names]
    for name in foreign:
        del sys.modules[name]
    _tell_torch()


def _tell_torch() -> None:
    """Settings of torch.compile. It may compile kernels in other processes, which import Triton itself: have it compile
    them here. Without a GPU it is not to look into kernels that a script launches, but to run them as they are."""
    settings: dict[str, tuple[str, Any]] = {"compile_threads": ("TORCHINDUCTOR_COMPILE_THREADS", 1)}
    if SimulatorDriver.is_active():
        name = "triton_disable_device_detection"
        settings[name] = ("TORCHINDUCTOR_TRITON_DISABLE_DEVICE_DETECTION", True)
    config: Any = sys.modules.get("torch._inductor.config")
    for name, (variable, value) in settings.items():
        os.environ[variable] = str(int(value))
        if config is not None:
            setattr(config, name, value)
