# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""``triton.language.math``."""

from weft.language.maths import *  # noqa: F403
