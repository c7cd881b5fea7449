# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""A call of a program: its arguments taken apart, and what it gives."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from ..compiler.reads import key_of
from ..compiler.targets import target_of
from ..runtime.plain import seen_by_torch
from . import foreign
from .compiled import compiled, runnable
from .facts import Facts, must_be_deterministic, wants_gradients
from .inputs import rebuild, spelling
from .running import prepared, run, run_direct, tuned
from .trace import Traced


@dataclass(frozen=True)
class Call:
    """The arguments of a call, arrays apart from the rest."""

    names: tuple[str, ...]
    arrays: tuple[Any, ...]
    facts: tuple[Facts, ...]
    structure: Any
    selective: bool = False  # gradients are asked for of those inputs only that require them
    home: Any = None  # an array of another library than NumPy and torch, which results are to be of

    def key(self, function: Callable[..., Any]) -> Any:
        """What two calls of one compiled form agree in, beside sizes: all that the function and what it is called with
        read, by value, now. None where something of it cannot be compared."""
        foreign.trust_libraries()
        found = key_of(function, spelling(self.structure))
        if found is None:
            return None
        facts = tuple((f.element.name, len(f.shape), f.aligned, f.constant) for f in self.facts)
        return found, facts, must_be_deterministic()


def ready(traced: Traced, arrays: Sequence[Any]) -> Callable[[Sequence[Any]], Any]:
    """What runs a program on a call's arrays, and on others of the same facts; differentiable where one of them asks
    for gradients."""
    compute = _computed(traced, arrays)

    def run_on(given: Sequence[Any]) -> Any:
        given = [*given, *traced.captured]
        results = compute(given)
        return rebuild(traced.result, lambda number: results[number] if number >= 0 else given[-1 - number])

    return run_on


def load(traced: Traced, arrays: Sequence[Any], device: Any) -> None:
    """Compile a program for a call's arrays, which need not have memory, and load its kernels on a device."""
    whole = [*arrays, *traced.captured]
    wants = traced.differentiable and wants_gradients(whole)
    form = tuned(traced, whole, wants, target_of(device), form=compiled if wants else runnable)
    for part in (".forward", ".backward") if wants else ("",):
        form.program(part).prepare(device.name)


def _computed(traced: Traced, arrays: Sequence[Any]) -> Callable[[Sequence[Any]], Sequence[Any]]:
    whole = [*arrays, *traced.captured]
    wants = traced.differentiable and wants_gradients(whole)
    if seen_by_torch(whole):
        from . import recorded  # PyTorch is loaded already: its tensors are the arguments

        return lambda given: recorded.results(traced, given, wants)
    if wants:
        from .autograd import differentiable

        form = tuned(traced, whole, True)
        return lambda given: differentiable(form, prepared(traced, given))
    form = tuned(traced, whole, False, form=runnable)
    return lambda given: run_direct(form, "", given) or run(form, "", prepared(traced, given))
