# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Fresh arrays like those of a call: torch's, on their device, or NumPy's."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

_TORCH = {
    "i1": "bool",
    "i8": "int8",
    "i32": "int32",
    "i64": "int64",
    "fp16": "float16",
    "bf16": "bfloat16",
    "fp32": "float32",
}
_NUMPY = {**_TORCH, "bf16": "uint16"}  # NumPy has no bfloat16: its bits


def empty(like: Sequence[Any], type: str, shape: Sequence[int], zero: bool = False) -> Any:
    """An array of a type, as a library's manifest names it, uninitialised or zero."""
    tensor = next((array for array in like if hasattr(array, "data_ptr")), None)
    if tensor is None:
        import numpy as np

        make = np.zeros if zero else np.empty
        return make(tuple(shape), getattr(np, _NUMPY[type]) if type != "i1" else np.bool_)
    import torch

    create = torch.zeros if zero else torch.empty
    return create(tuple(shape), dtype=getattr(torch, _TORCH[type]), device=tensor.device)
