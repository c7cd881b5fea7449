# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""``triton.runtime._allocation``."""

from weft.triton.runtime.jit import set_allocator

__all__ = ["set_allocator"]
