# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""``triton.tools.tensor_descriptor``."""

__all__: list[str] = []
