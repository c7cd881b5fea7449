# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Arguments of a launch as the simulator takes them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from weft.simulator.tensor_maps import SimulatorError, TensorMap, buffer_of

#: A buffer: address of its first byte, bytes, offset of element 0, read only.
Buffer = tuple[int, int, int, bool]
#: The bytes of a struct, and the buffers whose addresses and the fields of tensor maps that go into it, by offset.
Struct = list[Any]


def packed(value: Any, name: str, size: int, align: int, pointer: bool) -> bytes | Buffer | Struct | dict[str, Any]:
    """What a parameter of ``size`` bytes holds: a buffer for an array, a tensor map as its fields, a struct with
    pointers for a tuple; everything else as bytes. Raises SimulatorError for what does not fit."""
    import numpy as np

    if isinstance(value, TensorMap):
        if size != 128:
            raise SimulatorError(f"expected a value of {size} bytes for '{name}', but got a tensor map of 128")
        return value.fields()
    if isinstance(value, tuple):
        return _struct(value, name, size, align)
    if isinstance(value, np.ndarray) and value.ndim == 0 and not (pointer and size == 8):
        value = value[()]
    if isinstance(value, np.ndarray):
        if size != 8:
            raise SimulatorError(f"expected a value of {size} bytes for '{name}', but got an array")
        return buffer_of(value)
    if isinstance(value, np.generic):
        data = value.tobytes()
    elif isinstance(value, (bytes, bytearray)):
        data = bytes(value)
    elif isinstance(value, float):
        data = np.dtype(f"f{size}").type(value).tobytes() if size in (2, 4, 8) else b""
    elif value is None and pointer:
        data = bytes(8)
    elif isinstance(value, int):
        try:
            data = value.to_bytes(size, "little", signed=value < 0)
        except OverflowError:
            raise SimulatorError(f"expected an integer of {size} bytes for '{name}', but got {value}") from None
    else:
        raise SimulatorError(f"expected an array or a number for '{name}', but got {type(value).__name__}")
    if len(data) != size:
        raise SimulatorError(f"expected {size} bytes for '{name}', but got {len(data)} ({type(value).__name__})")
    return data


def buffers_of(arguments: Iterable[Any]) -> Iterator[Buffer]:
    """The buffers among packed arguments and in their structs."""
    for each in arguments:
        if isinstance(each, tuple):
            yield each
        elif isinstance(each, list):
            yield from (buffer for _, buffer in each[1] if isinstance(buffer, tuple))


def _struct(members: tuple[Any, ...], name: str, size: int, align: int) -> Struct:
    """Each member at the next multiple of its own size, bytes at once and tensor maps at one of 64 or, as CUDA 13 has
    them, 128; the end at a multiple of the parameter's alignment, which tells the two apart."""
    import numpy as np

    data = bytearray()
    pointers: list[tuple[int, Any]] = []
    for number, member in enumerate(members):
        if isinstance(member, np.ndarray) and member.ndim:
            value = bytes(8)
        elif isinstance(member, (np.number, np.bool_)):
            value = member.tobytes()
        elif isinstance(member, TensorMap):
            value = bytes(128)
        elif isinstance(member, (bytes, bytearray)):
            data.extend(member)
            continue
        else:
            raise SimulatorError(
                f"expected an array, a tensor map, bytes or a NumPy scalar, whose size is known, as member {number} of "
                f"the struct '{name}', but got {type(member).__name__}"
            )
        data.extend(bytes(-len(data) % min(len(value), max(align, 64))))
        if isinstance(member, np.ndarray):
            pointers.append((len(data), buffer_of(member)))
        elif isinstance(member, TensorMap):
            pointers.append((len(data), member.fields()))
        data.extend(value)
    data.extend(bytes(-len(data) % align))
    if len(data) != size:
        raise SimulatorError(f"expected a struct of {size} bytes for '{name}', but got members of {len(data)}")
    return [bytes(data), pointers]
