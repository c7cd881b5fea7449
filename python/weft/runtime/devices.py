# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Devices by name."""

from __future__ import annotations

import functools
from typing import Any

from weft import native


def device() -> str:
    """The default device's name: WEFT_DEVICE where set, else "cuda:0" where a driver is found, else "simulator"."""
    name: str = native.load("_runtime").default_device()
    return name


def open_device(name: str | None = None) -> Any:
    """The device of that name ("cuda:1", "simulator", "simulator:sm_80"), or the default one.

    The same object for the same name. It has ``name``, ``simulated``, ``properties`` (a dict) and
    ``synchronize(stream=0)``.
    Raises ``weft.runtime.Error`` where there is no such device.
    """
    return _opened(name or device())


@functools.cache
def _opened(name: str) -> Any:
    return native.load("_runtime").Device(name)


def device_for(args: tuple[Any, ...]) -> Any:
    """The device that a launch with these arguments runs on: that of the first CUDA tensor, else the default one."""
    for value in args:
        if getattr(value, "is_cuda", False):
            return open_device(f"cuda:{value.device.index}")
    return open_device()
