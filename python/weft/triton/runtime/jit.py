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
    """A tensor reread under another element type of as many bits."""

    def __init__(self, base: Any, dtype: Any):
        self.base, self.dtype = base, dtype


def reinterpret(tensor: Any, dtype: Any) -> Any:
    """A tensor of torch with the same memory and another element type of as many bits; ``dtype`` is the language's."""
    import torch

    if isinstance(dtype, pointer_type):
        dtype = dtype.element_ty
    if short_name(dtype) not in TORCH:
        raise TypeError(
            f"expected a type that torch has, but got {dtype}; pass the tensor as it is, and in the kernel "
            f"cast its pointer to tl.pointer_type(tl.float8e4b15)"
        )
    return tensor.view(getattr(torch, TORCH[short_name(dtype)]))


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
