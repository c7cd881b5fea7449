# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Whole tensors of a program being traced. Operators work on every element, with NumPy's broadcasting; tensors of fewer
key heads meet those of more by repeating each head over its group.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

from ..compiler import places
from ..language.types import dtype, float32, int1, int32
from . import graph, scalars
from .captures import capture
from .dtypes import dtype_of
from .facts import is_array
from .graph import TensorType, Value, agreeing
from .overloads import Overloads
from .scalars import Scalar
from .sizes import Mismatch, Size, group, larger, unify


class Unapplied:
    """What stands for a matrix over the sequence until it is applied to values: it has no numbers of its own."""


class Tensor(Overloads):
    """A tensor that the program will compute on: ``shape`` (sizes; the head size is an int), ``dtype``, operators,
    ``.to(dtype)``, and in a score_mod or a mask ``t[b, h]``, one element.
    """

    __slots__ = ("value",)
    __hash__ = None  # type: ignore[assignment]
    _what = "a tensor"

    def __init__(self, value: Value):
        self.value = value

    @property
    def type(self) -> TensorType:
        """The sizes, and the type of an element."""
        assert isinstance(self.value.type, TensorType)
        return self.value.type

    @property
    def dtype(self) -> dtype:
        """The type of an element."""
        return self.type.element

    @property
    def sizes(self) -> tuple[Size, ...]:
        """The sizes, as symbols where they are not fixed."""
        return self.type.sizes

    @property
    def shape(self) -> tuple[Size | int, ...]:
        """The sizes: integers where they are fixed, symbols otherwise; int() of a symbol fixes it for this compiled
        form."""
        return tuple(size if size.static is None else size.static for size in self.sizes)

    @property
    def ndim(self) -> int:
        """How many axes there are."""
        return len(self.sizes)

    def dim(self) -> int:
        """How many axes there are, as torch asks it."""
        return self.ndim

    def size(self, axis: int | None = None) -> Any:
        """The sizes, or that of one axis."""
        return self.shape if axis is None else self.shape[axis]

    def __repr__(self) -> str:
        return f"<tensor [{', '.join(map(repr, self.sizes))}] {self.dtype}>"

    def __len__(self) -> int:
        return int(self.sizes[0])

    def __bool__(self) -> bool:
        raise places.error("expected a truth that is known now, but got a tensor", "use weft.where(condition, a, b)")

    def __iter__(self) -> Any:
        raise places.error("expected a sequence, but got a tensor of the program")

    def __getitem__(self, index: Any) -> Scalar:
        return element(self, index if isinstance(index, tuple) else (index,))

    def to(self, type: Any) -> Tensor:
        """The same numbers as another type, rounded to nearest even; None, as the device of a program's tensors is, is
        their own."""
        if type is None:
            return self
        wanted = dtype_of(type)
        if wanted == self.dtype:
            return self
        if wanted.is_fp8():
            raise places.error(f"expected a type of 16 bits or more, but got {wanted}: programs read it and write none")
        return map_tensors(lambda x: x, self, to=wanted)

    def float(self) -> Tensor:
        """The same numbers as float32."""
        return self.to(float32)

    def __add__(self, other: Any) -> Tensor:
        return map_tensors(operator.add, self, other)

    def __radd__(self, other: Any) -> Tensor:
        return map_tensors(operator.add, other, self)

    def __sub__(self, other: Any) -> Tensor:
        return map_tensors(operator.sub, self, other)

    def __rsub__(self, other: Any) -> Tensor:
        return map_tensors(operator.sub, other, self)

    def __mul__(self, other: Any) -> Tensor:
        return map_tensors(operator.mul, self, other)

    def __rmul__(self, other: Any) -> Tensor:
        return map_tensors(operator.mul, other, self)

    def __truediv__(self, other: Any) -> Tensor:
        return map_tensors(operator.truediv, self, other)

    def __rtruediv__(self, other: Any) -> Tensor:
        return map_tensors(operator.truediv, other, self)

    def __pow__(self, other: Any) -> Tensor:
        return map_tensors(scalars.power, self, other)

    def __rpow__(self, other: Any) -> Tensor:
        return map_tensors(scalars.power, other, self)

    def __floordiv__(self, other: Any) -> Tensor:
        return map_tensors(operator.floordiv, self, other)

    def __rfloordiv__(self, other: Any) -> Tensor:
        return map_tensors(operator.floordiv, other, self)

    def __mod__(self, other: Any) -> Tensor:
        return map_tensors(operator.mod, self, other)

    def __rmod__(self, other: Any) -> Tensor:
        return map_tensors(operator.mod, other, self)

    def __and__(self, other: Any) -> Tensor:
        return map_tensors(operator.and_, self, other)

    def __or__(self, other: Any) -> Tensor:
        return map_tensors(operator.or_, self, other)

    def __xor__(self, other: Any) -> Tensor:
        return map_tensors(operator.xor, self, other)

    __rand__, __ror__, __rxor__ = __and__, __or__, __xor__

    def __lshift__(self, other: Any) -> Tensor:
        return map_tensors(operator.lshift, self, other)

    def __rlshift__(self, other: Any) -> Tensor:
        return map_tensors(operator.lshift, other, self)

    def __rshift__(self, other: Any) -> Tensor:
        return map_tensors(operator.rshift, self, other)

    def __rrshift__(self, other: Any) -> Tensor:
        return map_tensors(operator.rshift, other, self)

    def __neg__(self) -> Tensor:
        return map_tensors(operator.neg, self)

    def __abs__(self) -> Tensor:
        return map_tensors(operator.abs, self)

    def __lt__(self, other: Any) -> Tensor:
        return map_tensors(operator.lt, self, other)

    def __le__(self, other: Any) -> Tensor:
        return map_tensors(operator.le, self, other)

    def __gt__(self, other: Any) -> Tensor:
        return map_tensors(operator.gt, self, other)

    def __ge__(self, other: Any) -> Tensor:
        return map_tensors(operator.ge, self, other)

    def __eq__(self, other: object) -> Any:
        return map_tensors(operator.eq, self, other)

    def __ne__(self, other: object) -> Any:
        return map_tensors(operator.ne, self, other)

    def __invert__(self) -> Tensor:
        return map_tensors(operator.invert, self)

    def __matmul__(self, other: Any) -> Any:
        raise places.error(
            "expected a mixer on the left of '@', but got a tensor",
            "weft.softmax(q, k) @ v applies attention; a product of matrices is no operation of programs",
        )


def promoted(types: Sequence[dtype]) -> dtype:
    """The type of a real result: that of the operands where they agree, 8-bit floats apart; else f32."""
    floats = {t.name: t for t in types if t.is_floating() and not t.is_fp8()}
    return next(iter(floats.values())) if len(floats) == 1 else float32


def lift(value: Any) -> Any:
    """A concrete array met while tracing as an input of the program; everything else as it is."""
    if isinstance(value, Tensor) or not is_array(value):
        return value
    return Tensor(capture(graph.tracing(), value))


def map_tensors(body: Callable[..., Any], *values: Any, to: dtype | None = None) -> Any:
    """attn.map: ``body`` of every element. ``values`` are tensors, and numbers that the body gets as they are."""
    tracing = graph.tracing()
    if any(isinstance(value, Unapplied) for value in values):
        raise places.error(
            "expected tensors and numbers, but got a mixer, which has no numbers before it is applied",
            "weft.diag(g) @ A gates what a mixer A gives, and x * (A @ v) multiplies it by any tensor",
        )
    if graph.in_region():
        if all(value.ndim == 0 for value in values if isinstance(value, Tensor)):
            return body(*(scalars.scalar(value) if isinstance(value, Tensor) else value for value in values))
        raise places.error(
            "expected scalars in a score_mod, a mask or an elementwise expression, but got a whole tensor",
            "index it, as in bias[b, h, n, m]",
        )
    values = tuple(map(lift, values))
    for value in values:
        if isinstance(value, Tensor):
            scalars.thirty_two_bits(value.dtype)
    tensors: list[Tensor] = []
    for value in values:
        if isinstance(value, Tensor) and not any(value is t for t in tensors):
            tensors.append(value)
    rank = max((tensor.ndim for tensor in tensors), default=0)
    for tensor in tensors:
        if rank >= 4 and tensor.ndim >= 3:  # kernels hold whole rows of such
            with agreeing("expected a tensor whose last size is known"):
                int(tensor.sizes[-1])
    sizes = broadcast([t.sizes for t in tensors])
    with tracing.region([scalars.type_of(t.dtype) for t in tensors]) as region:
        inner = {id(t): Scalar(region.arguments[i]) for i, t in enumerate(tensors)}
        given = scalars.scalar(body(*(inner[id(v)] if isinstance(v, Tensor) else v for v in values)))
        element = to or _element(given, [t.dtype for t in tensors])
        given = _as(given, scalars.type_of(element))
        tracing.add("attn.yield", [given.value])
    operation = tracing.add("attn.map", [t.value for t in tensors], [TensorType(sizes, element)], {}, [region])
    return Tensor(operation.results[0])


def applied(body: Callable[..., Any], *values: Any) -> Any:
    """The body on scalars, or mapped over tensors where there is one among the values."""
    if any(isinstance(value, (Tensor, Unapplied)) for value in values) and not graph.in_region():
        return map_tensors(body, *values)
    return body(*values)


def described(given: Any) -> str:
    """What came in the place of a tensor, in the words of a message: a tensor by its sizes and its elements' type,
    anything else by its class."""
    if not isinstance(given, Tensor):
        return f"'{type(given).__name__}'"
    return f"[{', '.join(str(size if size.value is None else size.value) for size in given.sizes)}] of {given.dtype}"


def four_axes(tensor: Any, what: str) -> None:
    """Refuse what is no tensor [B, H, N, D]; ``what`` begins the message."""
    if not isinstance(tensor, Tensor):
        raise places.error(f"expected {what} to be a tensor, but got '{type(tensor).__name__}'")
    if tensor.ndim != 4:
        raise places.error(f"expected {what} of 4 axes [B, H, N, D], but got {tensor.ndim}")


def _element(result: Scalar, types: Sequence[dtype]) -> dtype:
    return promoted(types) if result.type == scalars.F32 else int1 if result.type == scalars.I1 else int32


def _as(value: Scalar, wanted: str) -> Scalar:
    if value.type == wanted:
        return value
    if wanted == scalars.F32:
        return scalars.real(value)
    return scalars.truth(value) if wanted == scalars.I1 else value.converted(int)


def broadcast(shapes: Sequence[Sequence[Size]]) -> tuple[Size, ...]:
    """The shape that tensors of these shapes have in common, aligned at the last axis."""
    rank = max(map(len, shapes))
    result = []
    for axis in range(rank):
        sizes = [shape[axis - rank + len(shape)] for shape in shapes if axis - rank + len(shape) >= 0]
        heads = rank == 4 and axis == 1
        with agreeing(f"expected shapes that broadcast, but axis {axis} does not"):
            result.append(_common(sizes, heads))
    return tuple(result)


def _common(sizes: Sequence[Size], heads: bool) -> Size:
    """The size of an axis that tensors meet at: 1 broadcasts, and fewer heads repeat."""
    many = [s for s in sizes if s.value != 1]
    if many and len(many) < len(sizes):
        for size in sizes:
            if size.value == 1:
                unify(size, Size(1))
    many = many or list(sizes)
    result = many[0]
    for size in many[1:]:
        if heads and larger(size, result):
            result = size
    for size in many:
        if heads:
            group(result, size)
        else:
            unify(result, size)
    return result


def element(tensor: Tensor, index: Sequence[Any]) -> Scalar:
    """attn.element: one element, in a region of scalars."""
    return scalars.element(tensor.value, index)


__all__ = ["Mismatch", "Tensor", "Unapplied", "broadcast", "element", "is_array", "lift", "map_tensors", "promoted"]
