# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Tile kernels in Triton's names, by family: each with inputs, and what they become in float64 by PyTorch.

The same source is compiled by Triton, and by Weft where ``weft.triton`` stands in its place.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch

FAMILIES = (
    "rows",
    "norms",
    "matmul",
    "quantised",
    "narrow",
    "serving",
    "paged",
    "training",
    "attention",
    "linear",
    "indexed",
    "irregular",
    "operators",
    "points",
    "apart",
    "forms",
    "installed",
)


@dataclass
class Case:
    """A launch: a kernel, what it is called with, and the contents that its outputs must get.

    ``expected`` maps the names of tensors among ``arguments`` to float64; where it is empty, whatever changes is
    compared with Triton's, and ``known`` has the errors, over what is allowed, of the operator that makes the launch.
    ``peer_constants`` are those that Triton needs otherwise: its blocks' sizes are powers of two.
    ``tolerance`` is how far an element may be off, over the largest that is expected; None stands for what rounding to
    the output's type explains.
    """

    kernel: Any
    grid: tuple[int, ...]
    arguments: dict[str, Any]
    constants: dict[str, Any]
    expected: dict[str, torch.Tensor]
    warps: int = 4
    stages: int = 3
    tolerance: float | None = None
    known: dict[str, float] = field(default_factory=dict)
    peer_constants: dict[str, Any] = field(default_factory=dict)


#: makers of cases by name; several launches of one call share a maker
CASES: dict[str, Callable[[], Case]] = {}


def case(name: str, *given: Any, **named: Any) -> Callable[[Callable[..., Case]], Callable[..., Case]]:
    """Register a maker of a case under a name, with what it is called with."""

    def register(make: Callable[..., Case]) -> Callable[..., Case]:
        if name in CASES:
            raise ValueError(f"expected each name once, but got '{name}' again")
        CASES[name] = lambda: make(*given, **named)
        return make

    return register


def load() -> dict[str, Callable[[], Case]]:
    """All cases: imports the families, with what is called ``triton`` now. Where launches of inductor's kernels were
    written down, these instead."""
    for family in ("inductor",) if "WEFT_INDUCTOR_LAUNCHES" in os.environ else FAMILIES:
        if family == "installed" and importlib.util.find_spec("fla") is None:
            continue
        importlib.import_module(f"tile_kernels.{family}")
    return CASES


def poisoned(*size: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    """An output before a launch: NaN, or the smallest integer."""
    if dtype.is_floating_point:
        return torch.full(size, torch.nan).to(dtype)
    return torch.full(size, torch.iinfo(dtype).min, dtype=dtype)
