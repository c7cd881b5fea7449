# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Element types of arrays, by the short names that signatures and manifests have: "fp16" of numpy.float16.

NumPy and torch are never imported here: dtypes are told by how they are spelled.
"""

from __future__ import annotations

from typing import Any

_NAMES = {
    "bool": "i1",
    "int8": "i8",
    "int16": "i16",
    "int32": "i32",
    "int64": "i64",
    "uint8": "u8",
    "uint16": "u16",
    "uint32": "u32",
    "uint64": "u64",
    "float16": "fp16",
    "float32": "fp32",
    "float64": "fp64",
    "bfloat16": "bf16",
    "float8_e4m3fn": "fp8e4nv",
    "float8_e5m2": "fp8e5",
}
#: what torch and NumPy call each type
TORCH = {ours: theirs for theirs, ours in _NAMES.items()}
#: floats as kernels' IR spells them, by that
OF_IR = {"f8E4M3FN": "fp8e4nv", "f8E5M2": "fp8e5", "f16": "fp16", "f32": "fp32", "f64": "fp64"}
# Arrays of NumPy hold these types as integers of as many bits.
_BITS_OF = {"bf16": ("u16", "i16"), "fp16": ("u16", "i16")}
_BITS_OF |= dict.fromkeys(("fp8e4nv", "fp8e4b15", "fp8e5"), ("u8", "i8"))

_known: dict[Any, str] = {}


def array_type(element: Any) -> str:
    """The short name of a NumPy or torch dtype; TypeError when kernels have no such type."""
    name = _known.get(element)
    if name is None:
        name = _NAMES.get(str(element).removeprefix("torch."))
        if name is None:
            raise TypeError(f"expected an array of a type that kernels have, but got {element}")
        _known[element] = name
    return name


def is_float(name: str) -> bool:
    """Whether a type has gradients: integers and truths have none."""
    return name.startswith(("fp", "bf"))


def holds(array: str, wanted: str) -> bool:
    """Whether an array of one type holds elements of another: of the same, or their bits as integers."""
    return array == wanted or array in _BITS_OF.get(wanted, ())


def same_bytes(array: str, wanted: str) -> bool:
    """Whether an array of one type may stand for another in a launch by hand: integers with a sign and without one
    have the same bytes, and truths are bytes."""
    return (
        holds(array, wanted)
        or {array, wanted} <= {"i1", "i8", "u8"}
        or (array[1:] == wanted[1:] and {array[0], wanted[0]} == {"i", "u"})
    )
