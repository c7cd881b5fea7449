# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Concrete arrays: what counts as one, what of them a compiled form depends on, and whether kernels can read them."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ..compiler import places
from ..compiler.diagnostics import CompilationError
from ..compiler.specialise import array_type
from ..language.types import dtype
from ..runtime.exchange import is_foreign
from ..runtime.plain import described, differentiated, dual, negated, objection, promised
from .dtypes import NAMES, dtype_of
from .overloads import Overloads


def is_array(value: Any) -> bool:
    """Whether a value is a concrete array: NumPy's, torch's, or like them. (A number of NumPy's is none.)"""
    kind = type(value)  # by type: objects may make up attributes when asked
    if is_foreign(value):
        return True
    if isinstance(value, Overloads) or not hasattr(kind, "dtype") or not hasattr(kind, "shape"):
        return False
    if hasattr(kind, "is_nested") and value.is_nested:  # which has no shape
        return True
    shape = value.shape
    return isinstance(shape, tuple) and (len(shape) > 0 or hasattr(kind, "data_ptr") or hasattr(kind, "__setitem__"))


@dataclass(frozen=True)
class Facts:
    """What the compiled form depends on of an array: its type, its sizes, whether wide accesses are possible."""

    element: dtype
    shape: tuple[int, ...]
    aligned: bool
    constant: bool = False


def facts_of(array: Any, selective: bool = False, name: str = "", declared: dtype | None = None) -> Facts:
    """The facts of a NumPy array or a torch tensor; of one of NumPy with the bits of the element type that is
    ``declared``, of that. CompilationError where programs take no such array, with the argument's name."""
    what = f"'{name}'" if name else "an array"
    try:
        element = declared if declared is not None and _is_bits(array, declared) else dtype_of(array_type(array.dtype))
    except (TypeError, CompilationError):
        given = str(array.dtype).removeprefix("torch.")
        raise places.error(f"expected {what} of {', '.join(NAMES)}, but got {given}", _converted(array)) from None
    if element.is_fp8() and getattr(array, "requires_grad", False):
        raise places.error(f"expected {what} of {element} that asks for no gradient, but got requires_grad=True")
    if described(array) or promised(array):
        return _promised(array, element, selective)
    if not hasattr(array, "data_ptr") and not hasattr(array, "ctypes"):
        raise places.error(f"expected a NumPy array or a torch tensor, but got '{type(array).__name__}'")
    shape = tuple(int(size) for size in array.shape)
    aligned = is_aligned(array)
    constant = selective and element.is_floating() and not getattr(array, "requires_grad", False) and not dual(array)
    return Facts(element, shape, aligned, constant)


def _converted(array: Any) -> str:
    """What makes an array of a type that programs lack one of theirs."""
    if hasattr(array, "data_ptr"):
        return "use .to(torch.float32), or .to(torch.int32) for indices"
    return "use .astype(numpy.float32), or .astype(numpy.int32) for indices: of the machine's own byte order"


def _is_bits(array: Any, declared: dtype) -> bool:
    """Whether an array of NumPy's own integers has the bits of a type that NumPy lacks."""
    bits = {"bf16": "uint16", "fp8e4nv": "uint8", "fp8e5": "uint8"}.get(declared.name)
    return bits is not None and hasattr(array, "ctypes") and str(array.dtype) == bits


def _lies_as_torchs(array: Any) -> bool:
    """Whether an array of NumPy's lies in memory as tensors of torch may: at whole elements, and none before another
    that follows it."""
    return array.flags.aligned and all(stride >= 0 and stride % array.itemsize == 0 for stride in array.strides)


def has_rows(array: Any) -> bool:
    """Whether the last axis of an array has no gaps; of any other array, and of one that lies as no tensor of torch
    may, kernels read a contiguous copy."""
    if not hasattr(array, "data_ptr") and not _lies_as_torchs(array):
        return False
    if array.ndim == 0 or array.shape[-1] == 1:
        return True
    if hasattr(array, "data_ptr"):
        return bool(array.stride(-1) == 1)
    return bool(array.strides[-1] == array.itemsize)


def is_aligned(array: Any) -> bool:
    """Whether every row of an array, as kernels read it, starts at a multiple of 16 bytes, so that wide accesses are
    possible."""
    if hasattr(array, "data_ptr"):
        address, size = array.data_ptr(), array.element_size()
        strides = [stride * size for stride in array.stride()]
    else:
        address, size, strides = array.ctypes.data, array.itemsize, array.strides
    if not has_rows(array):
        return math.prod(array.shape[-1:]) * size % 16 == 0 or all(extent <= 1 for extent in array.shape[:-1])
    if address % 16:
        return False
    return all(stride % 16 == 0 or extent <= 1 for stride, extent in zip(strides[:-1], array.shape, strict=False))


def _promised(array: Any, element: dtype, selective: bool) -> Facts:
    """The facts of a tensor that stands for others: those of a contiguous one, which its operator makes of any. Sizes
    may be symbols of torch's."""
    import torch
    from torch.fx.experimental.symbolic_shapes import statically_known_true

    shape = tuple(array.shape)
    aligned = len(shape) > 0 and statically_known_true(shape[-1] * element.itemsize % 16 == 0)
    transformed = torch._C._functorch.maybe_current_level() is not None  # whose inner tensors say what has a gradient
    constant = selective and element.is_floating() and not array.requires_grad and not transformed
    return Facts(element, shape, aligned, constant)


def readable(arrays: Sequence[tuple[str, Any]], differentiable: bool = False) -> list[tuple[str, Any]]:
    """A call's arrays by name, as kernels read them. CompilationError where one of them has other values than its
    memory holds, or a tangent and the call is not ``differentiable``."""
    without_data = all(promised(array) for _, array in arrays)
    for name, array in arrays:
        if not described(array) and not without_data and (wrong := objection(array, differentiable)):
            raise places.error(wrong.text(f"'{name}'"), wrong.remedy)
    return [(name, array.resolve_neg() if negated(array) else array) for name, array in arrays]


def wants_gradients(arrays: Sequence[Any]) -> bool:
    """Whether a call on these arrays is to be differentiable. A transform's integers ask for no gradients."""
    asking = (getattr(x, "requires_grad", False) or (differentiated(x) and x.is_floating_point()) for x in arrays)
    if not any(asking):
        return False
    import torch

    return torch.is_grad_enabled()


def must_be_deterministic() -> bool:
    """Whether torch.use_deterministic_algorithms(True) holds; where it only warns, what a program says counts."""
    torch = sys.modules.get("torch")
    if torch is None or not torch.are_deterministic_algorithms_enabled():
        return False
    return not torch.is_deterministic_algorithms_warn_only_enabled()
