# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Forward mode, and gradients of second order, by the linearised functions of a program: NAME.forward.tangent gives
what NAME.forward gives and how that changes, NAME.backward.tangent the same of the gradients.

With J the derivative of a program f at x and c a gradient of its results, NAME.backward gives g(x, c) = Jᵀ c. Of
⟨w, g(x, c)⟩ = ⟨c, J w⟩ the gradient in c is J w, which NAME.forward.tangent gives; that in x is the second derivative
of ⟨c, f⟩ applied to w, which is symmetric and so how g changes along w: what NAME.backward.tangent gives.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch

from . import batching
from .first_order import second_order

if TYPE_CHECKING:
    from .operators import Operators


@dataclass(frozen=True)
class Linearised:
    """The function of a part's outputs and their tangents: its plan, and what runs it on plain tensors."""

    plan: Mapping[str, Any]
    run: Callable[[Sequence[Any]], Sequence[Any]]


#: by a part of a program (".forward", ".backward", or "" where there is no backward) and the numbers of the inputs that
#: have tangents
Linearise = Callable[[str, tuple[int, ...]], Linearised]


class _Pushed(torch.autograd.Function):
    """Outputs of a linearised function; a further derivative is refused."""

    @staticmethod
    def forward(operators: Operators, part: str, numbers: tuple[int, ...], *tensors: Any) -> tuple[Any, ...]:
        return operators.run_linearised(part, numbers, tensors)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Any, ...]) -> None:
        operators, part, *_ = inputs
        ctx.name, ctx.part = operators.name, part
        ctx.mark_non_differentiable(*(each for each in output if not each.is_floating_point()))

    @staticmethod
    def backward(ctx: Any, *given: Any) -> Any:
        raise NotImplementedError(_further(ctx.name, ctx.part))

    @staticmethod
    def jvp(ctx: Any, *tangents: Any) -> Any:
        raise NotImplementedError(_further(ctx.name, ctx.part))

    @staticmethod
    def vmap(info: Any, in_dims: Any, operators: Operators, part: str, numbers: tuple[int, ...], *tensors: Any) -> Any:
        return batching.batched(
            lambda *each: _Pushed.apply(operators, part, numbers, *each),
            *(operators.linearised(part, numbers).plan, info.batch_size, in_dims[3:], tensors),
        )


def _further(name: str, part: str) -> str:
    order = "third order" if part == ".backward" else "a tangent"
    return (
        f"'{name}': expected derivatives of first or second order, but got a call for one of {order}: differentiate in "
        "forward mode last, or compute this part with torch's own operations"
    )


def without_tangent(name: str, part: str, reason: str) -> str:
    """What those are told who ask for a tangent that a part of the program ``name`` has not."""
    if part == ".backward":
        return f"{second_order(name)} ({reason})"
    return f"'{name}': expected a program that can be differentiated in forward mode, but {reason}"


def pushed(
    operators: Operators, part: str, inputs: Sequence[Any], tangents: Sequence[Any]
) -> tuple[tuple[Any, ...], list[Any]]:
    """The outputs of a part of a program on ``inputs``, and their tangents, given those of the inputs: None is zero,
    and what an output has that is no float."""
    plan = operators.plan(part)
    floats = [each["type"].startswith(("fp", "bf")) for each in plan["inputs"]]
    numbers = tuple(
        n for n, (t, is_float) in enumerate(zip(tangents, floats, strict=True)) if t is not None and is_float
    )
    found = _Pushed.apply(operators, part, numbers, *inputs, *(tangents[number] for number in numbers))
    outputs = plan["outputs"]
    rest = iter(found[len(outputs) :])
    each = [next(rest) if output["type"].startswith(("fp", "bf")) else None for output in outputs]
    return tuple(found[: len(outputs)]), each


def second(
    operators: Operators, inputs: Sequence[Any], gradients: Sequence[Any], cotangents: Sequence[Any]
) -> tuple[list[Any], list[Any]]:
    """The gradients, in ``inputs`` and in ``gradients`` (of the program's results), of the sum of products of
    ``cotangents``, one for each input or None, with the program's gradients of the inputs."""
    plans = operators.plans
    if all(each is None for each in cotangents):
        return [None] * len(inputs), [None] * len(gradients)
    outputs, changes = pushed(operators, ".forward", inputs, cotangents)
    given = [
        torch.zeros_like(outputs[number]) if each is None else each
        for number, each in zip(plans.differentiable, gradients, strict=True)
    ]
    _, found = pushed(
        operators,
        ".backward",
        [*inputs, *operators.saved(outputs), *given],
        [*cotangents, *operators.saved(changes), *([None] * len(given))],
    )
    return operators.by_input(found), [changes[number] for number in plans.differentiable]
