# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""``triton.language.extra.libdevice``: NVIDIA's names of functions of numbers."""

from weft.language.extra.libdevice import *  # noqa: F403
