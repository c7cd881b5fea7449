# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Tensor maps: how copies by boxes (``cp.async.bulk.tensor``) find their way in an array."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

from weft.errors import Error as _Error

__all__ = ["SimulatorError", "TensorMap", "buffer_of", "tensor_map"]

_SWIZZLES = {None: 0, "32B": 32, "64B": 64, "128B": 128}
_FILLS = {"zeros": False, "nan": True}


class SimulatorError(_Error):
    """PTX that cannot be run as asked: it does not parse, is not supported, or the launch does not fit it."""

    code = ""


@dataclasses.dataclass(frozen=True)
class TensorMap:
    """What ``tensor_map`` makes: an argument of ``launch`` for a parameter of 128 bytes."""

    array: Any
    box: tuple[int, ...]
    swizzle: str | None
    dtype: str
    strides: tuple[int, ...]
    element_strides: tuple[int, ...]
    fill: str
    offset: int

    def fields(self) -> dict[str, Any]:
        """The map for the native module, dimensions innermost first, with the buffer that it is of."""
        start, size, first, read_only = buffer_of(self.array)
        return {
            "dtype": self.dtype,
            "dims": list(reversed(self.array.shape)),
            "strides": list(reversed(self.strides[:-1])),
            "box": list(reversed(self.box)),
            "element_strides": list(reversed(self.element_strides)),
            "swizzle": _SWIZZLES[self.swizzle],
            "nan": _FILLS[self.fill],
            "buffer": (start, size, first + self.offset * self.array.itemsize, read_only),
        }


def tensor_map(
    array: Any,
    box: Sequence[int],
    swizzle: str | None = "128B",
    dtype: str | None = None,
    strides: Sequence[int] | None = None,
    element_strides: Sequence[int] | None = None,
    interleave: None = None,
    fill: str = "zeros",
    offset: int = 0,
) -> TensorMap:
    """A map of an array of 1 to 5 dimensions, as cuTensorMapEncodeTiled makes it, for a kernel's parameter.

    box: elements of the box in each dimension; strides: bytes from one index to the next. Both are in the order of
    array.shape, the last dimension being contiguous. swizzle: None, "32B", "64B" or "128B".
    dtype: "bf16", "e4m3", ... where the array carries bits (uint16, uint8).
    fill: "zeros" or "nan", what is read outside of the array. offset: of the tensor's first element, in elements.
    Raises SimulatorError for what a GPU's driver refuses; addresses and strides are checked by the launch.
    """
    rank = len(array.shape)
    given = tuple(int(stride) for stride in (array.strides if strides is None else strides))
    steps = tuple(int(step) for step in (element_strides or (1,) * rank))
    sizes = tuple(int(size) for size in box)
    for name, values in (("box", sizes), ("strides", given), ("element_strides", steps)):
        if len(values) != rank:
            raise SimulatorError(f"expected '{name}' to have {rank} numbers, but got {values!r}")
    if swizzle not in _SWIZZLES:
        raise SimulatorError(f"expected a swizzle of None, '32B', '64B' or '128B', but got {swizzle!r}")
    if fill not in _FILLS:
        raise SimulatorError(f"expected 'fill' to be 'zeros' or 'nan', but got {fill!r}")
    if interleave is not None:
        raise SimulatorError(f"expected no interleaving, but got {interleave!r}")
    if rank and given[-1] != array.itemsize:
        raise SimulatorError(
            f"expected the last dimension to have a stride of {array.itemsize} bytes, but got {given[-1]}"
        )
    return TensorMap(array, sizes, swizzle, dtype or _name(array.dtype), given, steps, fill, int(offset))


def _name(dtype: Any) -> str:
    kind = {"f": "f", "u": "u", "i": "s"}.get(dtype.kind)
    if kind is None:
        raise SimulatorError(f"expected an array of numbers, but got one of {dtype}")
    return f"{kind}{dtype.itemsize * 8}"


def buffer_of(array: Any) -> tuple[int, int, int, bool]:
    """An array as (address of its first byte, bytes, offset of element 0, read only). Raises SimulatorError for one of
    Python's objects, whose pointers no kernel may write."""
    if array.dtype.hasobject:
        raise SimulatorError(f"expected an array of numbers, but got one of Python's objects, of type '{array.dtype}'")
    low = high = first = array.__array_interface__["data"][0]
    if array.size:
        for count, stride in zip(array.shape, array.strides, strict=True):
            if stride < 0:
                low += (count - 1) * stride
            else:
                high += (count - 1) * stride
        high += array.itemsize
    return low, high - low, first - low, not array.flags.writeable
