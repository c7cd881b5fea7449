# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""What every error of Weft has in common."""

from __future__ import annotations


class Error(RuntimeError):
    """Base of what Weft raises: weft.CompilationError for kernels, weft.runtime.Error for devices and libraries."""
