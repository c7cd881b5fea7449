# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Arrays of other libraries, where tensors are taken: on the host by DLPack, on a GPU by the CUDA array interface or by
DLPack through torch. They are used where they are, without a copy, and results are of the caller's kind.

The rule for results: torch tensors where one of the arrays is torch's; else arrays of the first other library among
them; else NumPy arrays.
"""

from __future__ import annotations

import functools
import importlib
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from weft.runtime.devices import open_device
from weft.runtime.elements import TORCH
from weft.runtime.plain import refused

#: by the typestr of the CUDA array interface, without its byte order
_ELEMENTS = {"b1": "i1", "i1": "i8", "i4": "i32", "i8": "i64", "f2": "fp16", "f4": "fp32"}
_BYTES = {"i1": 1, "i8": 1, "i32": 4, "i64": 8, "fp16": 2, "bf16": 2, "fp32": 4}
_CPU, _CUDA = 1, 2  # DLPack's numbers of devices


@functools.cache
def _is_foreign(kind: type) -> bool:
    module = kind.__module__.partition(".")[0]
    if module in ("numpy", "torch", "builtins") or hasattr(kind, "data_ptr") or hasattr(kind, "ctypes"):
        return False
    return hasattr(kind, "__dlpack__") or hasattr(kind, "__cuda_array_interface__")


def is_foreign(value: Any) -> bool:
    """Whether a value is an array that is neither NumPy's nor torch's."""
    kind: type = type(value)
    return _is_foreign(kind)


class _Element:
    """What stands for a dtype; it is spelled as torch's."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __str__(self) -> str:
        return f"torch.{TORCH[self.name]}"


_elements = {name: _Element(name) for name in _BYTES}


class _Place:
    """A CUDA device, as torch's tensors name theirs."""

    type = "cuda"

    def __init__(self, index: int) -> None:
        self.index = index

    def __str__(self) -> str:
        return f"cuda:{self.index}"


class DeviceArray:
    """An array in a GPU's memory, of whatever library: what launches ask of a tensor, by torch's names."""

    is_cuda, is_cpu = True, False

    def __init__(self, owner: Any, facts: dict[str, Any], element: str, ordinal: int) -> None:
        self.owner = owner
        self.shape = tuple(facts["shape"])
        self.dtype = _elements[element]
        self.device = _Place(ordinal)
        self._address: int = facts["data"][0]
        self.read_only = bool(facts["data"][1])
        size, strides = _BYTES[element], facts.get("strides")
        self._strides = tuple(each // size for each in strides) if strides else _contiguous(self.shape)
        #: a CUstream on which the array is ready, as a number; 0, the default one, where that is said of none
        self.weft_stream: int = {1: 0}.get(facts.get("stream") or 0, facts.get("stream") or 0)

    @classmethod
    def over(cls, owner: Any, address: int, shape: Sequence[int], element: str, ordinal: int) -> DeviceArray:
        """An array whose elements lie one after another at an address, in memory that ``owner`` holds."""
        return cls(owner, {"shape": shape, "data": (address, False)}, element, ordinal)

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.shape)

    def dim(self) -> int:
        """The number of axes."""
        return len(self.shape)

    def data_ptr(self) -> int:
        """The address of the first element."""
        return self._address

    def element_size(self) -> int:
        """The bytes of an element."""
        return _BYTES[self.dtype.name]

    def stride(self, axis: int | None = None) -> Any:
        """The strides in elements, or that of one axis."""
        return self._strides if axis is None else self._strides[axis]

    def get_device(self) -> int:
        """The device's number."""
        return self.device.index

    def empty(self, kind: str, shape: tuple[int, ...]) -> DeviceArray:
        """A fresh array of the owner's library on the same device. Error where it has no way to make one."""
        make = getattr(self.owner, "__array_namespace__", None)
        library = make() if make else importlib.import_module(type(self.owner).__module__.partition(".")[0])
        if not hasattr(library, "empty") or kind not in _BYTES:
            raise refused(
                f"expected a library that makes arrays of {kind} for results, but '{type(self.owner).__name__}' has "
                "none: give outputs=..., or torch tensors"
            )
        made = adopt("a result", library.empty(shape, dtype=getattr(library, TORCH[kind].replace("bool", "bool_"))))
        assert isinstance(made, DeviceArray)
        return made


def _contiguous(shape: Sequence[int]) -> tuple[int, ...]:
    strides, total = [], 1
    for size in reversed(shape):
        strides.append(total)
        total *= size
    return tuple(reversed(strides))


def adopt(name: str, array: Any) -> Any:
    """An array of another library as one that is taken: of NumPy, of torch, or a DeviceArray, over the same memory.
    Raises weft.runtime.Error, with the name, where it cannot be used where it is."""
    if not is_foreign(array):
        return array
    if hasattr(array, "__cuda_array_interface__"):
        return _on_device(name, array)
    device, _ = array.__dlpack_device__()
    if int(device) == _CUDA:
        return _by_torch(name, array)
    if int(device) != _CPU:
        raise refused(f"'{name}': expected an array on the CPU or a CUDA device, but got one of DLPack's type {device}")
    if "bfloat16" in str(getattr(array, "dtype", "")):
        return _by_torch(name, array)  # NumPy has no such type
    import numpy as np

    return _imported(name, array, np.from_dlpack)


def _imported(name: str, array: Any, read: Callable[[Any], Any]) -> Any:
    try:
        return read(array)
    except (BufferError, RuntimeError, TypeError, ValueError) as error:
        kind = type(array).__name__
        raise refused(f"'{name}': expected an array that can be used where it is, but '{kind}' says: {error}") from None


def _by_torch(name: str, array: Any) -> Any:
    try:
        import torch
    except ImportError:
        what = f"an array of {getattr(array, 'dtype', 'its type')}"
        raise refused(f"'{name}': expected torch to be installed to take {what} with, but it is not") from None
    return _imported(name, array, torch.from_dlpack)


def _on_device(name: str, array: Any) -> DeviceArray:
    facts = array.__cuda_array_interface__
    if facts.get("version", 0) < 2:
        got = facts.get("version")
        raise refused(f"'{name}': expected the CUDA array interface of version 2 or 3, but got {got}")
    if facts.get("mask") is not None:
        raise refused(f"'{name}': expected a plain array, but got a masked one")
    order, element = facts["typestr"][0], _ELEMENTS.get(facts["typestr"][1:])
    if element is None or order == ">":
        wanted = "bool, int8, int32, int64, float16 or float32"
        raise refused(f"'{name}': expected elements of {wanted}, but got the type '{facts['typestr']}'")
    strides = facts.get("strides") or ()
    if any(stride % _BYTES[element] for stride in strides):
        raise refused(f"'{name}': expected strides of whole elements, but got {tuple(strides)} bytes")
    if facts.get("stream") == 0:
        raise refused(f"'{name}': expected a stream of the CUDA array interface, but got 0, which names none")
    return DeviceArray(array, facts, element, _ordinal(array))


def _ordinal(array: Any) -> int:
    """The number of the device; 0 where the array does not say it."""
    if hasattr(array, "__dlpack_device__"):
        return int(array.__dlpack_device__()[1])
    device = getattr(array, "device", 0)
    return int(getattr(device, "ordinal", getattr(device, "id", device if isinstance(device, int) else 0)))


def adopted(named: Iterable[tuple[str, Any]]) -> tuple[list[tuple[str, Any]], Any]:
    """Arrays by name as they are taken, and one of the other library that results are to be of; None where they are
    torch's or NumPy's. Arrays that are ready on different streams are waited for, so that one stream serves all."""
    named = list(named)
    others = [array for _, array in named if is_foreign(array)]
    if not others:
        return named, None
    found = [(name, adopt(name, array)) for name, array in named]
    _agree([array for _, array in found if isinstance(array, DeviceArray)])
    torch = sys.modules.get("torch")
    if torch is not None and any(isinstance(array, torch.Tensor) for _, array in named):
        return found, None
    return found, others[0]


def _agree(arrays: Sequence[DeviceArray]) -> None:
    for array in arrays[1:]:
        if array.weft_stream != arrays[0].weft_stream:
            open_device(str(array.device)).synchronize(array.weft_stream)
            array.weft_stream = arrays[0].weft_stream


def must_be_writable(named: Iterable[tuple[str, Any]]) -> None:
    """Refuse arrays for results that are lent to be read."""
    for name, array in named:
        flags = getattr(array, "flags", None)
        if getattr(array, "read_only", False) or getattr(flags, "writeable", True) is False:
            raise refused(f"'{name}': expected an array for results, but got a read-only one")


def given_back(results: Any, home: Any) -> Any:
    """Results, which may lie in containers, as arrays of the library that ``home`` is an array of."""
    if home is None:
        return results
    if isinstance(results, dict):
        return {name: given_back(each, home) for name, each in results.items()}
    if isinstance(results, (tuple, list)):
        values = [given_back(each, home) for each in results]
        return type(results)(*values) if hasattr(results, "_fields") else type(results)(values)
    if isinstance(results, DeviceArray):
        return results.owner
    if is_foreign(results) or not hasattr(results, "__dlpack__"):
        return results
    return _from_dlpack(home)(results)


def _from_dlpack(home: Any) -> Callable[[Any], Any]:
    """How the library of an array reads others; one that has no way to is given NumPy's and torch's as they are."""
    make = getattr(home, "__array_namespace__", None)
    library = make() if make else sys.modules.get(type(home).__module__.partition(".")[0])
    found: Callable[[Any], Any] = getattr(library, "from_dlpack", lambda array: array)
    return found
