# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Descriptors of arrays that are made on the host and passed to kernels."""

from __future__ import annotations

import operator
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass
class TensorDescriptor:
    """An array, its sizes and strides in elements, and the sizes of the blocks that a kernel reads and writes of it:
    ``desc.load([row, column])`` and ``desc.store([row, column], block)``. What lies outside of the array is not
    written, and read as 0, or as NaN with ``padding="nan"``.

    As Triton's; its addresses and strides need not be multiples of 16 bytes, and the last stride may be any.

        desc = TensorDescriptor.from_tensor(x, [64, 32])
    """

    base: Any
    shape: Sequence[int]
    strides: Sequence[int]
    block_shape: Sequence[int]
    padding: str = "zero"
    round_f32_to_tf32: bool = False

    def __post_init__(self) -> None:
        ranks = {len(self.shape), len(self.strides), len(self.block_shape)}
        if len(ranks) > 1 or 0 in ranks:
            raise ValueError(
                "expected 'shape', 'strides' and 'block_shape' of one length, at least 1, but got "
                f"{len(self.shape)}, {len(self.strides)} and {len(self.block_shape)}"
            )
        if self.padding not in ("zero", "nan"):
            raise ValueError(f"expected 'padding' to be 'zero' or 'nan', but got {self.padding!r}")
        if self.round_f32_to_tf32:
            raise ValueError("expected 'round_f32_to_tf32' to be False, but got True; wl.dot rounds its operands")

    @staticmethod
    def from_tensor(tensor: Any, block_shape: Sequence[int], padding: str = "zero") -> TensorDescriptor:
        """A descriptor of a whole array of NumPy, torch or another library with shapes and strides."""
        strides = tensor.stride() if callable(getattr(tensor, "stride", None)) else _in_elements(tensor)
        return TensorDescriptor(tensor, list(tensor.shape), list(strides), list(block_shape), padding)


def _in_elements(array: Any) -> list[int]:
    size = array.dtype.itemsize
    if any(stride % size for stride in array.strides):
        raise ValueError(f"expected strides that are multiples of {size} bytes, but got {tuple(array.strides)}")
    return [stride // size for stride in array.strides]


def is_descriptor(value: Any) -> bool:
    """Whether a value is a descriptor made on the host: this class's, or one like it."""
    return type(value) is TensorDescriptor or (
        hasattr(value, "block_shape") and hasattr(value, "base") and hasattr(value, "strides")
    )


def is_composite(value: Any) -> bool:
    """Whether an argument of a kernel is made of others: a tuple, a list or a descriptor."""
    return isinstance(value, (tuple, list)) or (type(value).__name__ == "TensorDescriptor" and is_descriptor(value))


def parts(name: str, value: Any) -> Iterator[tuple[str, Any, bool]]:
    """What an argument is made of, by name, and whether that is a constant: ``x[0]``, ``x[1][0]``, ``x.base``."""
    if isinstance(value, (tuple, list)):
        if not value:
            yield name, (), True
        fields = getattr(value, "_fields", None)  # of a named tuple
        for index, part in enumerate(value):
            yield from parts(f"{name}.{fields[index]}" if fields else f"{name}[{index}]", part)
    elif is_composite(value):
        yield f"{name}.base", value.base, False
        for what in ("shape", "strides"):
            for index, number in enumerate(getattr(value, what)):
                yield f"{name}.{what}[{index}]", operator.index(number), False
        yield f"{name}.block_shape", tuple(map(operator.index, value.block_shape)), True
        yield f"{name}.padding", getattr(value, "padding", "zero"), True
    else:
        yield name, value, isinstance(value, str)


def leaves(values: Sequence[Any]) -> list[Any]:
    """The values of which arguments are made."""
    if not any(map(is_composite, values)):
        return list(values)
    return [leaf for value in values for _, leaf, _ in parts("", value)]
