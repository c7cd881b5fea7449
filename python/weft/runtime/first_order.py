# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Gradients that kernels computed, in torch's graph: there are none of second order, and whoever asks for them is told.

``torch.autograd.function.once_differentiable`` tells only those whose *incoming* gradient has a history: after
``y.sum()`` it has none, and the graph of ``create_graph=True`` would end here without a word.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch


class _FirstOrder(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, name: str, compute: Callable[[], Sequence[Any]], *tensors: Any) -> Any:
        ctx.name = name
        ctx.set_materialize_grads(False)
        return tuple(compute())

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        raise NotImplementedError(second_order(ctx.name))


def second_order(name: str) -> str:
    """What those are told who differentiate the gradients of the program ``name``."""
    return (
        f"'{name}': expected gradients of first order, but got a call for those of second order: Weft's programs are "
        "differentiated once; take the gradient without create_graph=True, or compute this part with torch's own "
        "operations"
    )


def first_order(name: str, compute: Callable[[], Sequence[Any]], tensors: Sequence[Any]) -> tuple[Any, ...]:
    """What ``compute`` gives: the gradients of the program ``name``, which depend on ``tensors``. Under
    create_graph=True a derivative of them raises NotImplementedError."""
    if torch.is_grad_enabled():
        made: tuple[Any, ...] = _FirstOrder.apply(name, compute, *tensors)
        return made
    return tuple(compute())
