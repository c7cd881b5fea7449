# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Programs under the transforms of torch.func: grad, vjp, jvp, jacrev, jacfwd and vmap, nested as they may be, and on
dual tensors. torch lets functions of autograd through its transforms, but not the gradients that torch.library
registers for an operator.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch

from . import batching, tangents
from .first_order import second_order

if TYPE_CHECKING:
    from .operators import Operators


class _Forward(torch.autograd.Function):
    """Outputs of the forward operator: the results, and what the backward needs."""

    @staticmethod
    def forward(operators: Operators, *tensors: Any) -> tuple[Any, ...]:
        return operators.run_forward(tensors)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Any, ...]) -> None:
        operators, *tensors = inputs
        ctx.operators = operators
        ctx.given = [(each.shape, each.dtype, each.device) for each in output]
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(*tensors, *operators.saved(output))
        ctx.save_for_forward(*tensors)
        # What is kept for the backward has a tangent.
        ctx.mark_non_differentiable(*(each for each in output if not each.is_floating_point()))

    @staticmethod
    def backward(ctx: Any, *given: Any) -> tuple[Any, ...]:
        whole = [
            torch.zeros(shape, dtype=dtype, device=device) if each is None else each
            for each, (shape, dtype, device) in zip(given, ctx.given, strict=True)
        ]
        taken = ctx.operators.taken(ctx.saved_tensors, whole)
        return (None, *ctx.operators.by_input(_Backward.apply(ctx.operators, *taken)))

    @staticmethod
    def jvp(ctx: Any, _: Any, *given: Any) -> tuple[Any, ...]:
        part = "" if ctx.operators.backward is None else ".forward"
        return tuple(tangents.pushed(ctx.operators, part, ctx.saved_tensors, given)[1])

    @staticmethod
    def vmap(info: Any, in_dims: Any, operators: Operators, *tensors: Any) -> tuple[Any, Any]:
        return batching.batched(
            lambda *each: _Forward.apply(operators, *each),
            *(operators.plans.forward, info.batch_size, in_dims[1:], tensors),
        )


class _Backward(torch.autograd.Function):
    """Gradients; of first order where the program has no tangent."""

    @staticmethod
    def forward(operators: Operators, *tensors: Any) -> tuple[Any, ...]:
        return operators.run_backward(tensors)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Any, ...]) -> None:
        ctx.operators, *tensors = inputs
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(*tensors)
        ctx.save_for_forward(*tensors)

    @staticmethod
    def backward(ctx: Any, *given: Any) -> Any:
        if ctx.operators.linearise is None:
            raise NotImplementedError(second_order(ctx.operators.name))
        tensors, count = ctx.saved_tensors, len(ctx.operators.plans.forward["inputs"])
        gradients = len(ctx.operators.plans.differentiable)
        kept = len(tensors) - count - gradients
        found, of_gradients = tangents.second(
            ctx.operators, tensors[:count], tensors[count + kept :], ctx.operators.by_input(given)
        )
        return (None, *found, *([None] * kept), *of_gradients)

    @staticmethod
    def jvp(ctx: Any, _: Any, *given: Any) -> tuple[Any, ...]:
        return tuple(tangents.pushed(ctx.operators, ".backward", ctx.saved_tensors, given)[1])

    @staticmethod
    def vmap(info: Any, in_dims: Any, operators: Operators, *tensors: Any) -> tuple[Any, Any]:
        assert operators.plans.backward is not None
        return batching.batched(
            lambda *each: _Backward.apply(operators, *each),
            *(operators.plans.backward, info.batch_size, in_dims[1:], tensors),
        )


def transformed() -> bool:
    """Whether a transform of torch.func is at work that batches or differentiates."""
    if torch._C._functorch.maybe_current_level() is None:
        return False
    top = torch._C._functorch.peek_interpreter_stack()
    return bool(top.key() != torch._C._functorch.TransformType.Functionalize)


def forward(operators: Operators, tensors: Sequence[Any]) -> tuple[Any, ...]:
    """The outputs of a program's forward, under transforms."""
    found: tuple[Any, ...] = _Forward.apply(operators, *tensors)
    return found
