# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""``triton.backends``. ``backends`` names the compilers that torch may generate Triton kernels for: none, so that
``torch.compile`` on a CPU writes its own code in C++."""

from typing import Any

from . import compiler

backends: dict[str, Any] = {}

__all__ = ["backends", "compiler"]
