# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""``triton.runtime.autotuner``."""

from weft.kernels.autotuner import Autotuner, autotune
from weft.kernels.config import Config
from weft.kernels.heuristics import Heuristics, heuristics
from weft.triton.errors import AutotunerError, OutOfResources, PTXASError

__all__ = [
    "Autotuner",
    "AutotunerError",
    "Config",
    "Heuristics",
    "OutOfResources",
    "PTXASError",
    "autotune",
    "heuristics",
]
