# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Element types of programs, from every way of naming one."""

from __future__ import annotations

from typing import Any

from ..compiler.signature import type_named
from ..compiler.specialise import array_type
from ..language.types import dtype
from . import places

NAMES = ("int1", "int8", "int32", "int64", "fp16", "bf16", "fp32")


def dtype_of(given: Any) -> dtype:
    """The type that a dtype of weft, NumPy or torch, or a name ("fp16"), stands for."""
    try:
        if isinstance(given, type):  # np.float16
            import numpy as np

            given = np.dtype(given)
        found = (
            given if isinstance(given, dtype) else type_named(given if isinstance(given, str) else array_type(given))
        )
    except (TypeError, ValueError):
        given = str(given).removeprefix("torch.") if hasattr(given, "itemsize") else places.described(given)
        raise places.error(f"expected elements of {', '.join(NAMES)}, but got {given}") from None
    if found.name not in NAMES:
        raise places.error(f"expected elements of {', '.join(NAMES)}, but got {found}")
    return found
