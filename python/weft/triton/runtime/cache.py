# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""``triton.runtime.cache``: where compiled kernels are kept."""

from weft.compiler.cache import directory
from weft.compiler.fingerprint import compiler_fingerprint as triton_key


def default_cache_dir() -> str:
    """The folder of compiled kernels; "" where none are kept."""
    return str(directory() or "")


__all__ = ["default_cache_dir", "triton_key"]
