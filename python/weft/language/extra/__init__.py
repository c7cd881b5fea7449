# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Functions under the names of NVIDIA's library: ``wl.extra.libdevice``; of the machine: ``wl.extra.cuda``."""

from . import cuda, libdevice

__all__ = ["cuda", "libdevice"]
