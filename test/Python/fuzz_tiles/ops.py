# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""The operations: how each is written, and what NumPy makes of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .values import Value, bits, cast, floats, half_ulp, integers, is_float

Written = Callable[..., str]
Computed = Callable[..., Any]
#: by name: the text of an expression from the operands' names and the attributes; the value from values and attributes
OPS: dict[str, tuple[Written, Computed]] = {}


def op(name: str, written: Written) -> Callable[[Computed], Computed]:
    def register(computed: Computed) -> Computed:
        OPS[name] = (written, computed)
        return computed

    return register


def unknown(*values: Value) -> np.ndarray:
    found = np.isinf(values[0].err)
    for each in values[1:]:
        found = found | np.isinf(each.err)
    return found


def finite(value: Value) -> tuple[np.ndarray, np.ndarray]:
    """The numbers, and their errors, infinite ones too."""
    return value.data, value.err


def common(a: str, b: str, division: bool = False) -> str:
    """Triton's promotion of two tensors."""
    if "float64" in (a, b):
        return "float64"
    if division and (is_float(a) or is_float(b)):
        return "float32"
    if "float32" in (a, b):
        return "float32"
    if "float16" in (a, b):
        return "float16"
    if "bfloat16" in (a, b):
        return "bfloat16" if a == b else "float32"
    if a.startswith("u") == b.startswith("u"):
        return a if bits(a) > bits(b) else b
    unsigned, signed = (a, b) if a.startswith("u") else (b, a)
    return unsigned if bits(unsigned) >= bits(signed) else signed


def _arithmetic(symbol: str) -> Computed:
    def compute(a: Value, b: Value) -> Value:
        dtype = common(a.dtype, b.dtype)
        a, b = cast(a, dtype), cast(b, dtype)
        with np.errstate(all="ignore"):
            data = {"+": np.add, "-": np.subtract, "*": np.multiply}[symbol](a.data, b.data)
            if not is_float(dtype):
                return integers(dtype, data, unknown(a, b))
            err = a.err + b.err
            if symbol == "*":
                err = np.abs(a.data) * b.err + np.abs(b.data) * a.err + a.err * b.err
                err = np.where(unknown(a, b), np.inf, err)
            return floats(dtype, data, err)

    return compute


for _symbol in "+-*":
    op(_symbol, lambda a, b, s=_symbol: f"{a} {s} {b}")(_arithmetic(_symbol))


@op("/", lambda a, b: f"{a} / {b}")
def _divide(a: Value, b: Value) -> Value:
    dtype = common(a.dtype, b.dtype, division=True)
    dtype = dtype if is_float(dtype) else "float32"
    a, b = cast(a, dtype), cast(b, dtype)
    with np.errstate(all="ignore"):
        data = a.data / b.data
        err = (a.err + np.abs(data) * b.err) / (np.abs(b.data) - b.err)
        err = np.where((np.abs(b.data) <= b.err) | (np.abs(b.data) < 1e-30) | ~np.isfinite(err), np.inf, err)
    return floats(dtype, data, err, relative=4 * half_ulp(dtype))


def _integer_division(remainder: bool) -> Computed:
    def compute(a: Value, b: Value) -> Value:
        dtype = common(a.dtype, b.dtype)
        a, b = cast(a, dtype), cast(b, dtype)
        wrong = unknown(a, b) | (b.data == 0)
        if not dtype.startswith("u"):
            wrong = wrong | ((b.data == -1) & (a.data == np.iinfo(dtype).min))
        divisor = np.where(wrong, np.ones_like(b.data), b.data)
        with np.errstate(all="ignore"):
            floor = a.data // divisor
            left = a.data - floor * divisor
            quotient = floor + ((left != 0) & ((a.data < 0) != (divisor < 0))).astype(floor.dtype)
        return integers(dtype, a.data - quotient * divisor if remainder else quotient, wrong)

    return compute


op("//", lambda a, b: f"{a} // {b}")(_integer_division(False))
op("%", lambda a, b: f"{a} % {b}")(_integer_division(True))


def _bitwise(symbol: str) -> Computed:
    def compute(a: Value, b: Value) -> Value:
        dtype = a.dtype if a.dtype == b.dtype else common(a.dtype, b.dtype)
        a, b = cast(a, dtype), cast(b, dtype)
        function = {"&": np.bitwise_and, "|": np.bitwise_or, "^": np.bitwise_xor}[symbol]
        return integers(dtype, function(a.data, b.data), unknown(a, b))

    return compute


for _symbol in "&|^":
    op(_symbol, lambda a, b, s=_symbol: f"{a} {s} {b}")(_bitwise(_symbol))


@op("<<", lambda a, by: f"{a} << {by}")
def _left(a: Value, by: int) -> Value:
    return integers(a.dtype, np.left_shift(a.data, a.data.dtype.type(by)), unknown(a))


@op(">>", lambda a, by: f"{a} >> {by}")
def _right(a: Value, by: int) -> Value:
    return integers(a.dtype, np.right_shift(a.data, a.data.dtype.type(by)), unknown(a))


def _shift_by_tile(symbol: str) -> Computed:
    """In the common type; to the right the sign of what is shifted is kept, whatever that type is."""

    def compute(a: Value, by: Value, limit: int) -> Value:
        dtype = common(a.dtype, by.dtype)
        keeps_sign = symbol == ">>" and not a.dtype.startswith("u")
        wide = cast(a, dtype.removeprefix("u") if keeps_sign else dtype)
        function = np.right_shift if symbol == ">>" else np.left_shift
        places = (by.data.astype(np.int64) & limit).astype(wide.data.dtype)
        return integers(dtype, function(wide.data, places), unknown(a, by))

    return compute


for _symbol in ("<<", ">>"):
    op(f"tile {_symbol}", lambda a, by, limit, s=_symbol: f"{a} {s} ({by} & {limit})")(_shift_by_tile(_symbol))


COMPARISONS = {
    "<": np.less,
    "<=": np.less_equal,
    ">": np.greater,
    ">=": np.greater_equal,
    "==": np.equal,
    "!=": np.not_equal,
}


def _comparison(symbol: str) -> Computed:
    def compute(a: Value, b: Value) -> Value:
        dtype = a.dtype if a.dtype == b.dtype else common(a.dtype, b.dtype)
        a, b = cast(a, dtype), cast(b, dtype)
        doubt = unknown(a, b)
        if is_float(dtype):
            with np.errstate(all="ignore"):
                doubt = doubt | ((a.err + b.err > 0) & (np.abs(a.data - b.data) <= a.err + b.err))
        return integers("int1", COMPARISONS[symbol](a.data, b.data), doubt)

    return compute


for _symbol in COMPARISONS:
    op(_symbol, lambda a, b, s=_symbol: f"{a} {s} {b}")(_comparison(_symbol))


def _extremum(largest: bool) -> Computed:
    def compute(a: Value, b: Value) -> Value:
        dtype = a.dtype if a.dtype == b.dtype else common(a.dtype, b.dtype)
        a, b = cast(a, dtype), cast(b, dtype)
        data = (np.maximum if largest else np.minimum)(a.data, b.data)
        if not is_float(dtype):
            return integers(dtype, data, unknown(a, b))
        return Value(dtype, data, np.maximum(a.err, b.err))

    return compute


op("maximum", lambda a, b: f"wl.maximum({a}, {b})")(_extremum(True))
op("minimum", lambda a, b: f"wl.minimum({a}, {b})")(_extremum(False))
op("map smaller", lambda a, b: f"wl.map_elementwise(smaller, {a}, {b})")(_extremum(False))


@op("map halvings", lambda a: f"wl.map_elementwise(halvings, {a})")
def _halvings(a: Value) -> Value:
    """How often the number can be halved, toward zero, until it is 1 or less."""
    left, count = a.data.copy(), np.zeros(a.data.shape, np.int32)
    while (left > 1).any():
        count += left > 1
        left = np.where(left > 1, left // 2, left)
    return integers("int32", count, unknown(a))


@op("literal", lambda a, symbol, number: f"{a} {symbol} {number}")
def _literal(a: Value, symbol: str, number: float) -> Value:
    """With a number of the same kind, or a lower one: the type stays."""
    other = Value(a.dtype, np.asarray(number, a.data.dtype), np.zeros(()))
    return OPS[symbol][1](a, other)


@op("neg", lambda a: f"-{a}")
def _negate(a: Value) -> Value:
    if is_float(a.dtype):
        return Value(a.dtype, -a.data, a.err)
    with np.errstate(all="ignore"):
        return integers(a.dtype, np.zeros_like(a.data) - a.data, unknown(a))


@op("abs", lambda a: f"wl.abs({a})")
def _absolute(a: Value) -> Value:
    if is_float(a.dtype):
        return Value(a.dtype, np.abs(a.data), a.err)
    with np.errstate(all="ignore"):
        return integers(a.dtype, np.abs(a.data) if a.dtype[0] == "i" else a.data, unknown(a))


@op("not", lambda a: f"~{a}")
def _invert(a: Value) -> Value:
    return integers(a.dtype, np.invert(a.data), unknown(a))


#: by name: the function, its steepness within the error, the relative error of one evaluation in f32
FUNCTIONS: dict[str, tuple[Any, Any, float]] = {
    "exp": (np.exp, np.exp, 3e-6),
    "exp2": (np.exp2, np.exp2, 3e-6),
    "sqrt": (np.sqrt, lambda x: 0.5 / np.sqrt(np.maximum(x, 1e-30)), 1e-6),
    "sin": (np.sin, lambda x: np.ones_like(x), 0.0),
    "cos": (np.cos, lambda x: np.ones_like(x), 0.0),
    "sigmoid": (lambda x: 1 / (1 + np.exp(-x)), lambda x: np.full_like(x, 0.25), 1e-5),
}


def _function(name: str) -> Computed:
    function, slope, relative = FUNCTIONS[name]

    def compute(a: Value) -> Value:
        err = np.where(np.isinf(a.err), 0, a.err)
        with np.errstate(all="ignore"):
            data = function(a.data)
            steep = np.maximum(np.abs(slope(a.data)), np.abs(slope(a.data + err)))
            steep = np.maximum(steep, np.abs(slope(a.data - err)))
            off = steep * err + np.abs(data) * relative * (1 + np.abs(a.data)) + 2e-6 * (name in ("sin", "cos"))
            doubt = np.isinf(a.err) | (np.abs(a.data) > 80) | ~np.isfinite(off)
            if name == "sqrt":
                doubt = doubt | (a.data - err < 0)
                off = np.where(a.data <= 2 * err, np.sqrt(np.maximum(a.data, 0) + err) + 1e-6, off)
        return floats(
            a.dtype, np.where(doubt, 0.0, data), np.where(doubt, np.inf, off), relative=2 * half_ulp("float32")
        )

    return compute


for _name in FUNCTIONS:
    op(_name, lambda a, n=_name: f"wl.{n}({a})")(_function(_name))


def _whole(name: str) -> Computed:
    function = {"floor": np.floor, "ceil": np.ceil}[name]

    def compute(a: Value) -> Value:
        err = np.where(np.isinf(a.err), 1e300, a.err)
        doubt = function(a.data - err) != function(a.data + err)
        return Value(a.dtype, np.where(doubt, 0.0, function(a.data)), np.where(doubt, np.inf, 0.0))

    return compute


op("floor", lambda a: f"wl.floor({a})")(_whole("floor"))
op("ceil", lambda a: f"wl.ceil({a})")(_whole("ceil"))


@op("cast", lambda a, dtype: f"{a}.to(wl.{dtype})")
def _cast(a: Value, dtype: str) -> Value:
    return cast(a, dtype)


@op("bitcast", lambda a, dtype: f"{a}.to(wl.{dtype}, bitcast=True)")
def _bitcast(a: Value, dtype: str) -> Value:
    return integers(dtype, a.data.view(dtype), unknown(a))


@op("where", lambda c, a, b: f"wl.where({c}, {a}, {b})")
def _where(condition: Value, a: Value, b: Value) -> Value:
    dtype = a.dtype if a.dtype == b.dtype else common(a.dtype, b.dtype)
    a, b = cast(a, dtype), cast(b, dtype)
    data = np.where(condition.data, a.data, b.data)
    err = np.where(condition.data, a.err, b.err)
    return Value(dtype, data, np.where(np.isinf(condition.err), np.inf, err))


@op("full", lambda shape, number, dtype: f"wl.full({list(shape)}, {number}, wl.{dtype})")
def _full(shape: tuple[int, ...], number: float, dtype: str) -> Value:
    data = np.full(shape, number, np.float64 if is_float(dtype) else bool if dtype == "int1" else dtype)
    return Value(dtype, data, np.zeros(shape))


@op("arange", lambda size: f"wl.arange(0, {size})")
def _arange(size: int) -> Value:
    return integers("int32", np.arange(size, dtype=np.int32), np.zeros(size, bool))
