# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Weft, a compiler for attention: kernels written in Python become PTX, run on a GPU or on the simulator, and ship as
libraries.

    @weft.jit                     a tile kernel: kernel[grid](*args, BLOCK=64, num_warps=4); weft.language is its
    language
    weft.compile(fn, ...)         a PTX library from a kernel
    weft.load(DIR)                an opened library
    weft.device()                 where kernels run: "cuda:0", or "simulator" without a GPU; WEFT_DEVICE overrides

Everything is loaded when it is first used, so that ``import weft`` stays quick.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from weft.compiler.diagnostics import CompilationError as CompilationError
    from weft.compiler.jit import JITFunction as JITFunction
    from weft.compiler.jit import jit as jit
    from weft.compiler.kernel import Kernel as Kernel
    from weft.compiler.libraries import compile as compile
    from weft.errors import Error as Error
    from weft.integers import cdiv as cdiv
    from weft.integers import next_power_of_2 as next_power_of_2
    from weft.runtime.devices import device as device
    from weft.runtime.library import Library as Library
    from weft.runtime.library import load as load
    from weft.selection import select_blocks as select_blocks

# Public name: the module that defines it.
_NAMES = {
    "CompilationError": "weft.compiler.diagnostics",
    "Error": "weft.errors",
    "JITFunction": "weft.compiler.jit",
    "Kernel": "weft.compiler.kernel",
    "Library": "weft.runtime.library",
    "cdiv": "weft.integers",
    "compile": "weft.compiler.libraries",
    "device": "weft.runtime.devices",
    "jit": "weft.compiler.jit",
    "load": "weft.runtime.library",
    "next_power_of_2": "weft.integers",
    "select_blocks": "weft.selection",
}
_MODULES = ("cli", "compiler", "demo", "language", "runtime", "simulator", "testing")

__all__ = [
    "CompilationError",
    "Error",
    "JITFunction",
    "Kernel",
    "Library",
    "cdiv",
    "compile",
    "device",
    "jit",
    "load",
    "next_power_of_2",
    "select_blocks",
]


def __getattr__(name: str) -> Any:
    if name in _NAMES:
        value = getattr(importlib.import_module(_NAMES[name]), name)
    elif name in _MODULES:
        value = importlib.import_module(f"weft.{name}")
    else:
        raise AttributeError(f"module 'weft' has no attribute '{name}'")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_NAMES, *_MODULES})
