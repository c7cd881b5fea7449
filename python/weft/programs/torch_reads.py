# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Functions of scalars that are written for torch: how they read the tensors around them, beside what weft's do.

table[-1], table[n - m]    negative indices count from the end of the axis
table[h][n]                axes may be indexed one after another
table of 128 rows          may be longer than what indexes it: n of 100 rows
int64, float64, ...        integers are read as int32 and reals as float32, which have the same values in kernels
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

from ..compiler import places
from ..runtime.plain import described

_INTEGERS = ("int64", "int16", "uint8", "uint16", "uint32", "uint64")
_LIMITS = (-(2**31), 2**31 - 1)


@dataclass(frozen=True)
class AsTorch:
    """A score_mod or a mask as torch's flex_attention takes it; called on the host, it is the function itself."""

    function: Callable[..., Any]
    reads_as_torch: ClassVar[bool] = True  # for patterns, which know no programs
    __weft_fields__: ClassVar[tuple[str, ...]] = ("function",)  # of which one is made

    def __weft_reads__(self, reads: Any) -> Any:
        return reads.value(self.function)

    def __call__(self, *scalars: Any) -> Any:
        return self.function(*scalars)


def narrowed(array: Any) -> Any:
    """An array of a type that kernels read: integers as int32, float64 as float32, of torch's differentiably.

    CompilationError where a number in host memory does not fit; on a GPU, where looking would wait for it, and in what
    torch.compile compiles, where there is nothing to look at, larger ones become the largest there is.
    """
    name = str(array.dtype).removeprefix("torch.")
    if name == "float64":
        return array.float() if hasattr(array, "detach") else array.astype("float32")
    if name not in _INTEGERS:
        return array
    if not hasattr(array, "detach"):
        _refuse_large(array, array.size)
        return array.astype("int32")
    import torch

    wide = array if array.dtype == torch.int64 else array.to(torch.int64)
    if array.device.type == "cpu" and not described(array):
        _refuse_large(wide, wide.numel())
    else:
        wide = wide.clamp(*_LIMITS)
    return wide.to(torch.int32)


def _refuse_large(array: Any, count: int) -> None:
    if count and not _LIMITS[0] <= int(array.min()) <= int(array.max()) <= _LIMITS[1]:
        raise places.error(
            "expected integers of 32 bits in an array from around the program, "
            f"but got {int(array.min())} to {int(array.max())}"
        )
