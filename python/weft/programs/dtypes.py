# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Element types of programs, from every way of naming one."""

from __future__ import annotations

from typing import Any

from ..compiler import places
from ..compiler.signature import type_named
from ..compiler.specialise import array_type
from ..language.types import dtype

NAMES = ("int1", "int8", "int32", "int64", "fp16", "bf16", "fp32", "fp8e4nv", "fp8e5")


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


def kind_of(given: Any) -> Any:
    """float, int or bool for a type of scalars; None for None."""
    if given is None or given in (float, int, bool):
        return given
    if not isinstance(given, str) and type(given).__name__ != "dtype":
        raise places.error(f"expected float, int or bool, but got {given!r}")
    name = str(given).removeprefix("torch.")
    found = {"float32": float, "fp32": float, "int32": int, "int64": int, "bool": bool, "int1": bool}.get(name)
    if found is None:
        remedy = "scalars of score_mods and masks are float32, int32 and bool"
        raise places.error(f"expected torch.float32, torch.int32 or torch.bool, but got {given}", remedy)
    return found
