# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""``triton.language.core``: the language's names, and those of Triton's that only name a type or a constant."""

import builtins
from typing import Any

from weft.language import *  # noqa: F403
from weft.language import KernelError, constexpr, dtype, pointer_type
from weft.language.emit import builtin as builtin
from weft.language.shapes import MAX_ELEMENTS
from weft.language.types import get_int_dtype as _get_int_dtype
from weft.language.types import unwrap

from .loads import load as load
from .polling import atomic_poll as atomic_poll
from .types import *  # noqa: F403

TRITON_MAX_TENSOR_NUMEL = MAX_ELEMENTS
CONSTEXPR_0 = constexpr(0)


def get_int_dtype(bitwidth: int, signed: bool) -> dtype:
    """The integer type of a width of 1, 8, 16, 32 or 64 bits."""
    return _get_int_dtype(bitwidth, signed)


vars(get_int_dtype)["__weft_constexpr__"] = True


class const:
    """As an annotation of a kernel's parameter: a pointer that nothing is stored through; a store is refused."""

    __weft_const__ = True


class _Foreign:
    """A type of other vendors' machines: a name to choose between, refused where a type is wanted."""

    __weft_constexpr__ = True

    def __init__(self, name: str):
        self.name = name

    def __repr__(self) -> str:
        return f"{self.name}, which NVIDIA's machines have not"


float8e4b8, float8e5b16 = _Foreign("fp8e4b8"), _Foreign("fp8e5b16")


class void:
    """The type of nothing."""


@builtin
def condition(arg1: Any, disable_licm: bool = False) -> Any:
    """The condition of a ``while``; the advice has no effect."""
    return arg1


@builtin
def tuple(items: Any = ()) -> Any:
    """A tuple of values. In a kernel ``isinstance(x, tl.tuple)`` asks whether ``x`` is one."""
    return builtins.tuple(items)


vars(tuple)["__weft_instances__"] = (builtins.tuple,)

slice = builtins.slice

#: as Triton's own modules spell it
_aggregate = aggregate  # noqa: F405
#: what a function of the language raises
TritonError = KernelError
PropagateNan = PropagateNan  # noqa: F405


def _unwrap_if_constexpr(o: Any) -> Any:
    """A constant's value; anything else as it is."""
    return unwrap(o)


vars(_unwrap_if_constexpr)["__weft_constexpr__"] = True


def is_pointer(value: Any) -> bool:
    """Whether a type is one of pointers."""
    return isinstance(value, pointer_type)
