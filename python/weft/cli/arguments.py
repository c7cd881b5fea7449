# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Kernel arguments on the command line: ``f32[1024]=random``, ``i32=1000``, ``x.npy``, ``f32[1024]=nan:z.npy``.

A spelling is one of

    TYPE=NUMBER            a scalar passed by value
    TYPE[SHAPE]=FILL       a buffer; FILL is random, zeros, ones, nan, range or a number
    TYPE[SHAPE]=FILL:FILE  the same, written to FILE (.npy) after the launch
    FILE.npy               a buffer read from FILE
    FILE.npy:OUT.npy       the same, written to OUT.npy after the launch

TYPE is i8 i16 i32 i64 u8 u16 u32 u64 f16 bf16 f32 f64; bf16 travels as its bits, in uint16.
"""

from __future__ import annotations

import pathlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np

_TYPES = {
    "i8": "int8", "i16": "int16", "i32": "int32", "i64": "int64",
    "u8": "uint8", "u16": "uint16", "u32": "uint32", "u64": "uint64",
    "f16": "float16", "bf16": "uint16", "f32": "float32", "f64": "float64",
}  # fmt: skip
_SCALAR = re.compile(r"^(\w+)=([^\[\]:]+)$")
_BUFFER = re.compile(r"^(\w+)\[([\d, x]+)\]=([^:]+)(?::(.+))?$")


@dataclass(frozen=True)
class Argument:
    """One kernel argument, and the file that its buffer is written to after the launch."""

    value: Any
    output: pathlib.Path | None = None


def parse_arguments(texts: Sequence[str], seed: int) -> list[Argument]:
    """The arguments that the texts spell;

    Random buffers are drawn from ``seed``. Raises ValueError with what was expected.
    """
    import numpy as np

    rng = np.random.default_rng(seed)
    return [_parse(text, rng) for text in texts]


def write_outputs(arguments: Sequence[Argument]) -> list[pathlib.Path]:
    """Write the buffers that have a file, each beside and then renamed; returns the files."""
    import numpy as np

    written = []
    for argument in arguments:
        if argument.output is None:
            continue
        beside = argument.output.with_name(argument.output.name + ".partial")
        with beside.open("wb") as stream:
            np.save(stream, argument.value)
        beside.replace(argument.output)
        written.append(argument.output)
    return written


def _parse(text: str, rng: np.random.Generator) -> Argument:
    import numpy as np

    source, _, output = text.partition(":")
    if source.endswith(".npy"):
        return Argument(np.ascontiguousarray(np.load(source)), pathlib.Path(output) if output else None)
    if match := _BUFFER.match(text):
        name, shape, fill, output = match.groups()
        sizes = tuple(int(size) for size in re.split(r"[,x ]+", shape) if size)
        return Argument(_fill(name, sizes, fill, rng, text), pathlib.Path(output) if output else None)
    if match := _SCALAR.match(text):
        name, number = match.groups()
        return Argument(_scalar(name, number, text))
    raise ValueError(f"expected an argument like i32=5, f32[1024]=random or x.npy, but got '{text}'")


def _dtype(name: str, text: str) -> np.dtype:
    import numpy as np

    if name not in _TYPES:
        raise ValueError(f"expected a type among {' '.join(_TYPES)}, but got '{name}' in '{text}'")
    return np.dtype(_TYPES[name])


def _bfloat16_bits(values: np.ndarray) -> np.ndarray:
    """Round float32 to bfloat16, nearest even, as bits."""
    import numpy as np

    bits = np.asarray(values, np.float32).view(np.uint32)
    rounded = ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)
    return np.where(np.isnan(values), np.uint16(0x7FC0), rounded)


def _scalar(name: str, number: str, text: str) -> Any:
    import numpy as np

    dtype = _dtype(name, text)
    try:
        if name == "bf16":
            return _bfloat16_bits(np.array([float(number)], np.float32))[0]
        return dtype.type(int(number, 0) if dtype.kind in "iu" else float(number))
    except (ValueError, OverflowError) as error:
        raise ValueError(f"expected a number of type {name}, but got '{number}' in '{text}'") from error


def _fill(name: str, shape: tuple[int, ...], fill: str, rng: np.random.Generator, text: str) -> np.ndarray:
    import numpy as np

    dtype = _dtype(name, text)
    if fill == "random" and name[0] in "iu":
        info = np.iinfo(dtype)
        return rng.integers(info.min, info.max, shape, dtype, endpoint=True)
    if fill == "nan" and name[0] in "iu":
        raise ValueError(f"expected a floating type to fill with nan, but got '{text}'")
    values: np.ndarray
    if fill == "random":
        values = rng.standard_normal(shape)
    elif fill == "range":
        values = np.arange(np.prod(shape, dtype=np.int64)).reshape(shape)
    elif fill in ("zeros", "ones", "nan"):
        values = np.full(shape, {"zeros": 0.0, "ones": 1.0, "nan": np.nan}[fill])
    else:
        values = np.full(shape, float(_scalar("f64" if name[0] in "fb" else name, fill, text)))
    if name == "bf16":
        return _bfloat16_bits(values.astype(np.float32))
    return values.astype(dtype)
