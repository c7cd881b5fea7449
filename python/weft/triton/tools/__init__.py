# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""``triton.tools``."""

from . import tensor_descriptor

__all__ = ["tensor_descriptor"]
