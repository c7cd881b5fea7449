# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Operations on shapes, along axes, and of matrices."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .ops import OPS, op
from .values import FORMATS, NARROW, Value, bits, cast, floats, half_ulp, integers, is_float


def _move(name: str, written: Callable[..., str], function: Callable[..., Any]) -> None:
    """An operation that moves elements: numbers and errors alike."""

    def compute(a: Value, *attrs: Any) -> Any:
        return Value(a.dtype, function(a.data, *attrs), function(a.err, *attrs))

    op(name, written)(compute)


_move("reshape", lambda a, shape: f"wl.reshape({a}, {list(shape)})", lambda x, shape: x.reshape(shape))
_move("trans", lambda a, order: f"wl.permute({a}, {list(order)})", lambda x, order: x.transpose(order))
_move("expand", lambda a, axis: f"wl.expand_dims({a}, {axis})", lambda x, axis: np.expand_dims(x, axis))
_move("broadcast", lambda a, shape: f"wl.broadcast_to({a}, {list(shape)})", lambda x, shape: np.broadcast_to(x, shape))
_move("flip", lambda a, axis: f"wl.flip({a}, {axis})", lambda x, axis: np.flip(x, axis))


@op("join", lambda a, b: f"wl.join({a}, {b})")
def _join(a: Value, b: Value) -> Value:
    return Value(a.dtype, np.stack([a.data, b.data], -1), np.stack([a.err, b.err], -1))


@op("interleave", lambda a, b: f"wl.interleave({a}, {b})")
def _interleave(a: Value, b: Value) -> Value:
    joined = _join(a, b)
    shape = (*a.shape[:-1], 2 * a.shape[-1])
    return Value(a.dtype, joined.data.reshape(shape), joined.err.reshape(shape))


@op("split", lambda a: f"wl.split({a})")
def _split(a: Value) -> tuple[Value, Value]:
    first, second = (Value(a.dtype, a.data[..., i], a.err[..., i]) for i in range(2))
    return first, second


@op("gather", lambda a, index, axis: f"wl.gather({a}, {index}, {axis})")
def _gather(a: Value, index: Value, axis: int) -> Value:
    at = np.clip(index.data.astype(np.int64), 0, a.shape[axis] - 1)
    err = np.take_along_axis(a.err, at, axis)
    return Value(a.dtype, np.take_along_axis(a.data, at, axis), np.where(np.isinf(index.err), np.inf, err))


def _axes(a: Value, axis: int | None) -> Any:
    return tuple(range(a.data.ndim)) if axis is None else axis


@op("sum", lambda a, axis, dtype: f"wl.sum({a}, {axis}).to(wl.{dtype})")
def _sum(a: Value, axis: int | None, dtype: str) -> Value:
    along = _axes(a, axis)
    doubt = np.isinf(a.err).any(along)
    if not is_float(a.dtype):
        wide = a.data.astype(np.int64 if a.dtype[0] == "i" else np.uint64)
        return integers(dtype, np.sum(wide, along), doubt)
    err = np.where(np.isinf(a.err), 0, a.err)
    magnitude = np.abs(a.data).sum(along)
    count = a.data.size / max(1, np.asarray(doubt).size)
    data = a.data.sum(along)
    whole = (err == 0).all(along) & (a.data == np.rint(a.data)).all(along) & (magnitude * half_ulp(a.dtype) < 0.5)
    off = np.where(whole, 0.0, err.sum(along) + magnitude * half_ulp(a.dtype) * (np.log2(count) + count))
    off = np.where(doubt | (magnitude > FORMATS[a.dtype][2]), np.inf, off)
    return cast(floats(a.dtype, data, off), dtype)


def _reduced_extremum(largest: bool) -> Any:
    def compute(a: Value, axis: int | None, dtype: str) -> Value:
        along = _axes(a, axis)
        data = (np.max if largest else np.min)(a.data, along)
        return cast(Value(a.dtype, data, np.max(a.err, along)), dtype)

    return compute


op("max", lambda a, axis, dtype: f"wl.max({a}, {axis}).to(wl.{dtype})")(_reduced_extremum(True))
op("min", lambda a, axis, dtype: f"wl.min({a}, {axis}).to(wl.{dtype})")(_reduced_extremum(False))


@op("argmax", lambda a, axis: f"wl.argmax({a}, {axis})")
def _argmax(a: Value, axis: int) -> Value:
    """The first of equal ones; unknown where another may be as large."""
    at = np.argmax(a.data, axis)
    top = np.expand_dims(np.max(a.data, axis), axis)
    top_err = np.take_along_axis(a.err, np.expand_dims(at, axis), axis)
    with np.errstate(all="ignore"):
        close = (a.err + top_err > 0) & (a.data + a.err + top_err >= top)
    np.put_along_axis(close, np.expand_dims(at, axis), False, axis)
    return integers("int32", at, close.any(axis) | np.isinf(a.err).any(axis))


@op("xor_sum", lambda a, axis: f"wl.xor_sum({a}, {axis})")
def _xor_sum(a: Value, axis: int | None) -> Value:
    return integers(a.dtype, np.bitwise_xor.reduce(a.data, _axes(a, axis)), np.isinf(a.err).any(_axes(a, axis)))


@op("reduce_mul", lambda a, axis: f"wl.reduce({a}, {axis}, multiplied)")
def _product(a: Value, axis: int) -> Value:
    with np.errstate(all="ignore"):
        return integers(a.dtype, np.multiply.reduce(a.data, axis), np.isinf(a.err).any(axis))


@op("cumsum", lambda a, axis, reverse: f"wl.cumsum({a}, {axis}, reverse={reverse})")
def _cumsum(a: Value, axis: int, reverse: bool) -> Value:
    turned = (lambda x: np.flip(x, axis)) if reverse else (lambda x: x)
    doubt = turned(np.logical_or.accumulate(turned(np.isinf(a.err)), axis))
    if not is_float(a.dtype):
        dtype = a.dtype if bits(a.dtype) >= 32 else ("int32" if a.dtype[0] == "i" else "uint32")
        wide = turned(a.data).astype(dtype)
        with np.errstate(all="ignore"):
            return integers(dtype, turned(np.cumsum(wide, axis, dtype=dtype)), doubt)
    err = turned(np.cumsum(turned(np.where(np.isinf(a.err), 0, a.err)), axis))
    data = turned(np.cumsum(turned(a.data), axis))
    magnitude = turned(np.cumsum(turned(np.abs(a.data)), axis))
    integral = turned(np.logical_and.accumulate(turned((a.data == np.rint(a.data)) & (a.err == 0)), axis))
    whole = integral & (magnitude * half_ulp(a.dtype) < 0.5)
    off = np.where(whole, 0.0, err + magnitude * half_ulp(a.dtype) * (2 + a.shape[axis]))
    off = np.where(doubt | (magnitude > FORMATS[a.dtype][2]), np.inf, off)
    return floats(a.dtype, data, off)


@op("scan_max", lambda a, axis, reverse: f"wl.associative_scan({a}, {axis}, larger, reverse={reverse})")
def _scan_max(a: Value, axis: int, reverse: bool) -> Value:
    turned = (lambda x: np.flip(x, axis)) if reverse else (lambda x: x)
    data = turned(np.maximum.accumulate(turned(a.data), axis))
    return Value(a.dtype, data, turned(np.maximum.accumulate(turned(a.err), axis)))


@op("sort", lambda a, descending: f"wl.sort({a}, descending={descending})")
def _sort(a: Value, descending: bool) -> Value:
    data = np.sort(a.data, -1)
    err = np.broadcast_to(a.err.max(-1, keepdims=True), a.shape)
    return Value(a.dtype, data[..., ::-1] if descending else data, err)


@op("topk", lambda a, k: f"wl.topk({a}, {k})")
def _topk(a: Value, k: int) -> Value:
    found = _sort(a, True)
    return Value(a.dtype, found.data[..., :k], found.err[..., :k])


@op("histogram", lambda a, bins: f"wl.histogram({a}, {bins})")
def _histogram(a: Value, bins: int) -> Value:
    doubt = np.full(bins, np.isinf(a.err).any() or not ((a.data >= 0) & (a.data < bins)).all())
    return integers("int32", np.bincount(np.clip(a.data, 0, bins - 1), minlength=bins).astype(np.int32), doubt)


def _dot_text(a: str, b: str, c: str | None, precision: str, dtype: str) -> str:
    more = f", input_precision={precision!r}" if precision else ""
    out = f", out_dtype=wl.{dtype}"
    return f"wl.dot({a}, {b}, {c}{more}{out})" if c else f"wl.dot({a}, {b}{more}{out})"


def _short_sums(a: Value, b: Value, magnitude: np.ndarray) -> np.ndarray:
    """What a tensor core loses of the sums of 8-bit floats, of their magnitude, at the most: an instruction adds 32
    products, and cuts these, what it adds to and its result 13 bits below the largest (../float8_sums.py). A product
    has at most 8 bits: one that is cut is less than a 32nd of the largest."""
    products = np.abs(a.data)[..., :, None, :] * np.abs(b.data).swapaxes(-1, -2)[..., None, :, :]
    cut = ((products > 0) & (products < magnitude[..., None] / 32)).sum(-1)
    return 2.0**-13 * (cut + 2 * -(-a.shape[-1] // 32))


def _dot(a: Value, b: Value, c: Value | None, precision: str, dtype: str) -> Value:
    if not is_float(a.dtype):
        doubt = np.isinf(a.err).any(-1)[..., :, None] | np.isinf(b.err).any(-2)[..., None, :]
        data = a.data.astype(np.int64) @ b.data.astype(np.int64)
        if c is not None:
            data, doubt = data + c.data, doubt | np.isinf(c.err)
        return integers(dtype, data, doubt)
    known_a, known_b = np.where(np.isinf(a.err), 0, a.err), np.where(np.isinf(b.err), 0, b.err)
    doubt = np.isinf(a.err).any(-1)[..., :, None] | np.isinf(b.err).any(-2)[..., None, :]
    magnitude = np.abs(a.data) @ np.abs(b.data)
    off = np.abs(a.data) @ known_b + known_a @ np.abs(b.data) + known_a @ known_b
    data = a.data @ b.data
    if c is not None:
        data, off, doubt = data + c.data, off + np.where(np.isinf(c.err), 0, c.err), doubt | np.isinf(c.err)
        magnitude = magnitude + np.abs(c.data)
    each = {"tf32": 2.0**-9, "": half_ulp(dtype)}.get(precision, half_ulp(dtype))
    each = (
        each
        if a.dtype == "float32" and precision == "tf32"
        else half_ulp("float64" if dtype == "float64" else "float32")
    )
    off = off + magnitude * each * (4 + a.shape[-1] * (1 if precision != "tf32" else 0))
    if a.dtype in NARROW and b.dtype in NARROW:
        off = off + magnitude * _short_sums(a, b, magnitude)
    return floats(dtype, data, np.where(doubt | (magnitude > FORMATS[dtype][2]), np.inf, off))


op("dot", lambda a, b, precision, dtype: _dot_text(a, b, None, precision, dtype))(
    lambda a, b, precision, dtype: _dot(a, b, None, precision, dtype)
)
op("dot_onto", lambda a, b, c, precision, dtype: _dot_text(a, b, c, precision, dtype))(_dot)


@op("split_first", lambda a: f"wl.split({a})[0]")
def _first(a: Value) -> Value:
    return _split(a)[0]


__all__ = ["OPS"]
