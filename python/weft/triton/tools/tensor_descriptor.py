# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""``triton.tools.tensor_descriptor``."""

from weft.runtime.descriptors import TensorDescriptor

__all__ = ["TensorDescriptor"]
