# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""``triton.language.extra.cuda``."""

from . import libdevice, utils
from .utils import num_threads, num_warps

__all__ = ["libdevice", "num_threads", "num_warps", "utils"]
