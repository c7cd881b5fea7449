# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""``triton.experimental``: Gluon's names, for packages that import them beside the tile language's."""

from . import gluon

__all__ = ["gluon"]
