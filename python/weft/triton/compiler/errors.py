# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""``triton.compiler.errors``."""

from weft.triton.errors import CompilationError, CompileTimeAssertionFailure, UnsupportedLanguageConstruct

__all__ = ["CompilationError", "CompileTimeAssertionFailure", "UnsupportedLanguageConstruct"]
