# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""What candidates are run on: inputs made up for a program's types, sizes reduced to what the simulator affords, and
the buckets of sizes that share a choice.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from weft.programs.plans import evaluate
from weft.programs.simulated import TYPES

CHECKED = 300  # tokens that results are compared on: whole blocks of every size, and a part of one
_NAME = re.compile(r"[A-Za-z_]\w*")
COUNTED = 8192  # tokens that counters are taken on at most


@dataclass(frozen=True)
class Symbols:
    """The symbols among a program's sizes: those of its batch and heads, which multiply the same work, and others."""

    batch: tuple[str, ...]
    lengths: tuple[str, ...]

    @staticmethod
    def of(inputs: Sequence[Mapping[str, Any]]) -> Symbols:
        """From the inputs of a plan. A batch or a number of heads is a size of axis 0 or 1 of four, and of those only,
        but for vectors over the heads."""
        batch: dict[str, None] = {}
        lengths: dict[str, None] = {}
        for described in inputs:
            dims = described["dims"]
            for axis, dim in enumerate(dims):
                for name in symbols_of(dim):
                    (batch if len(dims) > 2 and axis < 2 else lengths)[name] = None
        whole = tuple(name for name in lengths if name not in batch)
        return Symbols(tuple(batch), whole)

    def all(self) -> tuple[str, ...]:
        return self.batch + self.lengths


def symbols_of(expression: str) -> list[str]:
    """The names in a size such as "4*Hkv"."""
    return [name for name in _NAME.findall(expression) if name not in ("cdiv", "min", "max")]


@dataclass(frozen=True)
class Bucket:
    """Sizes that share a choice: each length, and the product of batch and heads, between a power of two and the next.

    ``guards`` are those that the library's dispatch table has (docs/LibraryFormat.md).
    """

    guards: tuple[tuple[str, int, int], ...]
    """a size, at least, below"""

    @staticmethod
    def of(symbols: Symbols, sizes: Mapping[str, int]) -> Bucket:
        measured = [(name, sizes[name]) for name in symbols.lengths]
        if symbols.batch:
            measured.append(("*".join(symbols.batch), prod(sizes[name] for name in symbols.batch)))
        return Bucket(tuple((name, low, 2 * low) for name, size in measured for low in [_floor(size)]))

    def manifest(self) -> list[dict[str, Any]]:
        """As a plan's "guards"."""
        return [{"size": name, "at_least": low, "below": high} for name, low, high in self.guards]

    def holds(self, sizes: Mapping[str, int]) -> bool:
        """Whether the sizes are in the bucket."""
        return all(
            set(symbols_of(name)) <= set(sizes) and low <= evaluate(name, sizes) < high
            for name, low, high in self.guards
        )

    def __str__(self) -> str:
        return ", ".join(f"{low} ≤ {name} < {high}" for name, low, high in self.guards) or "all sizes"


def _floor(size: int) -> int:
    return 1 << (size.bit_length() - 1) if size > 0 else 0


def check_sizes(symbols: Symbols, sizes: Mapping[str, int]) -> dict[str, int]:
    """Sizes small enough to compare results on, with the seams that large ones have."""
    return {n: min(sizes[n], 2 if n in symbols.batch else CHECKED) for n in symbols.all()}


def count_sizes(symbols: Symbols, sizes: Mapping[str, int], longest: int = COUNTED) -> dict[str, int]:
    """Sizes that counters are taken on: one batch and one group of heads, as each costs the same."""
    return {name: 1 if name in symbols.batch else min(sizes[name], longest) for name in symbols.all()}


def make_inputs(
    inputs: Sequence[Mapping[str, Any]],
    sizes: Mapping[str, int],
    given: Mapping[str, np.ndarray],
    generator: np.random.Generator,
) -> list[np.ndarray]:
    """Arrays of a plan's inputs: those that are given, and normal numbers for floats. Raises ValueError for others."""
    made = []
    for described in inputs:
        name, kind = described["name"], described["type"]
        shape = tuple(evaluate(dim, sizes) for dim in described["dims"])
        if name in given:
            made.append(_fitting(given[name], name, kind, shape))
        elif kind in ("i8", "i32", "i64", "i1"):
            raise ValueError(
                f"expected an array for the input '{name}', as numbers of type {kind} cannot be made up; give it "
                f"with --input {name}=FILE.npy, or as an argument of weft.tuning.tune"
            )
        else:
            made.append(_rounded(generator.standard_normal(shape).astype(np.float32), kind))
    return made


def _fitting(array: np.ndarray, name: str, kind: str, shape: tuple[int, ...]) -> np.ndarray:
    if array.shape != shape or array.dtype != TYPES[kind]:
        raise ValueError(f"expected '{name}' to be {kind} {shape}, but got {array.dtype} {array.shape}")
    return np.ascontiguousarray(array)


def _rounded(values: np.ndarray, kind: str) -> np.ndarray:
    """float32 numbers in a plan's type; bf16 as its bits."""
    if kind != "bf16":
        return values.astype(TYPES[kind])
    bits = values.view(np.uint32)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)


def widened(array: np.ndarray, kind: str) -> np.ndarray:
    """The same numbers as the widened program takes them: floats as float32."""
    if kind == "bf16":
        return (array.astype(np.uint32) << 16).view(np.float32)
    return array.astype(np.float32) if kind == "fp16" else array
