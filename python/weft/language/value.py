# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""The value of a kernel's variable: a scalar or a block that the program computes when it runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from . import emit, errors
from .types import block_type, dtype


class tensor:
    """A scalar or a block of numbers or pointers.

    ``x.dtype`` is the type of one element, ``x.shape`` the sizes (``()`` for a scalar), ``x.type`` both. Operators and
    methods are those of
    the language: ``x + y``, ``x[:, None]``, ``x.to(wl.float16)``, ``x.T``.
    """

    __slots__ = ("_handle", "constant", "type")
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, handle: Any, value_type: Any, constant: Any = None):
        self._handle = handle
        self.type: dtype | block_type = value_type
        # The value, where it is a scalar known at compile time; it becomes IR where it is used.
        self.constant = constant

    @property
    def handle(self) -> Any:
        """The native value."""
        if self._handle is None:
            return emit.current().constant(self.constant, self.type)
        return self._handle

    @property
    def is_constant(self) -> bool:
        """Whether this is a number that is known now: ``constant``, of which no IR has been made."""
        return self._handle is None

    @property
    def dtype(self) -> dtype:
        """The type of one element."""
        return self.type.scalar

    @property
    def shape(self) -> tuple[int, ...]:
        """The sizes; ``()`` for a scalar."""
        return self.type.shape

    @property
    def numel(self) -> int:
        """How many elements there are."""
        return self.type.numel if isinstance(self.type, block_type) else 1

    if TYPE_CHECKING:  # what the other files of the language attach
        T: tensor

        def __getattr__(self, name: str) -> Any: ...
        def __getitem__(self, index: Any) -> tensor: ...
        def __add__(self, other: Any) -> tensor: ...
        def __radd__(self, other: Any) -> tensor: ...
        def __sub__(self, other: Any) -> tensor: ...
        def __mul__(self, other: Any) -> tensor: ...
        def __truediv__(self, other: Any) -> tensor: ...
        def __rtruediv__(self, other: Any) -> tensor: ...
        def __floordiv__(self, other: Any) -> tensor: ...
        def __rshift__(self, other: Any) -> tensor: ...
        def __and__(self, other: Any) -> tensor: ...
        def __or__(self, other: Any) -> tensor: ...
        def __rmul__(self, other: Any) -> tensor: ...
        def __rsub__(self, other: Any) -> tensor: ...
        def __lshift__(self, other: Any) -> tensor: ...
        def __lt__(self, other: Any) -> tensor: ...
        def __le__(self, other: Any) -> tensor: ...
        def __gt__(self, other: Any) -> tensor: ...
        def __ge__(self, other: Any) -> tensor: ...
        def __eq__(self, other: Any) -> tensor: ...  # type: ignore[override]
        def __ne__(self, other: Any) -> tensor: ...  # type: ignore[override]
        def __neg__(self) -> tensor: ...
        def __invert__(self) -> tensor: ...

    def __repr__(self) -> str:
        return str(self.type)

    def __bool__(self) -> bool:
        raise errors.tensor_as_python_value("bool", self)


def attach(name: str, attribute: Any) -> None:
    """Give tensors an attribute that another file of the language defines."""
    setattr(tensor, name, attribute)


def member(function: Callable[..., Any]) -> Callable[..., Any]:
    """Make a language function a method of tensors too; its first argument is the tensor."""
    attach(function.__name__, function)
    return function
