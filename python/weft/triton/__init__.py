# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Triton's names for Weft. A script for Triton ports by its two import lines:

    import weft.triton as triton
    import weft.triton.language as tl

``python -m weft.triton script.py`` runs a script as it is, with ``triton`` and all below it replaced.
docs/Triton.md says what differs.
"""

from weft.compiler.diagnostics import CompilationError
from weft.compiler.jit import JITFunction, jit
from weft.errors import Error as TritonError
from weft.integers import cdiv, next_power_of_2
from weft.kernels.autotuner import autotune
from weft.kernels.config import Config
from weft.kernels.heuristics import heuristics
from weft.language import aggregate, constexpr_function

from . import backends, compiler, errors, experimental, knobs, language, profiler, runtime, testing, tools
from .compiler import compile
from .errors import InterpreterError, OutOfResources
from .runtime.jit import KernelInterface, MockTensor, TensorWrapper, must_use_result, reinterpret, set_allocator

__version__ = "3.9.0"  # the Triton whose names these are

__all__ = [
    "CompilationError",
    "Config",
    "InterpreterError",
    "JITFunction",
    "KernelInterface",
    "MockTensor",
    "OutOfResources",
    "TensorWrapper",
    "TritonError",
    "aggregate",
    "autotune",
    "backends",
    "cdiv",
    "compile",
    "compiler",
    "constexpr_function",
    "errors",
    "experimental",
    "heuristics",
    "jit",
    "knobs",
    "language",
    "must_use_result",
    "next_power_of_2",
    "profiler",
    "reinterpret",
    "runtime",
    "set_allocator",
    "testing",
    "tools",
]
