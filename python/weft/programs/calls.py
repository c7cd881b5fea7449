# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""A call of a program: its arguments taken apart, and what it gives."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ..compiler.reads import key_of
from ..runtime.plain import seen_by_torch
from . import foreign
from .compiled import runnable
from .facts import Facts, must_be_deterministic, wants_gradients
from .inputs import rebuild, spelling
from .running import prepared, run, tuned
from .trace import Traced


@dataclass(frozen=True)
class Call:
    """The arguments of a call, arrays apart from the rest."""

    names: tuple[str, ...]
    arrays: tuple[Any, ...]
    facts: tuple[Facts, ...]
    structure: Any
    selective: bool = False  # gradients are asked for of those inputs only that require them

    def key(self, function: Callable[..., Any]) -> Any:
        """What two calls of one compiled form agree in, beside sizes: all that the function and what it is called with
        read, by value, now. None where something of it cannot be compared."""
        foreign.trust_libraries()
        found = key_of(function, spelling(self.structure))
        if found is None:
            return None
        facts = tuple((f.element.name, len(f.shape), f.aligned, f.constant) for f in self.facts)
        return found, facts, must_be_deterministic()


def call(traced: Traced, given: Call) -> Any:
    """Run a program on a call's arrays; differentiable where one of them asks for gradients."""
    if seen_by_torch([*given.arrays, *traced.captured]):
        from . import recorded  # (PyTorch is loaded by whoever made the tensors.)

        arrays = [*given.arrays, *traced.captured]
        results = list(recorded.results(traced, arrays, wants_gradients(arrays)))
        return rebuild(traced.result, lambda number: results[number] if number >= 0 else arrays[-1 - number])
    arrays = prepared(traced, given.arrays)
    if wants_gradients(arrays):
        from .autograd import differentiable

        results = list(differentiable(traced, arrays))
    else:
        results = run(tuned(traced, arrays, False, form=runnable), "", arrays)
    return rebuild(traced.result, lambda number: results[number] if number >= 0 else arrays[-1 - number])
