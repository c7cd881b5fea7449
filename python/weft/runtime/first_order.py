# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Gradients that kernels computed, in torch's graph: those of second order come from the program's tangents
(runtime/tangents.py), or there are none, and whoever asks for them is told.

``torch.autograd.function.once_differentiable`` tells only those whose *incoming* gradient has a history: after
``y.sum()`` it has none, and the graph of ``create_graph=True`` would end here without a word.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

#: the gradients of the tensors that gradients depend on, given the tensors and what the gradients are multiplied with
Further = Callable[[Sequence[Any], Sequence[Any]], Sequence[Any]]


class _FirstOrder(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, name: str, compute: Callable[[], Sequence[Any]], further: Further | None, *tensors: Any
    ) -> Any:
        ctx.name, ctx.further = name, further
        ctx.set_materialize_grads(False)
        if further is not None:
            ctx.save_for_backward(*tensors)
        return tuple(compute())

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        if ctx.further is None:
            raise NotImplementedError(second_order(ctx.name))
        return (None, None, None, *ctx.further(ctx.saved_tensors, gradients))


def second_order(name: str) -> str:
    """What those are told who differentiate the gradients of the program ``name``."""
    return (
        f"'{name}': expected gradients of first order, but got a call for those of second order, which this program "
        "has not: take the gradient without create_graph=True, or compute this part with torch's own "
        "operations"
    )


def beside(gradients: Sequence[Any], inputs: Sequence[Any]) -> list[Any]:
    """Gradients of inputs, None of some, each on its input's device, as torch wants them: a program takes tensors of
    the host beside a GPU's, where all its results lie."""
    made = zip(gradients, inputs, strict=True)
    return [None if gradient is None else gradient.to(of.device) for gradient, of in made]


def first_order(
    name: str, compute: Callable[[], Sequence[Any]], tensors: Sequence[Any], further: Further | None = None
) -> tuple[Any, ...]:
    """What ``compute`` gives: the gradients of the program ``name``, which depend on ``tensors``. Under
    create_graph=True a derivative of them is what ``further`` gives; without it, it raises NotImplementedError."""
    if torch.is_grad_enabled():
        made: tuple[Any, ...] = _FirstOrder.apply(name, compute, further, *tensors)
        return made
    return tuple(compute())
