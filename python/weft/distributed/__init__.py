# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Sequences that are longer than a device: attention over torch.distributed, in which each rank holds some tokens."""

from __future__ import annotations

from weft import lazy

__getattr__, __dir__, __all__ = lazy.attach(__name__, __file__)
