# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""``triton.backends``."""

from . import compiler

__all__ = ["compiler"]
