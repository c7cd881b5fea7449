# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Indices of all pairs, for masks that are evaluated on the host: arrays of NumPy's that torch's functions take too."""

from __future__ import annotations

import contextlib
import contextvars
import functools
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np

_nearest = contextvars.ContextVar("nearest", default=True)


class Indices(np.ndarray):
    """An array of indices, or what was computed from them. ``whole`` ones are the positions of an axis themselves."""

    whole = False

    @classmethod
    def __torch_function__(cls, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return _called(function, args, kwargs or {})

    def __getitem__(self, index: Any) -> Any:
        return super().__getitem__(_inside(index, self.shape))

    # As kernels divide integers: by 1 where they would by 0.
    def __floordiv__(self, other: Any) -> Any:
        return super().__floordiv__(_divisor(other, self))

    def __rfloordiv__(self, other: Any) -> Any:
        return super().__rfloordiv__(other) if _real(other, self) else np.floor_divide(other, _divisor(self, self))

    def __mod__(self, other: Any) -> Any:
        return super().__mod__(_divisor(other, self))

    def __rmod__(self, other: Any) -> Any:
        return super().__rmod__(other) if _real(other, self) else np.remainder(other, _divisor(self, self))

    def __getattr__(self, name: str) -> Any:
        torch = sys.modules.get("torch")
        if torch is None or name.startswith("_") or not hasattr(torch.Tensor, name):
            raise AttributeError(f"'{type(self).__name__}' has no attribute '{name}'")
        found = getattr(torch.Tensor, name)
        if not callable(found):
            return getattr(_tensor(self, None), name)
        return lambda *args, **keywords: _called(found, (self, *args), keywords)


def _real(a: Any, b: Any) -> bool:
    return "f" in (np.asarray(a).dtype.kind, np.asarray(b).dtype.kind)


def _divisor(divisor: Any, dividend: Any) -> Any:
    """What an integer is divided by."""
    if _real(divisor, dividend) or not isinstance(divisor, np.ndarray):
        return divisor
    return np.where(np.asarray(divisor) == 0, 1, np.asarray(divisor)).astype(divisor.dtype)


def _inside(index: Any, shape: tuple[int, ...]) -> Any:
    """An index of an array of such a shape, as kernels read elements: what is computed is the nearest one inside, and
    positions repeat on an axis of 1. Numbers of Python's count from the end where they are negative."""
    places = index if isinstance(index, tuple) else (index,)
    known = all(isinstance(each, (int, np.integer, np.ndarray)) or hasattr(each, "clamp") for each in places)
    if not _nearest.get() or not known or len(places) > len(shape):
        return index
    return tuple(_moved_inside(each, size) for each, size in zip(places, shape, strict=False))


def _moved_inside(place: Any, size: int) -> Any:
    most = max(size - 1, 0)
    if not isinstance(place, np.ndarray):
        integers = hasattr(place, "clamp") and "int" in str(place.dtype)
        return place.clamp(0, most) if integers else place
    if place.dtype.kind not in "iu":
        return place
    if isinstance(place, Indices) and place.whole and size != 1:
        return place  # as long as the axis, or an error says so
    return np.clip(np.asarray(place), 0, most)


def indices(array: Any, whole: bool = False) -> Any:
    """An array as one that torch's functions take."""
    made = np.asarray(array).view(Indices)
    made.whole = whole
    return made


def _tensor(value: Any, device: Any) -> Any:
    import torch

    if isinstance(value, (tuple, list)):
        return type(value)(_tensor(each, device) for each in value)
    return torch.from_numpy(np.array(value)).to(device) if isinstance(value, np.ndarray) else value


def _called(function: Any, args: Any, keywords: Any) -> Any:
    """What torch's function gives, as an array of NumPy's; it runs on the device of its tensors."""
    import torch

    if function is torch.Tensor.__getitem__:
        args = (args[0], _inside(args[1], tuple(args[0].shape)))
    device = next((each.device for each in args if isinstance(each, torch.Tensor)), None)
    with torch._C.DisableTorchFunction():
        named = {name: _tensor(each, device) for name, each in (keywords or {}).items()}
        found = function(*(_tensor(each, device) for each in args), **named)
        if not isinstance(found, torch.Tensor):
            return found
        found = found.detach().cpu()
        return indices(found.float() if found.dtype == torch.bfloat16 else found)


@functools.cache
def _mode() -> Any:
    import torch

    class Host(torch.overrides.TorchFunctionMode):
        """torch's functions of tensors and of indices together."""

        def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            if any(map(_concerns, (*args, *(kwargs or {}).values()))):
                return _called(function, args, kwargs)
            return function(*args, **(kwargs or {}))

    return Host


def _concerns(value: Any) -> bool:
    return any(map(_concerns, value)) if isinstance(value, (tuple, list)) else isinstance(value, Indices)


@contextlib.contextmanager
def on_host(as_torch: bool = False) -> Iterator[None]:
    """A ``with`` in which torch's tensors are indexed by arrays of indices; what these are outside of an array,
    ``as_torch`` has it or as kernels do."""
    token = _nearest.set(not as_torch)
    try:
        with _mode()() if "torch" in sys.modules else contextlib.nullcontext():
            yield
    finally:
        _nearest.reset(token)
