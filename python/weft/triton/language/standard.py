# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""``triton.language.standard``: functions made of others."""

from weft.language import *  # noqa: F403
