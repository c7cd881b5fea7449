# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""``triton.backends.compiler``: what a kernel is compiled for."""

from weft.triton.runtime.driver import GPUTarget

__all__ = ["GPUTarget"]
