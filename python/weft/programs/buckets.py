# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Buckets of sizes: those that share a choice of schedules, and a plan of a library."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

from ..runtime.plans import evaluate

_NAME = re.compile(r"[A-Za-z_]\w*")


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
        """The names of all symbols, those of batch and heads first."""
        return self.batch + self.lengths

    def check(self, program: str, sizes: Iterable[str]) -> None:
        """ValueError where sizes name what is no symbol of the program's: a misspelt one would be passed over."""
        for name in sizes:
            if name not in self.all():
                raise ValueError(
                    f"expected sizes of '{program}', {', '.join(self.all()) or 'which has none'}, but got '{name}'"
                )


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
        """The bucket that these sizes are in; ``sizes`` gives each symbol its value."""
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
