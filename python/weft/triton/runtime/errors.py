# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""``triton.runtime.errors``."""

from weft.triton.errors import AutotunerError, InterpreterError, OutOfResources, PTXASError

__all__ = ["AutotunerError", "InterpreterError", "OutOfResources", "PTXASError"]
