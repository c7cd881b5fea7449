# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Calls that are known again: what a call on torch's tensors became, under facts that take little time to find.

A program is found anew in each call by all that it reads (Program.trace). Where a call has plain tensors, numbers and
patterns without arrays, the same facts lead to the same form, as long as no variable that the program reads has another
value. All that the form depends on beside is in ``Known``, or sends the call the long way.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any

from ..compiler.reads import Reads, Unknown
from ..patterns import Pattern
from ..runtime.devices import device_for
from ..runtime.plain import observed
from . import choices
from .facts import must_be_deterministic

_ATOMS = (int, bool, str, type(None))


@dataclass(frozen=True)
class Known:
    """What one call became. ``order`` says which of a call's tensors each of the program's is, in the order that
    ``facts_of`` meets them; ``run`` gives the result of those."""

    order: tuple[int, ...]
    run: Callable[[list[Any]], Any]
    reads: Reads
    surroundings: tuple[Any, ...]

    def holds(self, tensors: Sequence[Any]) -> bool:
        """Whether a call with equal facts would become the same."""
        return self.surroundings == surroundings_of(tensors) and self.reads.unchanged()


def facts_of(args: tuple[Any, ...], keywords: dict[str, Any]) -> tuple[Hashable, list[Any]] | None:
    """A key of a call, and its tensors; None where the call is to go the long way."""
    torch = sys.modules.get("torch")
    if torch is None or observed() or torch._C._is_any_autocast_enabled():
        return None
    forward = sys.modules.get("torch.autograd.forward_ad")
    if forward is not None and forward._current_level >= 0:
        return None
    tensors: list[Any] = []
    facts: list[Hashable] = [torch.is_grad_enabled()]
    plain = (torch.Tensor, torch.nn.Parameter)
    for value in args:
        if not _add(torch, plain, value, facts, tensors):
            return None
    for name, value in keywords.items():
        facts.append(name)
        if not _add(torch, plain, value, facts, tensors):
            return None
    return tuple(facts), tensors


def _add(torch: Any, plain: tuple[type, ...], value: Any, facts: list[Hashable], tensors: list[Any]) -> bool:
    kind = type(value)
    if kind in plain:
        if value.is_nested or value.layout is not torch.strided or value.is_meta:
            return False
        tensors.append(value)
        # Dispatch keys tell what a tensor is beside memory: sparse, nested, negated, of a transform, on a device.
        keys = torch._C._dispatch_keys(value).raw_repr()
        aligned = value.data_ptr() % 16
        facts.append((keys, value.dtype, value.shape, value.stride(), aligned, value.requires_grad, value.device))
    elif kind in _ATOMS:
        facts.append((kind, value))
    elif kind is float:
        facts.append((kind, value.hex()))
    elif kind is Pattern and value.is_plain:
        facts.append(value)
    elif kind is tuple or kind is list:
        facts.append((kind, len(value)))
        return all(_add(torch, plain, each, facts, tensors) for each in value)
    else:
        return False
    return True


def surroundings_of(tensors: Sequence[Any]) -> tuple[Any, ...]:
    """What the form depends on that no argument says."""
    return device_for(tuple(tensors)), os.environ.get("WEFT_TARGET"), must_be_deterministic(), choices.changes()


def known(
    tensors: Sequence[Any], arrays: Sequence[Any], function: Any, run: Callable[[list[Any]], Any]
) -> Known | None:
    """A call that went the long way, to be known again; None where that cannot be."""
    places = {id(each): number for number, each in enumerate(tensors)}
    if len(places) < len(tensors) or any(id(each) not in places for each in arrays):  # which is which, or made plain
        return None
    reads = Reads()
    try:
        reads.key(function)
    except (Unknown, RecursionError):
        return None
    if not reads.unchanged():
        return None
    return Known(tuple(places[id(each)] for each in arrays), run, reads, surroundings_of(tensors))
