# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Programs in torch's autograd: results of tensors that require gradients have them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from ..runtime.first_order import beside, first_order
from ..runtime.transforms import of_gradients
from .compiled import Compiled
from .running import Saved, backward, run


class _Program(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, form: Compiled, *arrays: Any) -> Any:
        results = run(form, ".forward", arrays)
        count = len(form.traced.outputs)
        ctx.form = form
        ctx.inputs = len(arrays)
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(*arrays, *(results[number] for number in form.saved_outputs))
        ctx.mark_non_differentiable(*(r for r in results[:count] if not r.dtype.is_floating_point))
        return tuple(results[:count])

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        tensors = ctx.saved_tensors
        saved = Saved(ctx.form, tuple(tensors[: ctx.inputs]), tuple(tensors[ctx.inputs :]))
        names = [signature.name for signature in ctx.form.traced.inputs]
        wanted = ctx.needs_input_grad[1:]

        def compute() -> list[Any]:
            found = backward(saved, gradients)
            mine = [found.get(name) if wants else None for name, wants in zip(names, wanted, strict=True)]
            return beside(mine, saved.inputs)

        def further(known: Sequence[Any], given: Sequence[Any]) -> list[Any]:
            from . import recorded

            operators = recorded.operators_of(ctx.form.traced, known[: ctx.inputs], True)
            return of_gradients(operators, known, len(gradients), given)

        return (None, *first_order(ctx.form.traced.name, compute, [*tensors, *gradients], further))


def differentiable(form: Compiled, arrays: Sequence[Any]) -> tuple[Any, ...]:
    """A program's results on torch tensors, with their history."""
    return tuple(_Program.apply(form, *arrays))
