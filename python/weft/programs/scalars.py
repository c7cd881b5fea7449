# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Scalars of a score_mod, a mask or an elementwise expression: Python's operators on them become arith operations of
the region being traced. Reals are f32, integers i32 (indices), truths i1.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from numbers import Integral
from typing import Any

from ..compiler import places
from ..language.types import dtype
from . import graph, static
from .captures import capture
from .facts import is_array
from .graph import TensorType, Value, agreeing
from .overloads import Overloads
from .sizes import Requirement, Size, spell, unify

F32, I32, I1 = "f32", "i32", "i1"
_ORDER = {I1: 0, I32: 1, F32: 2}
POSITIONS, NUMBERS = 2**30, 2**31
"""What positions and sizes are below, and integers that are not negative: 32 bits wrap."""


class Scalar(Overloads):
    """A number that the kernel computes for each element.

    ``below`` bounds an integer that is known not to be negative: it is one of 0 to ``below`` - 1. ``extent`` says that
    it runs over the positions of an axis.
    """

    __slots__ = ("below", "extent", "value")
    _what = "a scalar"
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, value: Value, below: int | None = None, extent: Size | None = None):
        self.value, self.below, self.extent = value, below, extent

    @property
    def type(self) -> str:
        """ "f32", "i32" or "i1"."""
        return str(self.value.type)

    def __repr__(self) -> str:
        return f"<scalar {self.type}>"

    def __bool__(self) -> bool:
        raise places.error(
            "expected a number that is known now, but got one that the kernel computes",
            "use weft.where(condition, a, b) in the place of 'if', and & | ~ in the place of 'and', 'or', 'not'",
        )

    def __float__(self) -> float:
        raise places.error(
            "expected a number that is known now, but got one that the kernel computes",
            "weft.exp, weft.maximum, x // 1 and the like compute with such ones",
        )

    __int__ = __index__ = __float__

    def __round__(self, digits: Any = None) -> Any:
        return self.__float__()

    __floor__ = __ceil__ = __trunc__ = __float__

    def __add__(self, other: Any) -> Scalar:
        return binary("add", self, other)

    def __radd__(self, other: Any) -> Scalar:
        return binary("add", other, self)

    def __sub__(self, other: Any) -> Scalar:
        return binary("sub", self, other)

    def __rsub__(self, other: Any) -> Scalar:
        return binary("sub", other, self)

    def __mul__(self, other: Any) -> Scalar:
        return binary("mul", self, other)

    def __rmul__(self, other: Any) -> Scalar:
        return binary("mul", other, self)

    def __truediv__(self, other: Any) -> Scalar:
        return binary("div", real(self), other)

    def __rtruediv__(self, other: Any) -> Scalar:
        return binary("div", other, real(self))

    def __floordiv__(self, other: Any) -> Scalar:
        return quotient(self, other)

    def __rpow__(self, other: Any) -> Scalar:
        return power(other, self)

    def __rfloordiv__(self, other: Any) -> Scalar:
        return quotient(other, self)

    def __mod__(self, other: Any) -> Scalar:
        return remainder(self, other)

    def __rmod__(self, other: Any) -> Scalar:
        return remainder(other, self)

    def __neg__(self) -> Scalar:
        return Scalar(_op("arith.negf", [self], F32)) if self.type == F32 else binary("sub", 0, self)

    def __pos__(self) -> Scalar:
        return self

    def __abs__(self) -> Scalar:
        return maximum(self, -self) if self.type == I32 else Scalar(_op("math.absf", [real(self)], F32))

    def __pow__(self, other: Any) -> Scalar:
        return power(self, other)

    def __lt__(self, other: Any) -> Scalar:
        return compare("lt", self, other)

    def __le__(self, other: Any) -> Scalar:
        return compare("le", self, other)

    def __gt__(self, other: Any) -> Scalar:
        return compare("gt", self, other)

    def __ge__(self, other: Any) -> Scalar:
        return compare("ge", self, other)

    def __eq__(self, other: object) -> Any:
        return compare("eq", self, other)

    def __ne__(self, other: object) -> Any:
        return compare("ne", self, other)

    def __and__(self, other: Any) -> Scalar:
        return _bits("arith.andi", self, other)

    def __or__(self, other: Any) -> Scalar:
        return _bits("arith.ori", self, other)

    def __xor__(self, other: Any) -> Scalar:
        return _bits("arith.xori", self, other)

    __rand__, __ror__, __rxor__ = __and__, __or__, __xor__

    def __lshift__(self, other: Any) -> Scalar:
        return shifted(self, other, left=True)

    def __rlshift__(self, other: Any) -> Scalar:
        return shifted(other, self, left=True)

    def __rshift__(self, other: Any) -> Scalar:
        return shifted(self, other, left=False)

    def __rrshift__(self, other: Any) -> Scalar:
        return shifted(other, self, left=False)

    def __invert__(self) -> Scalar:
        return _bits("arith.xori", self, True if self.type == I1 else -1)

    def converted(self, kind: Any) -> Scalar:
        """This as another kind of number: float, int or bool, or None, which is none other."""
        if kind is float:
            return real(self)
        if kind is int:
            return self if self.type == I32 else _integer(self)
        return self if kind is None else truth(self)


def _op(name: str, operands: Sequence[Scalar], result: str, attributes: dict[str, Any] | None = None) -> Value:
    return graph.tracing().one(name, [o.value for o in operands], result, attributes)


def _bound(a: Scalar, b: Scalar, largest: Callable[[int, int], int]) -> int | None:
    """What a result is below, by how large it is of the largest operands; None where one may be negative or the result
    wraps."""
    if a.below is None or b.below is None:
        return None
    most = largest(a.below - 1, b.below - 1)
    return most + 1 if most < NUMBERS else None


def constant(value: bool | int | float) -> Scalar:
    """A constant: a truth as i1, an integer as i32 (CompilationError where it has more bits), a real as f32."""
    if isinstance(value, bool):
        return Scalar(_op("arith.constant", [], I1, {"value": "true" if value else "false"}))
    if isinstance(value, int):
        if not -(2**31) <= value < 2**31:
            raise places.error(f"expected an integer of 32 bits, but got {value}")
        return Scalar(_op("arith.constant", [], I32, {"value": f"{value} : i32"}), value + 1 if value >= 0 else None)
    number = float(value)
    return Scalar(_op("arith.constant", [], F32, {"value": lambda emitter: emitter.real(number)}))


def scalar(value: Any) -> Scalar:
    """A Python number, a size or a scalar as a scalar."""
    if isinstance(value, Scalar):
        return value
    if isinstance(value, Size):
        if value.static is not None:
            return constant(value.static)
        size = value
        text = {"size": lambda emitter: emitter.string(spell(size, emitter.names))}
        return Scalar(_op("attn.size", [], I32, text), POSITIONS)
    if isinstance(value, (bool, int, float)):
        return constant(value)
    whole = _whole(value)
    if whole is not None and not value.shape:
        return element(whole, ())
    if whole is not None:
        raise places.error(
            f"expected a number, but got an array of shape {list(value.shape)}", "index it, as in slopes[h]"
        )
    if hasattr(type(value), "item") and hasattr(type(value), "dtype"):
        return constant(value.item())
    raise places.error(f"expected a number, but got '{type(value).__name__}'")


def _whole(value: Any) -> Value | None:
    """What the trace knows of a tensor: of one of the program's, or of an array, which becomes an input. None for
    other values."""
    if isinstance(value, Overloads):
        return value.value if isinstance(value.value.type, TensorType) else None
    return capture(graph.tracing(), value) if is_array(value) else None


def _known(value: Any) -> Any:
    """An operand as a Python number or a scalar; an array of one number is what it holds when the kernel runs."""
    array = is_array(value) or (isinstance(value, Overloads) and isinstance(value.value.type, TensorType))
    return scalar(value) if array else static.known(value)


def real(value: Any) -> Scalar:
    """A number as f32."""
    value = _known(value)
    if isinstance(value, (bool, int, float)):
        return constant(float(value))
    value = scalar(value)
    if value.type == F32:
        return value
    name = "arith.sitofp" if value.type == I32 else "arith.uitofp"
    return Scalar(_op(name, [value], F32))


def _integer(value: Scalar) -> Scalar:
    if value.type == I1:
        return where(value, 1, 0)
    return Scalar(_op("arith.fptosi", [value], I32))


def _same(a: Any, b: Any) -> tuple[Scalar, Scalar]:
    """Two numbers as one type, truths as integers."""
    a, b = _known(a), _known(b)
    kinds = [x.type if isinstance(x, Scalar) else F32 if isinstance(x, float) else I32 for x in (a, b)]
    if F32 in kinds:
        return real(a), real(b)
    x, y = scalar(a), scalar(b)
    return (x if x.type == I32 else _integer(x)), (y if y.type == I32 else _integer(y))


def _truths(a: Any, b: Any) -> bool:
    """Whether both are truths. As torch and NumPy have it, their sum is "or" and their product "and"."""
    return all(isinstance(x, bool) or (isinstance(x, Scalar) and x.type == I1) for x in (a, b))


def binary(name: str, a: Any, b: Any) -> Scalar:
    """``add``, ``sub``, ``mul`` or ``div``."""
    a, b = _known(a), _known(b)
    if _truths(a, b):
        bits = {"add": "arith.ori", "mul": "arith.andi"}.get(name)
        if bits is None:
            raise places.error("expected two numbers to subtract, but got two truths", "a ^ b is where they differ")
        return Scalar(_op(bits, [scalar(a), scalar(b)], I1))
    x, y = _same(a, b)
    largest = {"add": operator.add, "mul": operator.mul}.get(name)
    below = _bound(x, y, largest) if largest else None
    return Scalar(_op(f"arith.{name}{'f' if x.type == F32 else 'i'}", [x, y], x.type), below)


def _divided(a: Scalar, b: Scalar) -> tuple[Scalar, Scalar, Scalar, Scalar | None]:
    """Two integers, the remainder as the machine has it, and where its sign is not the divisor's as Python wants it."""
    a, b = _same(a, b)
    rest = Scalar(_op("arith.remsi", [a, b], I32), _bound(a, b, lambda x, y: min(x, max(y - 1, 0))))
    if rest.below is not None:
        return a, b, rest, None
    return a, b, rest, (rest < 0) if b.below is not None else (rest != 0) & ((rest < 0) ^ (b < 0))


def _operands(a: Any, b: Any) -> tuple[Scalar, Scalar]:
    """A dividend and a divisor. An integer divisor that the kernel finds to be 0 becomes 1: what machines make of a
    division by 0 is no number that may go on to be an index."""
    known = _known(b)
    x, y = scalar(a), scalar(known)
    if F32 in (x.type, y.type) or isinstance(b, Size):
        return x, y
    if isinstance(known, int) and known == 0:
        raise places.error("expected an integer other than 0 to divide by, but got 0")
    return x, y if isinstance(known, int) else where(y == 0, 1, y)


def quotient(a: Any, b: Any) -> Scalar:
    """``a // b``, rounded down; ``a`` of integers where b is 0."""
    a, b = _operands(a, b)
    if F32 in (a.type, b.type):
        a, b = real(a), real(b)
        rest = remainder(a, b)
        # a / b itself may round up to the next whole number: 0.3 // 0.1 is 2. What is left of less than 0 may round to
        # all of b, and is infinite of an infinite one.
        whole = where(rest == b, -1.0, function("roundeven", (a - rest) / b))
        return where(b == 0, function("floor", a / b), whole)
    a, b, _, wrong = _divided(a, b)
    found = Scalar(_op("arith.divsi", [a, b], I32), _quotient_bound(a, b))
    return found if wrong is None else where(wrong, found - 1, found)


def truncated(a: Any, b: Any) -> Scalar:
    """``a / b``, rounded towards 0; ``a`` of integers where b is 0."""
    a, b = _operands(a, b)
    if F32 in (a.type, b.type):
        return function("trunc", real(a) / b)
    a, b = _same(a, b)
    return Scalar(_op("arith.divsi", [a, b], I32), _quotient_bound(a, b))


def _quotient_bound(a: Scalar, b: Scalar) -> int | None:
    return _bound(a, b, lambda x, _: x)


def remainder(a: Any, b: Any) -> Scalar:
    """``a % b``, with the divisor's sign; 0 of integers where b is 0. Of reals exact for quotients below 2²⁴."""
    a, b = _operands(a, b)
    if F32 in (a.type, b.type):
        rest = truncated_remainder(a, b)
        return where((rest != 0) & ((rest < 0) ^ (b < 0)), rest + b, rest)
    a, b, rest, wrong = _divided(a, b)
    if wrong is None:
        return rest
    found = where(wrong, rest + b, rest)
    found.below = None if b.below is None else max(b.below - 1, 1)
    return found


def truncated_remainder(a: Any, b: Any) -> Scalar:
    """The remainder of ``a / b`` rounded towards 0, with the dividend's sign: C's fmod. Of reals exact for quotients
    below 2²⁴, since the quotient that is rounded is off by one at most, which the remainder's size and sign tell."""
    a, b = _operands(a, b)
    if F32 not in (a.type, b.type):
        return a - truncated(a, b) * b
    a, b = real(a), real(b)
    size, by = where(a < 0, -a, a), where(b < 0, -b, b)
    whole = function("floor", size / by)
    rest = where(whole == 0, size, Scalar(_op("math.fma", [-whole, by, size], F32)))  # of an infinite b too
    rest = where(rest < 0, rest + by, where(rest >= by, rest - by, rest))
    return where(a < 0, -rest, rest)


_FLOAT_ORDER = {"eq": 1, "gt": 2, "ge": 3, "lt": 4, "le": 5, "ne": 13}  # ordered, but une
_INT_ORDER = {"eq": 0, "ne": 1, "lt": 2, "le": 3, "gt": 4, "ge": 5}  # signed


def compare(name: str, a: Any, b: Any) -> Scalar:
    """A comparison by name: "lt", "le", "gt", "ge", "eq" or "ne". Comparisons with NaN are false, "ne" true."""
    x, y = _same(a, b)
    order = _FLOAT_ORDER[name] if x.type == F32 else _INT_ORDER[name]
    kind = "arith.cmpf" if x.type == F32 else "arith.cmpi"
    return Scalar(_op(kind, [x, y], I1, {"predicate": f"{order} : i64"}))


def _bits(name: str, a: Scalar, b: Any) -> Scalar:
    y = scalar(b)
    if a.type != y.type or a.type == F32:
        raise places.error(f"expected two truths or two integers, but got {a.type} and {y.type}")
    return Scalar(_op(name, [a, y], a.type))


def shifted(a: Any, by: Any, left: bool) -> Scalar:
    """``a << by`` or ``a >> by`` of integers; the sign is shifted in from the left. Shifted by 32 or more, nothing of
    the 32 bits is left but the sign."""
    x, y = scalar(a), scalar(by)
    if F32 in (x.type, y.type):
        raise places.error(f"expected two integers to shift, but got {x.type} and {y.type}")
    x, y = _same(x, y)
    found = Scalar(_op("arith.shli" if left else "arith.shrsi", [x, minimum(y, 31)], I32), None if left else x.below)
    return where(y < 32, found, 0) if left else found


def wide_product(a: Scalar, b: Scalar) -> tuple[Scalar, Scalar]:
    """The lower and the upper 32 bits of the product of two integers without sign."""
    made = graph.tracing().add("arith.mului_extended", [a.value, b.value], [I32, I32])
    low, high = made.results
    return Scalar(low), Scalar(high)


def truth(value: Any) -> Scalar:
    """A number as a truth: whether it is other than 0."""
    value = scalar(value)
    return value if value.type == I1 else value != 0


def where(condition: Any, a: Any, b: Any) -> Scalar:
    """``a`` where the condition holds, else ``b``; two truths give a truth."""
    a, b = _known(a), _known(b)
    x, y = (scalar(a), scalar(b)) if _truths(a, b) else _same(a, b)
    return Scalar(_op("arith.select", [truth(condition), x, y], x.type), _bound(x, y, max))


def maximum(a: Any, b: Any) -> Scalar:
    """The larger of two numbers; NaN where one is NaN."""
    a, b = _known(a), _known(b)
    if _truths(a, b):
        return binary("add", a, b)
    x, y = _same(a, b)
    either = x.below is not None or y.below is not None
    below = _bound(x, y, max) or (NUMBERS if either else None)
    return Scalar(_op("arith.maximumf" if x.type == F32 else "arith.maxsi", [x, y], x.type), below)


def minimum(a: Any, b: Any) -> Scalar:
    """The smaller of two numbers; NaN where one is NaN."""
    a, b = _known(a), _known(b)
    if _truths(a, b):
        return binary("mul", a, b)
    x, y = _same(a, b)
    return Scalar(_op("arith.minimumf" if x.type == F32 else "arith.minsi", [x, y], x.type), _bound(x, y, min))


def function(name: str, value: Any) -> Scalar:
    """A function of one real number, as MLIR's math dialect names it."""
    return Scalar(_op(f"math.{name}", [real(value)], F32))


def power(base: Any, exponent: Any) -> Scalar:
    """``base ** exponent``: of known whole exponents by products, so of any base; else the machine's logarithm, NaN of
    a base below 0 with an exponent that is not whole."""
    base, exponent = _known(base), _known(exponent)
    if not isinstance(exponent, Scalar) and abs(exponent) <= 1024 and exponent == int(exponent):
        return _product(real(base) if exponent >= 0 else 1.0 / real(base), abs(int(exponent)))
    if not isinstance(exponent, Scalar) and float(exponent) == 0.5:
        return function("sqrt", base)
    if not isinstance(exponent, Scalar) and float(exponent) == -0.5:
        return function("rsqrt", base)
    if not isinstance(base, Scalar) and base > 0:
        return function("exp2", real(exponent) * math.log2(base))
    return Scalar(_op("math.powf", [real(base), real(exponent)], F32))


def _product(factor: Scalar, many: int) -> Scalar:
    """``many`` equal factors multiplied, by squares."""
    if many <= 1:
        return factor if many else constant(1.0)
    half = _product(factor, many // 2)
    return half * half * factor if many % 2 else half * half


# ---- Elements of tensors


def type_of(element: dtype) -> str:
    """The type in which regions compute on elements."""
    return F32 if element.is_floating() else I1 if element.is_bool() else I32


def thirty_two_bits(element: dtype) -> None:
    """Regions compute integers in 32 bits: refuse those of 64, whose upper half would be lost."""
    if element.name == "int64":
        raise places.error("expected integers of 32 bits to compute with, but got int64", "use .to(torch.int32)")


class Part:
    """A tensor of which the first axes are indexed, but not all: ``table[h]`` in ``table[h][i]``, as torch has it."""

    __slots__ = ("index", "tensor")

    def __init__(self, tensor: Value, index: tuple[Any, ...]):
        self.tensor, self.index = tensor, index

    def __getitem__(self, index: Any) -> Any:
        return element(self.tensor, (*self.index, *(index if isinstance(index, tuple) else (index,))))


def element(tensor: Value, index: Sequence[Any]) -> Any:
    """attn.element: one element, in a region of scalars. A Part where tensors are read as torch reads them and there
    are fewer indices than axes."""
    tracing, whole = graph.tracing(), tensor.type
    assert isinstance(whole, TensorType)
    if not graph.in_region():
        raise places.error(
            "expected a whole tensor, but got an element of one",
            "elements are read in a score_mod or a mask only, as bias[b, h, n, m]; take slices before the call",
        )
    thirty_two_bits(whole.element)
    if tracing.as_torch and 0 < len(index) < len(whole.sizes):
        return Part(tensor, tuple(index))
    if len(index) != len(whole.sizes):
        axes = len(whole.sizes)
        raise places.error(f"expected {axes} indices of a tensor of {axes} axes, but got {len(index)}")
    indices: list[Scalar] = []
    for i in index:
        if isinstance(i, (slice, type(None), type(Ellipsis))):
            raise places.error("expected an index, but got a slice")
        size, axis = whole.sizes[len(indices)], len(indices)
        constant = isinstance(i, Integral) and not isinstance(i, bool)
        number = scalar(_from_either_end(int(i), size, axis) if constant else i)
        if number.type != I32:
            raise places.error(f"expected indices that are integers, but got {number.type}")
        indices.append(_placed(number, size, axis))
    result = type_of(whole.element)
    return Scalar(tracing.one("attn.element", [tensor, *(i.value for i in indices)], result))


def _from_either_end(number: int, size: Size, axis: int) -> Any:
    """An index that is a number of Python's: negative ones count from the end. It lies inside in every call."""
    least = number + 1 if number >= 0 else -number
    required = Requirement(size, Size(least), f"axis {axis} of a tensor to have an element {number}")
    if not required.holds(lambda each: each.value):
        raise places.error(
            f"expected an index from {-(size.value or 0)} to {(size.value or 0) - 1} on axis {axis} of a tensor, "
            f"but got {number}"
        )
    graph.tracing().required.append(required)
    return number if number >= 0 else scalar(size) + number


def _placed(number: Scalar, size: Size, axis: int) -> Scalar:
    """An index of an axis of such a size. As torch has it, negative ones count from the end, and positions may end
    before the axis does."""
    as_torch = graph.tracing().as_torch
    if number.extent is None:
        return where(number < 0, number + size, number) if as_torch and number.below is None else number
    longer = as_torch and size.value is not None and number.extent.value is not None
    if not (longer and size.value > number.extent.value):  # type: ignore[operator]
        _reach(size, number.extent, axis)
    return number


def _reach(size: Size, extent: Size, axis: int) -> None:
    """An axis that a whole axis of positions indexes is as long as that, or 1."""
    with agreeing(f"expected axis {axis} of the tensor to be as long as its index runs, or 1"):
        unify(size, Size(1) if size.value == 1 and extent.value != 1 else extent)
