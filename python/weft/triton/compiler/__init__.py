# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""``triton.compiler``: compiled kernels and errors."""

from weft.compiler.diagnostics import CompilationError

from . import compiler, errors
from .compiler import ASTSource, CompiledKernel, compile, make_backend

__all__ = ["ASTSource", "CompilationError", "CompiledKernel", "compile", "compiler", "errors", "make_backend"]
