# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Programs of a library in torch's autograd: NAME.forward and NAME.backward, with no compiler in the process."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import torch

from weft.runtime.compiling import compiling
from weft.runtime.first_order import first_order
from weft.runtime.operators import Operators, Plans, operators
from weft.runtime.plain import refuse, seen_by_torch
from weft.runtime.plans import saved_outputs

if TYPE_CHECKING:
    from weft.runtime.library import Library
    from weft.runtime.program import Program


class _FromLibrary(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, forward: Program, backward: Program, count: int, saved: Sequence[int], *inputs: Any) -> Any:
        results = forward.queue(inputs)
        ctx.program, ctx.inputs, ctx.results = backward, len(inputs), [(r.shape, r.dtype) for r in results[:count]]
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(*inputs, *(results[number] for number in saved))
        ctx.mark_non_differentiable(*(r for r in results[:count] if not r.dtype.is_floating_point))
        return results[:count]

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        saved, name = ctx.saved_tensors, ctx.program.name.removesuffix(".backward")

        def compute() -> list[Any]:
            refuse((f"a gradient of {name}", gradient) for gradient in gradients)
            given = [
                torch.zeros(shape, dtype=dtype, device=saved[0].device) if gradient is None else _readable(gradient)
                for gradient, (shape, dtype) in zip(gradients, ctx.results, strict=True)
                if dtype.is_floating_point
            ]
            found = ctx.program.queue([*saved, *given])
            numbered = dict(zip(ctx.program.gradients_of, found, strict=True))
            return [numbered.get(number) for number in range(ctx.inputs)]

        return (None, None, None, None, *first_order(name, compute, [*saved, *gradients]))


def _readable(gradient: torch.Tensor) -> torch.Tensor:
    """A tensor, or a copy of it in memory that every kernel reads."""
    strided = gradient.dim() == 0 or gradient.stride(-1) == 1
    aligned = gradient.data_ptr() % 16 == 0 and all(s * gradient.itemsize % 16 == 0 for s in gradient.stride()[:-1])
    return gradient if strided and aligned else gradient.clone(memory_format=torch.contiguous_format)


def differentiable(library: Library, name: str) -> Callable[..., Any]:
    """See Library.differentiable."""
    parts = {part: library.program(name + part) for part in ("", ".forward", ".backward")}
    plain, forward, backward = parts.values()
    count = len(plain.outputs)
    saved = saved_outputs(len(plain.inputs), count, forward.outputs, backward.inputs)
    made = operators_of(parts)

    def one(results: Sequence[Any]) -> Any:
        return results[0] if len(results) == 1 else tuple(results)

    def operate(*inputs: Any, **named: Any) -> Any:
        return one(made(plain.positional(inputs, named)))

    def call(*inputs: Any, **named: Any) -> Any:
        if compiling():
            from weft.runtime import dynamo

            return dynamo.call(operate, inputs, named)
        if seen_by_torch(inputs):
            return operate(*inputs, **named)
        given = plain.positional(inputs, named)
        refuse(zip((each["name"] for each in plain.inputs), given, strict=False))
        return one(_FromLibrary.apply(forward, backward, count, saved, *given))

    return call


def operators_of(parts: Mapping[str, Program]) -> Operators:
    """A program of a library as operators of torch, which are called the same in every process. ``parts`` has "", and
    ".forward" and ".backward" where it is to be differentiable."""
    plain = parts[""]
    differentiate = ".backward" in parts

    def run(part: str, tensors: Sequence[Any]) -> Sequence[Any]:
        found: Sequence[Any] = parts[part].queue([_readable(each) for each in tensors])
        return found

    def plans() -> Plans:
        forward = parts[".forward" if differentiate else ""]
        return Plans(forward.plan, parts[".backward"].plan if differentiate else None, len(plain.outputs))

    return operators(plain.name, plain.identity, differentiate, plans, run)
