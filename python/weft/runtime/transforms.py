# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Programs under the transforms of torch.func: grad, vjp, jvp, jacrev, jacfwd and vmap, nested as they may be, and on
dual tensors. torch lets functions of autograd through its transforms, but not the gradients that torch.library
registers for an operator.

With J the derivative of a program f at x and c a gradient of its results, NAME.backward gives g(x, c) = Jᵀ c. Of
⟨w, g(x, c)⟩ = ⟨c, J w⟩ the gradient in c is J w, which NAME.forward.tangent gives; that in x is the second derivative
of ⟨c, f⟩ applied to w, which is symmetric and so how g changes along w: what NAME.backward.tangent gives. Of ⟨c, J w⟩
the gradient in w is Jᵀ c. So these two functions are all that derivatives of second order take, in either order.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import torch
import torch.autograd.forward_ad as forward_ad

from . import batching
from .elements import is_float
from .tangents import further

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
        if ctx.operators.backward is None:
            return (None,) * (1 + len(ctx.operators.plans.forward["inputs"]))
        inputs = ctx.saved_tensors[: len(ctx.operators.plans.forward["inputs"])]
        taken = ctx.operators.taken(ctx.saved_tensors, _whole(given, ctx.given))
        return (None, *ctx.operators.by_input(_Backward.apply(ctx.operators, *taken), inputs))

    @staticmethod
    def jvp(ctx: Any, _: Any, *given: Any) -> tuple[Any, ...]:
        if not ctx.operators.plans.differentiable:
            return (None,) * len(ctx.given)
        return tuple(pushed(ctx.operators, _first(ctx.operators), ctx.saved_tensors, given)[1])

    @staticmethod
    def vmap(info: Any, in_dims: Any, operators: Operators, *tensors: Any) -> tuple[Any, Any]:
        return batching.batched(
            lambda *each: _Forward.apply(operators, *each),
            *(operators.plans.forward, info.batch_size, in_dims[1:], tensors),
        )


class _Backward(torch.autograd.Function):
    """Gradients, which have derivatives where the program's backward has its tangent."""

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
        tensors, count = ctx.saved_tensors, len(ctx.operators.plans.forward["inputs"])
        gradients = len(ctx.operators.plans.differentiable)
        kept = len(tensors) - count - gradients
        inputs = tensors[:count]
        found, of_gradients = second(
            ctx.operators, inputs, tensors[count + kept :], ctx.operators.by_input(given, inputs)
        )
        return (None, *found, *([None] * kept), *of_gradients)

    @staticmethod
    def jvp(ctx: Any, _: Any, *given: Any) -> tuple[Any, ...]:
        return tuple(pushed(ctx.operators, ".backward", ctx.saved_tensors, given)[1])

    @staticmethod
    def vmap(info: Any, in_dims: Any, operators: Operators, *tensors: Any) -> tuple[Any, Any]:
        assert operators.plans.backward is not None
        return batching.batched(
            lambda *each: _Backward.apply(operators, *each),
            *(operators.plans.backward, info.batch_size, in_dims[1:], tensors),
        )


class _Pushed(torch.autograd.Function):
    """Outputs of a linearised function. Those of ".forward.tangent" have gradients; what else is asked of them is
    refused."""

    @staticmethod
    def forward(operators: Operators, part: str, numbers: tuple[int, ...], *tensors: Any) -> tuple[Any, ...]:
        return operators.run_linearised(part, numbers, tensors)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Any, ...]) -> None:
        ctx.operators, ctx.part, ctx.numbers, *tensors = inputs
        ctx.mark_non_differentiable(*(each for each in output if not each.is_floating_point()))
        ctx.set_materialize_grads(False)
        if ctx.part == ".forward":
            outputs, changes = _with_tangents(ctx.operators.plan(ctx.part), output)
            results = [outputs[number] for number in ctx.operators.plans.differentiable]
            ctx.given = [(each.shape, each.dtype, each.device) for each in results]
            saved = ctx.operators.saved(changes)
            ctx.kept = [number for number, each in enumerate(saved) if each is not None]
            ctx.save_for_backward(*tensors, *ctx.operators.saved(outputs), *(saved[number] for number in ctx.kept))

    @staticmethod
    def backward(ctx: Any, *given: Any) -> Any:
        if ctx.part != ".forward":
            raise NotImplementedError(further(ctx.operators.name, ctx.part))
        return None, None, None, *_pulled(ctx, given)

    @staticmethod
    def jvp(ctx: Any, *_: Any) -> Any:
        raise NotImplementedError(further(ctx.operators.name, ctx.part))

    @staticmethod
    def vmap(info: Any, in_dims: Any, operators: Operators, part: str, numbers: tuple[int, ...], *tensors: Any) -> Any:
        return batching.batched(
            lambda *each: _Pushed.apply(operators, part, numbers, *each),
            *(operators.linearised(part, numbers).plan, info.batch_size, in_dims[3:], tensors),
        )


def _whole(given: Sequence[Any], described: Sequence[tuple[Any, Any, Any]]) -> list[Any]:
    """Gradients, with zeros for None."""
    return [
        torch.zeros(shape, dtype=dtype, device=device) if each is None else each
        for each, (shape, dtype, device) in zip(given, described, strict=True)
    ]


def _with_tangents(plan: Mapping[str, Any], given: Sequence[Any]) -> tuple[tuple[Any, ...], list[Any]]:
    """What belongs to the outputs of a part, and to their tangents; None to that of an output that is no float."""
    outputs = plan["outputs"]
    rest = iter(given[len(outputs) :])
    each = [next(rest) if is_float(output["type"]) else None for output in outputs]
    return tuple(given[: len(outputs)]), each


def pushed(
    operators: Operators, part: str, inputs: Sequence[Any], tangents: Sequence[Any]
) -> tuple[tuple[Any, ...], list[Any]]:
    """The outputs of a part of a program on ``inputs``, and their tangents, given those of the inputs: None is zero,
    and what an output has that is no float."""
    plan = operators.plan(part)
    floats = [is_float(each["type"]) for each in plan["inputs"]]
    numbers = tuple(
        n for n, (t, floating) in enumerate(zip(tangents, floats, strict=True)) if t is not None and floating
    )
    found = _Pushed.apply(operators, part, numbers, *inputs, *(tangents[number] for number in numbers))
    return _with_tangents(plan, found)


def _pulled(ctx: Any, given: Sequence[Any]) -> list[Any]:
    """The gradients of a program's inputs and of their tangents, of whose results and tangents ``given`` has those."""
    operators, inputs = ctx.operators, len(ctx.operators.plans.forward["inputs"])
    if operators.backward is None:
        return [None] * (inputs + len(ctx.numbers))
    kept = inputs + len(ctx.numbers)
    tensors, tangents, saved = (ctx.saved_tensors[a:b] for a, b in ((0, inputs), (inputs, kept), (kept, None)))
    count = len(operators.plans.saved)
    changes: list[Any] = [None] * (inputs + count)
    for number, each in zip([*ctx.numbers, *(inputs + n for n in ctx.kept)], [*tangents, *saved[count:]], strict=True):
        changes[number] = each
    results = operators.plans.differentiable
    of_outputs, of_tangents = ([each[n] for n in results] for each in _with_tangents(operators.plan(".forward"), given))
    gradients, of_changes = [None] * inputs, [None] * inputs
    if any(each is not None for each in of_tangents):
        weights = _whole(of_tangents, ctx.given)
        taken = [*tensors, *saved[:count], *weights]
        both = pushed(operators, ".backward", taken, [*changes, *([None] * len(weights))])
        of_changes, gradients = (operators.by_input(each, tensors) for each in both)
    if any(each is not None for each in of_outputs):
        taken = [*tensors, *saved[:count], *_whole(of_outputs, ctx.given)]
        more = operators.by_input(_Backward.apply(operators, *taken), tensors)
        gradients = [b if a is None else a if b is None else a + b for a, b in zip(gradients, more, strict=True)]
    return [*gradients, *(of_changes[number] for number in ctx.numbers)]


def of_gradients(operators: Operators, known: Sequence[Any], results: int, given: Sequence[Any]) -> list[Any]:
    """What ``first_order`` asks of a program's gradients: ``known`` are the inputs, what the backward takes beside
    them, and the gradients of all ``results``, or None."""
    inputs, last = len(operators.plans.forward["inputs"]), len(known) - results
    floats = operators.plans.differentiable
    found, of_results = second(operators, known[:inputs], [known[last + number] for number in floats], given)
    by_result = dict(zip(floats, of_results, strict=True))
    asked = [None if known[last + number] is None else by_result.get(number) for number in range(results)]
    return [*found, *([None] * (last - inputs)), *asked]


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
    return operators.by_input(found, inputs), [changes[number] for number in plans.differentiable]


def transformed() -> bool:
    """Whether a transform of torch.func is at work that batches or differentiates."""
    if torch._C._functorch.maybe_current_level() is None:
        return False
    top = torch._C._functorch.peek_interpreter_stack()
    return bool(top.key() != torch._C._functorch.TransformType.Functionalize)


def forward(operators: Operators, tensors: Sequence[Any]) -> tuple[Any, ...]:
    """The outputs of a program's forward, under transforms. torch computes a function and then its tangent; where the
    innermost transform is forward mode, one kernel gives both. (A batch of directions shares one run of the function.)
    """
    found: tuple[Any, ...]
    duals = [forward_ad.unpack_dual(each) for each in tensors] if _pushes() else []
    if operators.plans.differentiable and any(each.tangent is not None for each in duals):
        found, changes = pushed(operators, _first(operators), *zip(*duals, strict=True))
        return tuple(
            each if change is None else forward_ad.make_dual(each, change)
            for each, change in zip(found, changes, strict=True)
        )
    found = _Forward.apply(operators, *tensors)
    return found


def _first(operators: Operators) -> str:
    """The part that gives the results."""
    return "" if operators.plans.backward is None else ".forward"


def _pushes() -> bool:
    """Whether the innermost transform is forward mode, and none batches."""
    kinds = [each.key() for each in torch._C._functorch.get_interpreter_stack() or []]
    transforms = torch._C._functorch.TransformType
    return (not kinds or kinds[-1] == transforms.Jvp) and transforms.Vmap not in kinds
