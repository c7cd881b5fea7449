# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""``triton.runtime``: kernels, tuners and the driver."""

from weft.compiler.jit import JITFunction
from weft.kernels.autotuner import Autotuner, autotune
from weft.kernels.config import Config
from weft.kernels.heuristics import Heuristics, heuristics
from weft.triton.errors import InterpreterError, OutOfResources

from . import autotuner, cache, errors, jit
from .driver import driver
from .jit import KernelInterface, MockTensor, TensorWrapper, reinterpret

__all__ = [
    "Autotuner",
    "Config",
    "Heuristics",
    "InterpreterError",
    "JITFunction",
    "KernelInterface",
    "MockTensor",
    "OutOfResources",
    "TensorWrapper",
    "autotune",
    "autotuner",
    "cache",
    "driver",
    "errors",
    "heuristics",
    "jit",
    "reinterpret",
]
