# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""``triton.language``: the tile language under Triton's names."""

from weft.language import *  # noqa: F403
from weft.language import __all__ as _names

from . import core, extra, random, standard, target_info  # type: ignore[no-redef]
from . import math as math  # type: ignore[no-redef]
from .core import *  # noqa: F403
from .polling import atomic_poll

__all__ = [*_names, "atomic_poll", "core", "extra", "math", "random", "standard", "target_info"]
