# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""What ``weft doctor`` says of NVIDIA's driver and of the GPUs: what they are, and what runs there."""

from __future__ import annotations

import ctypes
import os
import re
from collections.abc import Iterable, Iterator

from weft.errors import Error

OLDEST = 12000
"""CUDA 12.0, the driver R525: the first that reads PTX 8.0, which the compiler writes"""


def driver() -> str:
    """The driver and its CUDA version, or why there is none. Raises Error for one that is too old for Weft's PTX."""
    name = os.environ.get("WEFT_LIBCUDA") or "libcuda.so.1"
    try:
        library = ctypes.CDLL(name)
    except OSError as error:
        return f"none ({error}): kernels run on the simulator"
    found = ctypes.c_int()
    if not hasattr(library, "cuDriverGetVersion") or library.cuDriverGetVersion(ctypes.byref(found)):
        return f"{name}, of unknown version"
    version = f"{found.value // 1000}.{found.value % 1000 // 10}"
    if found.value < OLDEST:
        raise Error(f"expected a driver of CUDA 12.0 (R525) or newer, but got one of {version}: update NVIDIA's driver")
    if code := library.cuInit(0):
        return f"{name} of CUDA {version}, which finds no GPU (cuInit gives {code})"
    return f"{name} of CUDA {version}"


def fitting(targets: Iterable[str], capability: tuple[int, int]) -> list[str]:
    """The targets whose PTX runs on a GPU of this compute capability: older ones too, but sm_90a's on 9.0 alone."""
    have, found = capability[0] * 10 + capability[1], []
    for name in targets:
        number, only = re.fullmatch(r"sm_(\d+)(a?)", name).groups()  # type: ignore[union-attr]
        if int(number) == have or (int(number) < have and not only):
            found.append(name)
    return found


def gpus() -> Iterator[tuple[str, str]]:
    """Each GPU's name, and its model, capability, memory and targets."""
    from weft import native
    from weft.runtime.devices import open_device
    from weft.targets import targets

    for index in range(native.load("_runtime").cuda_device_count()):
        name = f"cuda:{index}"
        facts = open_device(name).properties
        major, minor = facts["capability"]
        listed = ", ".join(fitting(targets(), (major, minor))) or "none of Weft's targets"
        memory = f"{facts['memory_bytes'] / 2**30:.0f} GiB"
        yield name, f"{facts['model']}, capability {major}.{minor}, {memory}; runs {listed}"
