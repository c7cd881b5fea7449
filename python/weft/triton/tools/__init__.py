# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""``triton.tools``."""

from . import mxfp, tensor_descriptor

__all__ = ["mxfp", "tensor_descriptor"]
