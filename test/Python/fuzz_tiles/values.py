# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Numbers as types have them: floats as float64 with a bound on the error, integers exact or unknown."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
FLOATS = ("float16", "bfloat16", "float32", "float64")
NARROW = ("float8e5", "float8e4nv")
#: bits of the significand, the least exponent of a normal number, the largest finite number
FORMATS = {
    "float8e5": (3, -14, 57344.0),
    "float8e4nv": (4, -6, 448.0),
    "float16": (11, -14, 65504.0),
    "bfloat16": (8, -126, 3.3895313892515355e38),
    "float32": (24, -126, 3.4028234663852886e38),
    "float64": (53, -1022, 1.7976931348623157e308),
}


@dataclass
class Value:
    """An array of a type; ``err`` is how far each element may be off, and infinite where nothing is known."""

    dtype: str
    data: np.ndarray
    err: np.ndarray

    @property
    def shape(self) -> tuple[int, ...]:
        return self.data.shape


def is_float(dtype: str) -> bool:
    return dtype in FORMATS


def bits(dtype: str) -> int:
    return (
        int("".join(c for c in dtype.removesuffix("e5").removesuffix("e4nv") if c.isdigit())) if dtype != "int1" else 1
    )


def half_ulp(dtype: str) -> float:
    return 2.0 ** -FORMATS[dtype][0]


def rounded(data: np.ndarray, dtype: str) -> np.ndarray:
    """To the nearest number of a format, ties to even."""
    if dtype == "float64":
        return data
    precision, least, _ = FORMATS[dtype]
    exponent = np.maximum(np.frexp(data)[1] - 1, least)
    unit = np.ldexp(1.0, exponent - precision + 1)
    return np.rint(data / unit) * unit


def floats(dtype: str, data: np.ndarray, err: np.ndarray, relative: float = 0.0, exact: bool = False) -> Value:
    """A result in float64 and the error of its operands, with what rounding to the type adds; exact where nothing is
    rounded. ``relative``: how inexact the operation itself is. What may overflow is unknown."""
    _, least, largest = FORMATS[dtype]
    data = np.asarray(data, np.float64)
    err = np.broadcast_to(np.asarray(err, np.float64), data.shape)
    safe = np.where(np.isfinite(data), data, 0.0)
    near = rounded(safe, dtype)
    own = 4.0 if dtype == "float64" else 1.01  # this is computed in float64 as well
    slack = np.abs(safe) * (half_ulp(dtype) * own + relative) + 2.0 ** (least - FORMATS[dtype][0] + 1)
    small = (safe == np.rint(safe)) & (np.abs(safe) < 2.0**52)
    whole = (near == safe) & (err == 0) & (relative == 0) & (exact or dtype != "float64" or small)
    off = np.where(whole | ((err == 0) & exact), 0.0, err + slack)
    value = np.where(off == 0, near, safe)
    unknown = ~np.isfinite(data) | (np.abs(safe) + np.where(np.isfinite(off), off, 0) > largest)
    return Value(dtype, value, np.where(unknown, np.inf, off))


def integers(dtype: str, data: np.ndarray, unknown: np.ndarray) -> Value:
    """Integers that wrap to their type."""
    kind = np.bool_ if dtype == "int1" else np.dtype(dtype)
    data = np.asarray(data)
    if dtype != "int1" and data.dtype.kind in "iub":
        data = data.astype(kind)
    elif dtype == "int1":
        data = data.astype(bool)
    unknown = np.broadcast_to(unknown, data.shape)
    return Value(
        dtype, np.where(unknown, kind(0) if dtype == "int1" else kind.type(0), data), np.where(unknown, np.inf, 0.0)
    )


def cast(value: Value, dtype: str) -> Value:
    """What ``x.to(dtype)`` gives."""
    if value.dtype == dtype:
        return value
    if is_float(dtype):
        data = value.data.astype(np.float64)
        inexact = value.dtype in ("int64", "uint64")
        return floats(dtype, data, value.err, exact=not inexact)
    if not is_float(value.dtype):
        if dtype == "int1":
            return integers(dtype, value.data != 0, np.isinf(value.err))
        return integers(
            dtype, value.data.astype(np.int64) if value.dtype == "int1" else value.data, np.isinf(value.err)
        )
    err = np.where(np.isinf(value.err), 1e300, value.err)
    if dtype == "int1":
        return integers(dtype, value.data != 0, (err > 0) & (np.abs(value.data) <= err))
    low, high = np.trunc(value.data - err), np.trunc(value.data + err)
    info = np.iinfo(dtype)
    top = float(2 ** (bits(dtype) - (0 if dtype.startswith("u") else 1)))
    known = (low == high) & (low >= float(info.min)) & (low < top)
    return integers(dtype, np.where(known, low, 0).astype(np.uint64 if dtype == "uint64" else np.int64), ~known)
