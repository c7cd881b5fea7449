# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""What GPUs can do at most: the numbers that lower bounds of a kernel's time are computed from (weft.targets)."""

from __future__ import annotations

from typing import Any

from weft.targets import Gpu, gpu_named, gpus

__all__ = ["GPUS", "Gpu", "gpu_named"]  # noqa: F822


def __getattr__(name: str) -> Any:
    """``GPUS``, every GPU by its short name: read when it is asked for, from the native table."""
    if name == "GPUS":
        return gpus()
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
