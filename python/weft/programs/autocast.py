# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""torch.autocast: a program's arrays are cast as those of torch's own attention are."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

_NARROW = ("torch.float32", "torch.float16", "torch.bfloat16")


def is_on(kind: str) -> bool:
    """Whether torch.autocast is on for a kind of device; some, such as "meta", have none, and raise when asked. Dynamo
    cannot trace torch.amp.is_autocast_available in every version."""
    import torch

    return kind in ("cpu", "cuda") and torch.is_autocast_enabled(kind)


def wanted(array: Any) -> Any:
    """The type that an array is to be cast to under torch.autocast, None where it stays as it is: scaled dot-product
    attention casts what it multiplies. A vector, such as a sink or a slope for each head, keeps its digits."""
    torch: Any = sys.modules.get("torch")
    if torch is None or not isinstance(array, torch.Tensor) or array.dim() < 2 or str(array.dtype) not in _NARROW:
        return None
    kind = array.device.type
    if not is_on(kind):
        return None
    found = torch.get_autocast_dtype(kind)
    return None if found == array.dtype else found


def cast(arrays: Sequence[tuple[str, Any]]) -> list[tuple[str, Any]]:
    """A call's arrays by name, each of the type that torch.autocast wants of it."""
    made = []
    for name, array in arrays:
        dtype = wanted(array)
        made.append((name, array if dtype is None else array.to(dtype)))
    return made
