# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Devices and PTX libraries from Python.

    weft.device()                        name of the default device: "cuda:0", or "simulator"; WEFT_DEVICE overrides
    weft.load("libsema")                 an opened library (weft.runtime.Library): .kernels, .launch(name, grid, *args),
                                         .programs, .run(name, *inputs)
    weft.runtime.Library.from_compiled(info, ptx)                the same of what the compiler gave, in memory

The lean entry, for callers that compile kernels themselves (what ``@weft.jit`` uses):

    device = weft.runtime.open_device()                          # by name; one object per name, made on first use
    module = weft.runtime.Module(ptx, entry, shared, device, types)
        ptx      PTX text                           entry    name of the .entry
        shared   dynamic shared memory in bytes     device   as open_device gives it
        types    the kernel's parameters, spelt as in signatures: ["*fp16", "*fp32", "i32"]
    module.launch(grid, block, args, stream=None, cluster=None)
        grid, block   an int or a tuple of up to three
        args          a tuple, one for each of types. For a pointer: a NumPy array or anything else with the buffer
                      protocol, a torch tensor, an address as an int, or None. For a number: a Python or NumPy one.
        stream        a CUstream as an int; None is torch's current stream where CUDA tensors are passed, else the
                      device's default
    module.attributes  {"registers": ..., "local_bytes": ..., "static_shared_bytes": ...}

Host arrays are used in place on the simulator. On CUDA they are copied to the device and back, and the launch is waited
for; CUDA tensors are used where they are, and the launch returns at once. An array may have any strides: the bytes that
it spans are what the kernel may touch. On a read-only array a kernel that writes is refused.

What fails raises ``weft.runtime.Error`` (a RuntimeError), whose ``status`` is "invalid argument", "not found",
"corrupt", "wrong target", "unsupported", "out of memory", "driver error", "finding" or "internal error".
"""

from __future__ import annotations

from typing import Any

from weft import native
from weft.runtime.devices import device, open_device
from weft.runtime.library import Library, LibraryKernel, load, write_library
from weft.runtime.program import Program

__all__ = [
    "Buffer",
    "Device",
    "Error",
    "Library",
    "LibraryKernel",
    "Module",
    "Program",
    "device",
    "load",
    "open_device",
    "write_library",
]


def __getattr__(name: str) -> Any:
    # The extension module is loaded by the first who needs it, so that importing weft stays quick.
    if name in ("Buffer", "Device", "Error", "Module"):
        return getattr(native.load("_runtime"), name)
    raise AttributeError(f"module 'weft.runtime' has no attribute '{name}'")
