# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""What patterns ask of their integers, sizes and arrays; errors name the function of weft and the argument."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..compiler import places
from ..compiler.arguments import index_of

#: no integer of a pattern is further from 0, so that sums of two have 32 bits
LARGEST = 2**30


def integer(where: str, name: str, value: Any, least: int = -LARGEST) -> int:
    """``value`` as an integer from ``least`` to 2**30. An error at the user's line names the argument ``name`` of
    weft.``where``."""
    number = index_of(value)
    if number is None:
        raise places.error(f"expected '{name}' of weft.{where} to be an integer, but got '{type(value).__name__}'")
    if not least <= number <= LARGEST:
        raise places.error(f"expected '{name}' of weft.{where} to be from {least} to {LARGEST}, but got {number}")
    return number


def sizes_of(where: str, name: str, value: Any, counts: Sequence[int]) -> tuple[int, ...]:
    """An integer, or a sequence of as many as ``counts`` allows; each at least 1."""
    if isinstance(value, (list, tuple)):
        if len(value) not in counts:
            wanted = " or ".join(map(str, counts))
            raise places.error(f"expected {wanted} sizes for '{name}' of weft.{where}, but got {len(value)}")
        return tuple(integer(where, name, v, 1) for v in value)
    return (integer(where, name, value, 1),)


def array(where: str, name: str, value: Any, ranks: Sequence[int]) -> Any:
    """``value``, an array with as many axes as one of ``ranks``. An error names the argument ``name`` of
    weft.``where``."""
    shape = getattr(value, "shape", None)
    rank = len(shape) if isinstance(shape, tuple) else None
    if rank is None:
        raise places.error(
            f"expected '{name}' of weft.{where} to be an array, but got '{type(value).__name__}'",
            "numpy.array(..., dtype=numpy.int32), or a tensor",
        )
    if rank not in ranks:
        wanted = " or ".join(map(str, ranks))
        raise places.error(f"expected {wanted} axes for '{name}' of weft.{where}, but got {rank}")
    return value
