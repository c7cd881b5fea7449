# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""``triton.compiler``: compiled kernels and errors."""

from weft.compiler.diagnostics import CompilationError
from weft.compiler.kernel import Kernel as CompiledKernel
from weft.compiler.libraries import compile

from . import compiler, errors

__all__ = ["CompilationError", "CompiledKernel", "compile", "compiler", "errors"]
