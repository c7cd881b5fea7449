# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""What candidates are run on: inputs made up for a program's types, and sizes reduced to what the simulator affords."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

import numpy as np

from weft.programs.buckets import Symbols
from weft.programs.simulated import TYPES
from weft.runtime.plans import evaluate

CHECKED = 300  # tokens that results are compared on: whole blocks of every size, and a part of one
COUNTED = 8192  # tokens that counters are taken on at most


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
    """Arrays of a plan's inputs: those that are given, and normal numbers for floats, scaled as ``spread`` says.
    Raises ValueError for others."""
    made = []
    symbolic = any(_symbolic(each["dims"]) for each in inputs)
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
            deviation = spread(shape) if symbolic and not _symbolic(described["dims"]) else 1.0
            made.append(rounded((deviation * generator.standard_normal(shape)).astype(np.float32), kind))
    return made


def spread(weight: Sequence[int]) -> float:
    """The standard deviation that a weight [out, in, ...] is drawn with, 1/sqrt(fan in), as torch.nn's layers start:
    what it is applied to keeps its size. Normal weights of a few layers make scores of 10⁷, which float32 resolves to
    4: every result of the backward is noise then, or NaN. A vector is drawn as anything else is."""
    fan_in: int = prod(weight[1:])
    return 1.0 / fan_in**0.5 if len(weight) > 1 and fan_in else 1.0


def _symbolic(dims: Sequence[str | int]) -> bool:
    """Whether sizes depend on the call: an input of a program that has such, and does not itself, is a weight."""
    return not all(str(dim).isdigit() for dim in dims)


def _fitting(array: np.ndarray, name: str, kind: str, shape: tuple[int, ...]) -> np.ndarray:
    if array.shape != shape or array.dtype != TYPES[kind]:
        raise ValueError(f"expected '{name}' to be {kind} {shape}, but got {array.dtype} {array.shape}")
    return np.ascontiguousarray(array)


def rounded(values: np.ndarray, kind: str) -> np.ndarray:
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
