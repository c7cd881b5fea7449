# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Functions of torch and NumPy on what a program computes: ``torch.tanh(s)``, ``s.abs()``, ``np.where(c, s, 0)`` and
``slopes[h]`` of a torch tensor from around, as operations of the program.

torch hands calls over by ``__torch_function__``, those that index its own tensors by a mode that holds while a program
is traced (``tracing()``); NumPy by ``__array_ufunc__`` and ``__array_function__``.
"""

from __future__ import annotations

import contextlib
import functools
import math
import operator
import sys
from collections.abc import Callable, Iterable
from typing import Any

from ..compiler import places
from ..compiler.diagnostics import CompilationError
from ..compiler.trusted import trust
from . import bodies, graph, scalars, weights
from .dtypes import dtype_of, kind_of
from .overloads import answer_by
from .scalars import Scalar
from .sizes import Size
from .tensors import Tensor, applied, lift, map_tensors


class UnknownAttribute(CompilationError, AttributeError):
    """An attribute that a tensor or a scalar of a program has not."""


# ---- The table: functions by their names in torch and in NumPy -------------------------------------------------------


def _function(name: str) -> Callable[..., Any]:
    return lambda x: applied(lambda a: scalars.function(name, a), x)


def _one(body: Callable[[Any], Any]) -> Callable[..., Any]:
    return lambda x: applied(body, x)


def _whole(name: str) -> Callable[..., Any]:
    """A function that leaves integers as they are."""

    def body(a: Any) -> Scalar:
        a = scalars.scalar(a)
        return a if a.type != scalars.F32 else scalars.function(name, a)

    return lambda x: applied(body, x)


def _two(body: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    return lambda x, y: applied(body, x, y)


def _scaled(body: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    """torch.add and torch.sub."""
    return lambda x, y, *, alpha=1: applied(body, x, y if alpha == 1 else applied(operator.mul, y, alpha))


def _divide(x: Any, y: Any, *, rounding_mode: str | None = None) -> Any:
    body = {None: operator.truediv, "floor": _floor_divide, "trunc": _truncated}.get(rounding_mode)
    if body is None:
        raise places.error(f"expected rounding_mode=None, 'floor' or 'trunc', but got {rounding_mode!r}")
    return applied(body, x, y)


def _floor_divide(a: Any, b: Any) -> Scalar:
    return scalars.quotient(a, b)


def _truncated(a: Any, b: Any) -> Scalar:
    return scalars.truncated(a, b)


def _fmod(a: Any, b: Any) -> Scalar:
    return scalars.truncated_remainder(a, b)


def _numbers_first(body: Callable[[Any, Any], Scalar]) -> Callable[[Any, Any], Scalar]:
    """torch.fmax and fmin: of a NaN and a number the number."""

    def call(a: Any, b: Any) -> Scalar:
        a, b = scalars.real(a), scalars.real(b)
        return scalars.where(a != a, b, scalars.where(b != b, a, body(a, b)))

    return call


def _remainder(a: Any, b: Any) -> Scalar:
    return scalars.remainder(a, b)


def _clamp(x: Any, min: Any = None, max: Any = None) -> Any:
    if min is None and max is None:
        raise places.error("expected 'min' or 'max' to clamp to, but got neither")
    lower = x if min is None else applied(scalars.maximum, x, min)
    return lower if max is None else applied(scalars.minimum, lower, max)


def _larger(x: Any, *other: Any, **_: Any) -> Any:
    return _of_two("max", scalars.maximum, x, other)


def _smaller(x: Any, *other: Any, **_: Any) -> Any:
    return _of_two("min", scalars.minimum, x, other)


def _of_two(name: str, body: Callable[[Any, Any], Any], x: Any, other: tuple[Any, ...]) -> Any:
    """torch.max and torch.min of two numbers; those of one tensor are reductions."""
    if len(other) != 1 or not isinstance(other[0], (Scalar, Tensor)) or not isinstance(x, (Scalar, Tensor)):
        raise _refusal(name, "torch.")
    return applied(body, x, other[0])


def _masked_fill(x: Any, mask: Any, value: Any) -> Any:
    return applied(scalars.where, mask, value, x)


def _relu(a: Any) -> Scalar:
    a = scalars.scalar(a)
    return scalars.maximum(a, 0 if a.type == scalars.I32 else 0.0)


def _sign(a: Any) -> Scalar:
    a = scalars.scalar(a)
    zero, one = (0.0, 1.0) if a.type == scalars.F32 else (0, 1)
    return scalars.where(a > 0, one, scalars.where(a < 0, -one, zero))


def _logical(body: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *x: applied(lambda *a: body(*map(scalars.truth, a)), *x)


def _in_place(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of torch.nn.functional, which may be asked to change its argument."""

    def call(x: Any, *more: Any, inplace: bool = False, **keywords: Any) -> Any:
        if inplace:
            raise places.error("expected inplace=False: tensors of a program do not change, but got inplace=True")
        return function(x, *more, **keywords)

    return call


def _filled(like: Any, value: Any, dtype: Any) -> Any:
    """One number everywhere, of the type of ``like`` unless another is named."""
    if isinstance(like, Tensor):
        return map_tensors(
            lambda _, v: scalars.scalar(v), like, value, to=like.dtype if dtype is None else dtype_of(dtype)
        )
    kind = kind_of(dtype) or {scalars.F32: float, scalars.I32: int, scalars.I1: bool}[like.type]
    return scalars.scalar(value).converted(kind)


def _like(value: Any) -> Callable[..., Any]:
    """torch.zeros_like and ones_like."""
    return lambda x, *, dtype=None, device=None, **_: _filled(x, value, dtype)


def _new(value: Any) -> Callable[..., Any]:
    """Tensor.new_zeros and new_ones."""

    def call(x: Any, *shape: Any, size: Any = (), dtype: Any = None, device: Any = None, **_: Any) -> Any:
        return _new_full(x, [each for each in shape if each != ()] or size, value, dtype=dtype)

    return call


def _new_full(x: Any, size: Any, value: Any, *, dtype: Any = None, device: Any = None, **_: Any) -> Any:
    given = [size] if isinstance(size, int) else list(size)
    given = [each for part in given for each in (part if isinstance(part, (tuple, list)) else [part])]
    if isinstance(x, Tensor) or given:
        raise places.error(f"expected a new number, of size (), but got size {given}", "use torch.ones_like(x)")
    return _filled(x, value, dtype)


def _to(x: Any, *given: Any, dtype: Any = None, device: Any = None, **_: Any) -> Any:
    """Tensor.to: of a type, of a device, or as another tensor."""
    for each in (*given, dtype):
        if isinstance(each, (Tensor, Scalar)):
            each = each.dtype if isinstance(each, Tensor) else {"f32": float, "i32": int, "i1": bool}[each.type]
        if each is None or each is True or each is False or type(each).__name__ == "device":
            continue
        if isinstance(each, str) and each.partition(":")[0] in ("cpu", "cuda"):
            continue
        x = x.to(each) if isinstance(x, Tensor) else x.converted(kind_of(each))
    return x


def _index(x: Any, index: Any) -> Any:
    return lift(x)[index]


def _where(condition: Any, *values: Any) -> Any:
    if len(values) != 2:
        raise places.error(f"expected where(condition, a, b), but got {1 + len(values)} arguments")
    return applied(scalars.where, condition, *values)


def _number(x: Any, value: Any, *, dtype: Any = None, device: Any = None, **_: Any) -> Any:
    """Tensor.new_tensor of one number."""
    return _filled(x, value, dtype if dtype is not None else type(value))


def _linear(x: Any, weight: Any, bias: Any = None) -> Any:
    return weights.linear(lift(x), lift(weight), lift(bias), None)


def _reciprocal(x: Any) -> Any:
    return applied(lambda a: 1.0 / scalars.real(a), x)


def _bits(body: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *x: applied(body, *x)


_TABLE: dict[str, Callable[..., Any]] = {
    **{name: _function(name) for name in ("exp", "exp2", "log", "log2", "sqrt", "rsqrt")},
    **{name: _function(name) for name in ("sin", "cos", "tanh", "erf")},
    "log1p": _function("log1p"),
    "log10": _one(lambda a: scalars.function("log2", a) * math.log10(2)),
    "expm1": _function("expm1"),
    "softplus": _one(bodies.softplus),
    # torch.nn.functional.logsigmoid calls itself log_sigmoid
    **dict.fromkeys(("logsigmoid", "log_sigmoid"), _one(lambda a: -bodies.softplus(-scalars.real(a)))),
    "isnan": _one(lambda a: scalars.real(a) != scalars.real(a)),
    "isinf": _one(lambda a: scalars.real(a).__abs__() == math.inf),
    **{name: _whole(name) for name in ("floor", "ceil", "trunc")},
    "round": _whole("roundeven"),
    "rint": _whole("roundeven"),
    **dict.fromkeys(("abs", "absolute", "fabs", "__abs__"), _one(bodies.absolute)),
    **dict.fromkeys(("neg", "negative", "__neg__"), lambda x: applied(operator.neg, x)),
    **dict.fromkeys(("positive", "__pos__", "clone", "contiguous", "detach_copy"), lambda x: x),
    "square": lambda x: applied(lambda a: scalars.scalar(a) * scalars.scalar(a), x),
    "reciprocal": _reciprocal,
    "sign": lambda x: applied(_sign, x),
    "sigmoid": _one(bodies.sigmoid),
    "expit": _one(bodies.sigmoid),
    "relu": _in_place(lambda x: applied(_relu, x)),
    "silu": _in_place(_one(bodies.silu)),
    "gelu": lambda x, approximate="none": applied(bodies.gelu(approximate), x),
    "linear": _linear,
    **dict.fromkeys(("add", "__add__", "__radd__"), _scaled(operator.add)),
    **dict.fromkeys(("sub", "subtract", "__sub__"), _scaled(operator.sub)),
    **dict.fromkeys(("rsub", "__rsub__"), lambda x, y, *, alpha=1: _scaled(operator.sub)(y, x, alpha=alpha)),
    **dict.fromkeys(("mul", "multiply", "__mul__", "__rmul__"), _two(operator.mul)),
    **dict.fromkeys(("div", "divide", "true_divide", "__truediv__", "__div__"), _divide),
    **dict.fromkeys(("__rtruediv__", "__rdiv__"), lambda x, y: _divide(y, x)),
    **dict.fromkeys(("floor_divide", "__floordiv__"), _two(_floor_divide)),
    "__rfloordiv__": lambda x, y: applied(_floor_divide, y, x),
    **dict.fromkeys(("remainder", "mod", "__mod__"), _two(_remainder)),
    "__rmod__": lambda x, y: applied(_remainder, y, x),
    "fmod": _two(_fmod),
    **dict.fromkeys(("bitwise_left_shift", "left_shift", "__lshift__"), _two(operator.lshift)),
    **dict.fromkeys(("bitwise_right_shift", "right_shift", "__rshift__"), _two(operator.rshift)),
    "__rlshift__": lambda x, y: applied(operator.lshift, y, x),
    "__rrshift__": lambda x, y: applied(operator.rshift, y, x),
    **dict.fromkeys(("pow", "power", "__pow__"), lambda x, y: applied(scalars.power, x, y)),
    "__rpow__": lambda x, y: applied(scalars.power, y, x),
    "maximum": _two(scalars.maximum),
    "minimum": _two(scalars.minimum),
    "fmax": _two(_numbers_first(scalars.maximum)),
    "fmin": _two(_numbers_first(scalars.minimum)),
    **dict.fromkeys(("clamp", "clip"), _clamp),
    "max": _larger,
    "min": _smaller,
    "masked_fill": _masked_fill,
    "clamp_min": lambda x, min: _clamp(x, min),
    "clamp_max": lambda x, max: _clamp(x, None, max),
    **dict.fromkeys(("eq", "equal", "__eq__"), _two(operator.eq)),
    **dict.fromkeys(("ne", "not_equal", "__ne__"), _two(operator.ne)),
    **dict.fromkeys(("lt", "less", "__lt__"), _two(operator.lt)),
    **dict.fromkeys(("le", "less_equal", "__le__"), _two(operator.le)),
    **dict.fromkeys(("gt", "greater", "__gt__"), _two(operator.gt)),
    **dict.fromkeys(("ge", "greater_equal", "__ge__"), _two(operator.ge)),
    "logical_and": _logical(operator.and_),
    "logical_or": _logical(operator.or_),
    "logical_xor": _logical(operator.xor),
    "logical_not": _logical(operator.invert),
    **dict.fromkeys(("bitwise_and", "__and__", "__rand__"), _bits(operator.and_)),
    **dict.fromkeys(("bitwise_or", "__or__", "__ror__"), _bits(operator.or_)),
    **dict.fromkeys(("bitwise_xor", "__xor__", "__rxor__"), _bits(operator.xor)),
    **dict.fromkeys(("bitwise_not", "invert", "__invert__"), _bits(operator.invert)),
    "where": _where,
    "__getitem__": _index,
    "zeros_like": _like(0),
    "ones_like": _like(1),
    "full_like": lambda x, fill_value, *, dtype=None, device=None, **_: _filled(x, fill_value, dtype),
    "new_zeros": _new(0),
    "new_ones": _new(1),
    "new_full": _new_full,
    "new_tensor": _number,
    "to": _to,
    "type_as": _to,
    "float": lambda x: _to(x, "fp32" if isinstance(x, Tensor) else float),
    "half": lambda x: _to(x, "fp16"),
    "bfloat16": lambda x: _to(x, "bf16"),
    "int": lambda x: _to(x, "int32"),
    "long": lambda x: _to(x, "int64"),
    "bool": lambda x: applied(scalars.truth, x),
}
# What methods of tensors and scalars are called, beside those that they have.
_METHODS = sorted(
    name for name in _TABLE if not name.startswith("_") and name not in ("where", "linear", "gelu", "silu")
)
_REMEDIES = {
    **dict.fromkeys(
        ("transpose", "swapaxes", "mT", "T", "permute", "movedim"),
        "axes keep their order in a program: transpose arrays before the call; weft.softmax(q, k) is of q kᵀ",
    ),
    **dict.fromkeys(
        ("matmul", "mm", "bmm", "einsum", "__matmul__", "__rmatmul__", "scaled_dot_product_attention", "softmax"),
        "weft.softmax(q, k) @ v applies attention, weft.linear(x, weight) a weight",
    ),
    **dict.fromkeys(("sum", "mean"), "weft.sum(x, axis=...) adds up, weft.mean() is a mixer over the sequence"),
    **dict.fromkeys(
        ("item", "tolist", "__float__", "__int__", "__bool__", "__index__", "numpy", "cpu", "cuda"),
        "the kernel computes it, after the function has run; use weft.where(condition, a, b) in the place of 'if'",
    ),
    **dict.fromkeys(
        ("view", "reshape", "flatten", "unsqueeze", "squeeze", "expand", "repeat", "cat", "stack", "split", "chunk"),
        "shapes do not change in a program: shape the array before the call",
    ),
}


_KNOWN = "elementwise functions, comparisons, clamp and where of torch and NumPy are known, and the functions of weft"


def _refusal(name: str, of: str) -> CompilationError:
    return places.error(f"expected a function that programs have, but got '{of}{name}'", _REMEDIES.get(name, _KNOWN))


def call(
    function: Any, args: Iterable[Any], keywords: dict[str, Any], of: str = "torch.", method: str = "__call__"
) -> Any:
    """What a function of torch or NumPy gives of a program's scalars and tensors."""
    name = getattr(function, "__name__", str(function))
    if method != "__call__":  # a reduction by a function of NumPy
        raise _refusal(f"{name}.{method}", of)
    body = _TABLE.get(name)
    if body is None:
        if name in ("__get__", "__set__"):  # a property of a tensor of torch's
            name = getattr(getattr(function, "__self__", None), "__name__", name)
        raise _refusal(name.removesuffix("_"), of)
    given = [each if name == "__getitem__" else _operand(each) for each in args]
    if name != "__getitem__":
        keywords = {key: _operand(value) for key, value in keywords.items() if key != "out" or value is not None}
        if "input" in keywords:
            given.insert(0, keywords.pop("input"))
        if "other" in keywords:
            given.append(keywords.pop("other"))
    try:
        return body(*given, **keywords)
    except TypeError as error:
        raise places.error(f"expected arguments of '{of}{name}' that programs take, but got: {error}") from None


def _operand(value: Any) -> Any:
    """An argument: arrays as inputs of the program, NumPy's numbers as Python's."""
    kind = type(value)
    number = hasattr(kind, "dtype") and hasattr(kind, "item") and not hasattr(kind, "__setitem__")
    return value.item() if number and kind not in (Tensor, Scalar) else lift(value)


def attribute(owner: Any, name: str, what: str) -> Any:
    """A method of torch's tensors, of a tensor or a scalar of a program."""
    if name in _METHODS:
        return functools.partial(_TABLE[name], owner)
    if name == "device":  # that of the arrays, which a program does not know
        return None
    if name == "dtype" and "torch" in sys.modules:
        torch = sys.modules["torch"]
        return {scalars.F32: torch.float32, scalars.I32: torch.int32, scalars.I1: torch.bool}[owner.type]
    if name.startswith("__"):
        raise AttributeError(f"{what} of a program has no '{name}'")
    message = f"expected what {what} of a program has, but got '.{name}'"
    raise UnknownAttribute(message, places.user_position(), _REMEDIES.get(name, _KNOWN))


# ---- Handing over ----------------------------------------------------------------------------------------------------


def concerns(value: Any) -> bool:
    """Whether a value, or one in it, is of the program being traced."""
    if isinstance(value, (tuple, list)):
        return any(map(concerns, value))
    return isinstance(value, (Scalar, Tensor, Size))


_RANDOM = frozenset(
    ("rand", "randn", "randint", "randperm", "bernoulli", "normal", "multinomial", "dropout", "rand_like", "randn_like")
)


def _refuse_random(function: Any) -> None:
    """One number that torch draws now would stand for every pair in a mask or a score_mod."""
    name = getattr(function, "__name__", "")
    if graph.in_region() and name in _RANDOM:
        raise places.error(
            f"expected no random numbers in a mask or a score_mod, but got 'torch.{name}', one number for all pairs",
            "dropout_p of weft.attention.attend drops weights; other numbers: make a tensor outside, and index it",
        )


@functools.cache
def _mode() -> Any:
    import torch

    class Tracing(torch.overrides.TorchFunctionMode):
        """Indexing of torch's own tensors by scalars of a program, and their operators with tensors of one."""

        def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            keywords = kwargs or {}
            _refuse_random(function)
            if any(map(concerns, args)) or any(map(concerns, keywords.values())):
                return call(function, args, keywords)
            return function(*args, **keywords)

    return Tracing


def tracing() -> Any:
    """A ``with`` in which torch's functions take what a program computes."""
    return _mode()() if "torch" in sys.modules else contextlib.nullcontext()


_trusted: set[str] = set()


def trust_libraries() -> None:
    """Say of the functions of torch and NumPy that are in the table that they compute from their arguments alone."""
    for module in ("torch", "torch.nn.functional", "torch.special", "numpy"):
        if module in sys.modules and module not in _trusted:
            _trusted.add(module)
            found = (vars(sys.modules[module]).get(name) for name in _TABLE)
            trust(value for value in found if callable(value))


answer_by(call, attribute)
