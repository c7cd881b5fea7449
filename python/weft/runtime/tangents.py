# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Linearised functions of a program, for torch (runtime/transforms.py): NAME.forward.tangent gives what NAME.forward
gives and how that changes, NAME.backward.tangent the same of the gradients."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch

from .elements import is_float
from .first_order import second_order

if TYPE_CHECKING:
    from .program import Program


@dataclass(frozen=True)
class Linearised:
    """The function of a part's outputs and their tangents: its plan, and what runs it on plain tensors."""

    plan: Mapping[str, Any]
    run: Callable[[Sequence[Any]], Sequence[Any]]


#: by a part of a program (".forward", ".backward", or "" where there is no backward) and the numbers of the inputs that
#: have tangents
Linearise = Callable[[str, tuple[int, ...]], Linearised]


class FromLibrary:
    """The linearised functions of a library's program, given its parts by "", ".forward" and ".backward", and what
    finds a program of the library by its name. They take tangents of all inputs: zeros where none are given."""

    def __init__(self, parts: Mapping[str, Program], find: Callable[[str], Program | None]):
        self.parts, self.find = parts, find
        self.name = parts[""].name

    def __call__(self, part: str, numbers: tuple[int, ...]) -> Linearised:
        """See ``Linearise``."""
        whole = self.find(f"{self.name}{part}.tangent") or (None if part else self.find(f"{self.name}.forward.tangent"))
        if whole is None:
            raise NotImplementedError(self._none(part))
        inputs, outputs = self.parts[part].inputs, self.parts[part].outputs
        places = _places(whole.inputs, len(inputs))
        if any(number not in places for number in numbers):
            raise NotImplementedError(self._none(part))
        given = [*range(len(outputs)), *_tangents(whole.outputs, len(outputs))]
        plan = {
            **whole.plan,
            "inputs": [*inputs, *(whole.inputs[places[number]] for number in numbers)],
            "outputs": [whole.outputs[number] for number in given],
        }

        def run(tensors: Sequence[Any]) -> Sequence[Any]:
            values = list(tensors[: len(inputs)])
            tangents = dict(zip(numbers, tensors[len(inputs) :], strict=True))
            values += [tangents[n] if n in tangents else torch.zeros_like(values[n]) for n in places]
            found = whole.queue([readable(each) for each in values])
            return [found[number] for number in given]

        return Linearised(plan, run)

    def second_order(self) -> bool:
        """Whether gradients have tangents."""
        return self.find(f"{self.name}.backward.tangent") is not None

    def _none(self, part: str) -> str:
        if part == ".backward":
            return second_order(self.name)
        return (
            f"'{self.name}': expected a program that has its tangent, but got one of a library, which has none: "
            "compile it with tangents=True, or call the program that the library was compiled from"
        )


def _floats(described: Sequence[Mapping[str, Any]]) -> int:
    """How many of a plan's inputs or outputs are floats."""
    return sum(is_float(each["type"]) for each in described)


def _places(inputs: Sequence[Mapping[str, Any]], count: int) -> dict[int, int]:
    """Where a linearised function takes the tangents of the first ``count`` of its inputs, by their numbers: behind
    those, in order, of all that have one."""
    found, place = {}, count
    names = {each["name"] for each in inputs[:count]}
    for number in range(count):
        name = f"t_{inputs[number]['name']}"
        while name in names:  # as the compiler calls it then
            name += "_"
        if place < len(inputs) and inputs[place]["name"] == name:
            found[number], place = place, place + 1
    return found


def _tangents(outputs: Sequence[Mapping[str, Any]], count: int) -> list[int]:
    """Which outputs of a linearised function are the tangents of the first ``count`` of its results."""
    results = next(n for n in range(1, len(outputs) + 1) if n + _floats(outputs[:n]) == len(outputs))
    return [results + n for n in range(_floats(outputs[:count]))]


def readable(tensor: torch.Tensor) -> torch.Tensor:
    """A tensor, or a copy of it in memory that every kernel reads."""
    strided = tensor.dim() == 0 or tensor.stride(-1) == 1
    aligned = tensor.data_ptr() % 16 == 0 and all(s * tensor.itemsize % 16 == 0 for s in tensor.stride()[:-1])
    return tensor if strided and aligned else tensor.clone(memory_format=torch.contiguous_format)


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
