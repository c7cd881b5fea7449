# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Whether torch's Dynamo reads the code that asks."""

from __future__ import annotations

import sys


def compiling() -> bool:
    """Whether this is being compiled by torch.compile: never so while it runs."""
    torch = sys.modules.get("torch")
    return torch is not None and torch.compiler.is_dynamo_compiling()
