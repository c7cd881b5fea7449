# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""``triton.language.extra.cuda.libdevice``."""

from weft.language.extra.libdevice import *  # noqa: F403
