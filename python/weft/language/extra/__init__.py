# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Functions under the names of NVIDIA's library: ``wl.extra.libdevice``."""

from . import libdevice

__all__ = ["libdevice"]
