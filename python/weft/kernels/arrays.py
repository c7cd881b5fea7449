# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""The memory behind a call's arrays: kept, compared and put back, so that trying a kernel changes nothing.

NumPy's arrays and torch's tensors, by their whole storage: what a kernel reaches through a pointer is not bounded by a
view's shape.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from weft.runtime.descriptors import leaves


class Storage:
    """The bytes behind an array."""

    def __init__(self, array: Any):
        self.array = array

    @property
    def address(self) -> int:
        """Where the bytes begin."""
        raise NotImplementedError

    def copy(self) -> Any:
        """The bytes as they are now, on the array's own device."""
        raise NotImplementedError

    def put_back(self, kept: Any) -> None:
        """Make the bytes what they were."""
        raise NotImplementedError

    def numbers(self) -> np.ndarray:
        """The elements as they are now, as NumPy has them: bfloat16 widened."""
        raise NotImplementedError

    def zero(self) -> None:
        """Make all elements 0."""
        raise NotImplementedError


class _Numpy(Storage):
    @property
    def _owner(self) -> Any:
        owner = self.array
        while isinstance(owner.base, np.ndarray):
            owner = owner.base
        return owner

    @property
    def address(self) -> int:
        return int(self._owner.ctypes.data)

    def copy(self) -> Any:
        return self._owner.copy()

    def put_back(self, kept: Any) -> None:
        if self._owner.flags.writeable:
            self._owner[...] = kept

    def numbers(self) -> np.ndarray:
        return np.array(self.array)

    def zero(self) -> None:
        self.array[...] = 0


class _Torch(Storage):
    @property
    def address(self) -> int:
        return int(self.array.untyped_storage().data_ptr())

    def copy(self) -> Any:
        return self.array.untyped_storage().clone()

    def put_back(self, kept: Any) -> None:
        self.array.untyped_storage().copy_(kept)

    def numbers(self) -> np.ndarray:
        import torch

        tensor = self.array.detach()
        wide = tensor.dtype.is_floating_point and tensor.dtype not in (torch.float16, torch.float32, torch.float64)
        return np.array((tensor.float() if wide else tensor).cpu().numpy())

    def zero(self) -> None:
        self.array.detach().zero_()


def storage(value: Any) -> Storage | None:
    """The memory behind a value, None where it is no array."""
    if isinstance(value, np.ndarray):
        return _Numpy(value)
    return _Torch(value) if hasattr(value, "untyped_storage") else None


class Snapshot:
    """The memory of all arrays among values, as it was when this was made."""

    def __init__(self, values: Iterable[Any]):
        found = [each for each in map(storage, leaves(list(values))) if each is not None]
        self.arrays = found
        self._kept = [(each, each.copy()) for each in {each.address: each for each in found}.values()]

    def put_back(self) -> None:
        """Make the memory what it was."""
        for each, kept in self._kept:
            each.put_back(kept)

    def numbers(self) -> list[np.ndarray]:
        """The elements of every array as they are now."""
        return [each.numbers() for each in self.arrays]


def type_name(value: Any) -> str:
    """The name of an array's element type."""
    return str(value.dtype).removeprefix("torch.")
