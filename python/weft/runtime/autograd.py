# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Programs of a library in torch's autograd: NAME.forward and NAME.backward, and their tangents where the library has
them, with no compiler in the process."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch

from weft.runtime.compiling import compiling
from weft.runtime.first_order import Further, beside, first_order
from weft.runtime.operators import Operators, Plans, operators
from weft.runtime.plain import refuse, seen_by_torch
from weft.runtime.plans import saved_outputs
from weft.runtime.tangents import FromLibrary, Linearise, readable
from weft.runtime.transforms import of_gradients

if TYPE_CHECKING:
    from weft.runtime.library import Library
    from weft.runtime.program import Program

#: a program of a library, "", and its ".forward" and ".backward" where it has them
Parts = Mapping[str, "Program"]


class _FromLibrary(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, parts: Parts, saved: Sequence[int], further: Further | None, *inputs: Any) -> Any:
        results, count = parts[".forward"].queue(inputs), len(parts[""].outputs)
        ctx.program, ctx.further = parts[".backward"], further
        ctx.inputs, ctx.results = len(inputs), [(r.shape, r.dtype) for r in results[:count]]
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
                torch.zeros(shape, dtype=dtype, device=saved[0].device) if gradient is None else readable(gradient)
                for gradient, (shape, dtype) in zip(gradients, ctx.results, strict=True)
                if dtype.is_floating_point
            ]
            found = ctx.program.queue([*saved, *given])
            numbered = dict(zip(ctx.program.gradients_of, found, strict=True))
            return beside([numbered.get(number) for number in range(ctx.inputs)], saved[: ctx.inputs])

        return (None, None, None, *first_order(name, compute, [*saved, *gradients], ctx.further))


def differentiable(library: Library, name: str) -> Callable[..., Any]:
    """See Library.differentiable."""
    parts = {part: library.program(name + part) for part in ("", ".forward", ".backward")}
    plain, forward, backward = parts.values()
    saved = saved_outputs(len(plain.inputs), len(plain.outputs), forward.outputs, backward.inputs)
    linearise = FromLibrary(parts, library.programs.get)
    made = operators_of(parts, linearise)

    def further(known: Sequence[Any], given: Sequence[Any]) -> list[Any]:
        return of_gradients(made, known, len(plain.outputs), given)

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
        return one(_FromLibrary.apply(parts, saved, further if linearise.second_order() else None, *given))

    return call


@dataclass(frozen=True)
class _Runs:
    parts: Parts

    def __call__(self, part: str, tensors: Sequence[Any]) -> Sequence[Any]:
        found: Sequence[Any] = self.parts[part].queue([readable(each) for each in tensors])
        return found

    def direct(self, part: str) -> Program:
        return self.parts[part]


def operators_of(parts: Parts, linearise: Linearise) -> Operators:
    """A program of a library as operators of torch, which are called the same in every process. ``parts`` has "", and
    ".forward" and ".backward" where it is to be differentiable."""
    plain = parts[""]
    differentiate = ".backward" in parts

    def plans() -> Plans:
        forward = parts[".forward" if differentiate else ""]
        return Plans(forward.plan, parts[".backward"].plan if differentiate else None, len(plain.outputs))

    return operators(plain.name, plain.identity, differentiate, plans, _Runs(parts), linearise)
