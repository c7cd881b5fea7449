# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Times of the papers' mechanisms, beside the same formula in PyTorch's operations where memory holds its matrices."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any

import torch

from weft.first_gpu.cases import Case, LeftOut, Options
from weft.first_gpu.clock import Clock
from weft.first_gpu.mechanisms import flat, operands

NAMES = ("SEMA", "SFA", "SAS", "GAU")
_PLAIN = "PyTorch, operation by operation"


def cases(options: Options) -> Iterator[Case]:
    """Forward and backward of each mechanism at each length."""
    clock = Clock(options.rounds)
    for direction in ("forward", "backward"):
        for name in NAMES:
            for length in options.lengths:
                for by in ("Weft", _PLAIN):
                    run = functools.partial(_time, clock, options, name, direction, length, by)
                    yield Case((direction, name, f"{length:,}", by), run, ours=by == "Weft")


def _time(clock: Clock, options: Options, name: str, direction: str, length: int, by: str) -> dict[str, Any]:
    clock.clear()
    torch.manual_seed(0)
    made = operands(
        name,
        batch=max(1, options.tokens // length),
        length=length,
        width=options.width // 2,
        dtype=torch.bfloat16,
        where=clock.where,
    )
    if by != "Weft" and length > 4096:
        raise LeftOut("whole matrices of scores: up to 4,096 tokens")
    call: Callable[..., Any] | None = made.call if by == "Weft" else made.formula
    if call is None:
        raise LeftOut("its formula is a loop over tokens")
    leaves = [x.requires_grad_() for x in flat(made.tensors)]
    with torch.device(clock.where):  # the formulas make their masks where nothing else is said
        if direction == "forward":
            with torch.no_grad():
                return clock.measure(functools.partial(call, *made.tensors), made.operations)
        out = call(*made.tensors)
        gradient = torch.randn_like(out)
        queue = functools.partial(torch.autograd.grad, out, leaves, gradient, retain_graph=True, allow_unused=True)
        return clock.measure(queue, 2.5 * made.operations)
