# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Triton's errors, as Weft raises them: all are ``weft.Error``."""

from weft.compiler.diagnostics import CompilationError
from weft.errors import Error as TritonError


class OutOfResources(TritonError):
    """A kernel takes more of a resource than a block has. Weft raises the error of its driver in its place."""


class InterpreterError(TritonError):
    """Of Triton's interpreter, which Weft has not: it runs the compiled kernel on its simulator."""


class PTXASError(TritonError):
    """ptxas refuses the PTX."""


class AutotunerError(TritonError):
    """No configuration is left to try. Weft raises ValueError in its place."""


CompileTimeAssertionFailure = CompilationError
UnsupportedLanguageConstruct = CompilationError

__all__ = [
    "AutotunerError",
    "CompilationError",
    "CompileTimeAssertionFailure",
    "InterpreterError",
    "OutOfResources",
    "PTXASError",
    "TritonError",
    "UnsupportedLanguageConstruct",
]
