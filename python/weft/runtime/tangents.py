# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Linearised functions of a program, for torch (runtime/transforms.py): NAME.forward.tangent gives what NAME.forward
gives and how that changes, NAME.backward.tangent the same of the gradients."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .first_order import second_order


@dataclass(frozen=True)
class Linearised:
    """The function of a part's outputs and their tangents: its plan, and what runs it on plain tensors."""

    plan: Mapping[str, Any]
    run: Callable[[Sequence[Any]], Sequence[Any]]


#: by a part of a program (".forward", ".backward", or "" where there is no backward) and the numbers of the inputs that
#: have tangents
Linearise = Callable[[str, tuple[int, ...]], Linearised]


def further(name: str, part: str) -> str:
    """What those are told who differentiate tangents of a part of the program ``name`` once more than there is."""
    if part == ".backward":
        order, remedy = "third order", "compute this part with torch's own operations"
    else:
        order, remedy = "a tangent's tangent", "take one of the two derivatives in reverse mode"
    return f"'{name}': expected derivatives of first or second order, but got a call for one of {order}: {remedy}"


def without_tangent(name: str, part: str, reason: str) -> str:
    """What those are told who ask for a tangent that a part of the program ``name`` has not."""
    if part == ".backward":
        return f"{second_order(name)} ({reason})"
    return f"'{name}': expected a program that can be differentiated in forward mode, but {reason}"
