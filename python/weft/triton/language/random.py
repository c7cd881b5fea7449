# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""``triton.language.random``: numbers by Philox."""

from weft.language import *  # noqa: F403
