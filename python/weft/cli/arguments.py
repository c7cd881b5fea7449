# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Kernel arguments on the command line: ``f32[1024]=random``, ``i32=1000``, ``x.npy``, ``f32[1024]=nan:z.npy``.

A spelling is one of

    TYPE=NUMBER            a scalar passed by value
    TYPE[SHAPE]=FILL       a buffer; FILL is random, zeros, ones, nan, range or a number
    TYPE[SHAPE]=FILL:FILE  the same, written to FILE (.npy) after the launch
    FILE.npy               a buffer read from FILE
    FILE.npy:OUT.npy       the same, written to OUT.npy after the launch

TYPE is i1 i8 i16 i32 i64 u8 u16 u32 u64 f16 bf16 f32 f64, or fp16 fp32 fp64; bf16 travels as its bits, in uint16.
"""

from __future__ import annotations

import pathlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from weft.folders import new_file

if TYPE_CHECKING:
    import numpy as np

_TYPES = {
    "i1": "bool", "i8": "int8", "i16": "int16", "i32": "int32", "i64": "int64",
    "u8": "uint8", "u16": "uint16", "u32": "uint32", "u64": "uint64",
    "f16": "float16", "bf16": "uint16", "f32": "float32", "f64": "float64",
}  # fmt: skip
_LONG = {"fp16": "f16", "fp32": "f32", "fp64": "f64"}
_SCALAR = re.compile(r"^(\w+)=([^\[\]:]+)$")
_BUFFER = re.compile(r"^(\w+)\[([\d, x]*)\]=([^:]+)(?::(.+))?$")


@dataclass(frozen=True)
class Argument:
    """One kernel argument: its value, what it was spelled as, its type where that says one ("f32"; None of a file), and
    the file that its buffer is written to after the launch."""

    value: Any
    text: str = ""
    type: str | None = None
    output: pathlib.Path | None = None

    @property
    def is_buffer(self) -> bool:
        """Whether it is an array, and no number."""
        import numpy as np

        return isinstance(self.value, np.ndarray)

    @property
    def number(self) -> int | float:
        """The number of a scalar: of bf16 not its bits."""
        import numpy as np

        if self.type != "bf16":
            return self.value.item()
        return float((np.uint32(self.value) << 16).view(np.float32))


def parse_arguments(texts: Sequence[str], seed: int) -> list[Argument]:
    """The arguments that the texts spell;

    Random buffers are drawn from ``seed``. Raises ValueError with what was expected.
    """
    import numpy as np

    rng = np.random.default_rng(seed)
    return [_parse(text, rng) for text in texts]


def write_outputs(arguments: Sequence[Argument]) -> list[pathlib.Path]:
    """Write the buffers that have a file; returns the files."""
    return [write(a.output, a.value) for a in arguments if a.output is not None]


def write(path: pathlib.Path, array: Any) -> pathlib.Path:
    """Write an array as .npy. The file is whole or not there."""
    import numpy as np

    with new_file(path) as file, file.open("wb") as stream:
        np.save(stream, array)
    return path


def read(path: str) -> Any:
    """The array of a .npy file. Raises ValueError for one that is none."""
    import numpy as np

    try:
        return np.ascontiguousarray(np.load(path, allow_pickle=False))
    except (ValueError, EOFError) as error:
        why = "it is empty" if isinstance(error, EOFError) else str(error).splitlines()[0]
        raise ValueError(f"expected an array in '{path}', as numpy.save writes it, but got none: {why}") from error


def _parse(text: str, rng: np.random.Generator) -> Argument:
    source, _, output = text.partition(":")
    if source.endswith(".npy") and "=" not in source:
        return Argument(read(source), text, None, output_file(output, text) if ":" in text else None)
    if match := _BUFFER.match(text):
        name, shape, fill, output = match.groups()
        sizes = tuple(int(size) for size in re.split(r"[,x ]+", shape) if size)
        name = _LONG.get(name, name)
        return Argument(_fill(name, sizes, fill, rng, text), text, name, output_file(output, text) if output else None)
    if match := _SCALAR.match(text):
        name, number = match.groups()
        name = _LONG.get(name, name)
        return Argument(_scalar(name, number, text), text, name)
    raise ValueError(f"expected an argument like i32=5, f32[1024]=random or x.npy, but got '{text}'")


def output_file(name: str, text: str) -> pathlib.Path:
    """Where a buffer goes: refused before the launch where it could not be written after it."""
    path = pathlib.Path(name)
    if not name.endswith(".npy") or path.is_dir() or not path.absolute().parent.is_dir():
        raise ValueError(f"expected a file .npy in a folder that is there, but got '{name}' in '{text}'")
    return path


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
        if name == "i1":
            return np.bool_({"0": False, "1": True, "false": False, "true": True}[number.lower()])
        return dtype.type(int(number, 0) if dtype.kind in "iu" else float(number))
    except (KeyError, ValueError, OverflowError) as error:
        raise ValueError(f"expected a number of type {name}, but got '{number}' in '{text}'") from error


def _fill(name: str, shape: tuple[int, ...], fill: str, rng: np.random.Generator, text: str) -> np.ndarray:
    import numpy as np

    dtype = _dtype(name, text)
    try:
        if fill == "random" and dtype.kind == "b":
            return rng.integers(0, 1, shape, np.uint8, endpoint=True).astype(bool)
        if fill == "random" and dtype.kind in "iu" and name != "bf16":
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
            number = _scalar("f64" if name[0] in "fb" else name, fill, text)
            values = np.full(shape, number if name[0] in "iu" else float(number))
    except MemoryError:
        raise ValueError(f"expected a buffer that memory holds, but got '{text}'") from None
    except ValueError as error:
        if "expected" in str(error):
            raise
        raise ValueError(f"expected a shape that arrays have, but got '{text}': {error}") from None
    if name == "bf16":
        return _bfloat16_bits(values.astype(np.float32))
    return values.astype(dtype)
