# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""``triton.language.extra``: functions of the machine's."""

from . import cuda, libdevice

__all__ = ["cuda", "libdevice"]
