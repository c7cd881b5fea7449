# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Programs under the transforms of torch.func: grad, vjp, jacrev and vmap, nested as they may be. torch lets functions
of autograd through its transforms, but not the gradients that torch.library registers for an operator.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch

from . import batching
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
        ctx.save_for_backward(*tensors, *operators.saved(output))
        ctx.mark_non_differentiable(*operators.without_gradients(output))

    @staticmethod
    def backward(ctx: Any, *given: Any) -> tuple[Any, ...]:
        return (
            None,
            *ctx.operators.by_input(_Backward.apply(ctx.operators, *ctx.operators.taken(ctx.saved_tensors, given))),
        )

    @staticmethod
    def jvp(ctx: Any, *tangents: Any) -> Any:
        raise NotImplementedError(
            f"'{ctx.operators.name}': expected a derivative in reverse mode, but got torch.func.jvp or forward AD: use "
            "torch.func.vjp or grad, or .backward()"
        )

    @staticmethod
    def vmap(info: Any, in_dims: Any, operators: Operators, *tensors: Any) -> tuple[Any, Any]:
        return batching.batched(
            lambda *each: _Forward.apply(operators, *each),
            *(operators.plans.forward, info.batch_size, in_dims[1:], tensors),
        )


class _Backward(torch.autograd.Function):
    """Gradients, of first order."""

    @staticmethod
    def forward(operators: Operators, *tensors: Any) -> tuple[Any, ...]:
        return operators.run_backward(tensors)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Any, ...]) -> None:
        ctx.operators = inputs[0]

    @staticmethod
    def backward(ctx: Any, *given: Any) -> Any:
        raise NotImplementedError(second_order(ctx.operators.name))

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
