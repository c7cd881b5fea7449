# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""``triton.backends.nvidia``: NVIDIA's tools, which packages ask for their versions."""

from . import compiler

__all__ = ["compiler"]
