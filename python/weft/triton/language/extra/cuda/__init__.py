# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""``triton.language.extra.cuda``."""

from weft.language.extra.cuda import gdc_launch_dependents, gdc_wait

from . import gdc, libdevice, utils
from .utils import globaltimer, num_threads, num_warps, smid

__all__ = [
    "gdc",
    "gdc_launch_dependents",
    "gdc_wait",
    "globaltimer",
    "libdevice",
    "num_threads",
    "num_warps",
    "smid",
    "utils",
]
