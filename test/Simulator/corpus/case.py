# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""What a case of the corpus is: a kernel, a launch of it, and what its buffers must hold afterwards."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np


@dataclass
class Launch:
    """One launch: `args` as weft.simulator.launch takes them; `expected` by the position of the argument."""

    grid: tuple[int, ...]
    block: tuple[int, ...]
    args: list[Any]
    expected: dict[int, np.ndarray] = field(default_factory=dict)
    shared: int = 0
    rtol: float = 0.0
    atol: float = 0.0
    output: list[str] | None = None
    """Lines that printf must give, in any order."""


@dataclass(frozen=True)
class Case:
    """A kernel of `source` (a file of this directory) and what launches it."""

    source: str
    entry: str
    prepare: Callable[[np.random.Generator], Launch]

    @property
    def id(self) -> str:
        return f"{self.source.split('.')[0]}-{self.entry}"


CASES: list[Case] = []


def case(source: str):
    """Registers a function named as the kernel it launches."""

    def register(prepare: Callable[[np.random.Generator], Launch]):
        CASES.append(Case(source, prepare.__name__, prepare))
        return prepare

    return register


def from_bfloat(bits: np.ndarray) -> np.ndarray:
    """f32 of bf16 bits."""
    return (bits.astype(np.uint32) << 16).view(np.float32)


def to_bfloat(values: np.ndarray) -> np.ndarray:
    """bf16 bits of f32, to nearest even."""
    bits = np.asarray(values, np.float32).view(np.uint32)
    return ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype(np.uint16)


def compare(launch: Launch) -> None:
    """Raises where a buffer does not hold what it must."""
    for position, want in launch.expected.items():
        got = launch.args[position]
        if got.dtype == np.uint16 and want.dtype.kind == "f":
            got = from_bfloat(got)
        got = got.reshape(want.shape)
        if want.dtype.kind == "f":
            np.testing.assert_allclose(
                got.astype(np.float64), want, rtol=launch.rtol, atol=launch.atol, err_msg=f"argument {position}"
            )
        else:
            np.testing.assert_array_equal(got, want, err_msg=f"argument {position}")
