# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""``triton.runtime.jit``: kernels, and what stands for a tensor in a call."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from weft.compiler.jit import JITFunction, jit
from weft.compiler.launchable import Launchable as KernelInterface
from weft.compiler.signature import short_name, type_named
from weft.language import constexpr_function, pointer_type
from weft.runtime.elements import TORCH


class MockTensor:
    """Stands for an aligned tensor of a type where a kernel is compiled ahead: ``kernel.warmup(MockTensor(...))``."""

    @staticmethod
    def wrap_dtype(value: Any) -> Any:
        """What ``warmup`` takes for a torch dtype: the type of the language; anything else as it is."""
        names = {theirs: ours for ours, theirs in TORCH.items()}
        spelled = str(value).removeprefix("torch.")
        known = type(value).__module__ == "torch" and type(value).__name__ == "dtype" and spelled in names
        return type_named(names[spelled]) if known else value


class TensorWrapper:
    """A tensor of torch whose elements kernels read as ones of another type of as many bits; ``dtype`` is the
    language's, or torch's."""

    def __init__(self, base: Any, dtype: Any):
        self.base, self.dtype = base, dtype
        self.data, self.device, self.shape = base.data, base.device, base.shape

    def data_ptr(self) -> int:
        """The address of the first element."""
        return int(self.base.data_ptr())

    def stride(self, *axis: int) -> Any:
        """The strides, or that of an axis."""
        return self.base.stride(*axis)

    def element_size(self) -> int:
        """The bytes of an element."""
        return int(self.base.element_size())

    def cpu(self) -> TensorWrapper:
        """The same on the host."""
        return self.to("cpu")

    def copy_(self, other: TensorWrapper) -> None:
        """Take the elements of another."""
        self.base.copy_(other.base)

    def clone(self) -> TensorWrapper:
        """A copy."""
        return TensorWrapper(self.base.clone(), self.dtype)

    def to(self, device: Any) -> TensorWrapper:
        """The same on a device."""
        return TensorWrapper(self.base.to(device), self.dtype)

    def new_empty(self, sizes: Any) -> TensorWrapper:
        """Another of some sizes, without values."""
        return TensorWrapper(self.base.new_empty(sizes), self.dtype)


def reinterpret(tensor: Any, dtype: Any) -> Any:
    """A tensor of torch with the same memory and another element type of as many bits, the language's or torch's: a
    tensor where torch has the type, else a wrapper that kernels take."""
    import torch

    base = tensor.base if isinstance(tensor, TensorWrapper) else tensor
    if isinstance(dtype, pointer_type):
        dtype = dtype.element_ty
    if isinstance(dtype, torch.dtype):
        return base.view(dtype)
    name = TORCH.get(short_name(dtype))
    return TensorWrapper(base, dtype) if name is None else base.view(getattr(torch, name))


def must_use_result(x: Any, s: bool | str = True) -> Any:
    """The function as it is; given a message, what decorates one. Triton refuses kernels that leave its result."""
    return (lambda fn: fn) if isinstance(x, str) else x


def set_allocator(allocator: Callable[..., Any]) -> None:
    """Accepted, without effect: Weft's kernels need no memory besides their arguments'."""


__all__ = [
    "JITFunction",
    "KernelInterface",
    "MockTensor",
    "TensorWrapper",
    "constexpr_function",
    "jit",
    "must_use_result",
    "reinterpret",
    "set_allocator",
]
