# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Programs of a library in torch's autograd: NAME.forward and NAME.backward, with no compiler in the process."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import torch

from weft.runtime.first_order import first_order
from weft.runtime.plain import refuse
from weft.runtime.program import saved_outputs

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
    """The gradient, or a copy of it in memory that every kernel reads."""
    strided = gradient.dim() == 0 or gradient.stride(-1) == 1
    aligned = gradient.data_ptr() % 16 == 0 and all(s * gradient.itemsize % 16 == 0 for s in gradient.stride()[:-1])
    return gradient if strided and aligned else gradient.clone(memory_format=torch.contiguous_format)


def differentiable(library: Library, name: str) -> Callable[..., Any]:
    """See Library.differentiable."""
    plain, forward, backward = (library.program(name + part) for part in ("", ".forward", ".backward"))
    count = len(plain.outputs)
    saved = saved_outputs(len(plain.inputs), count, forward.outputs, backward.inputs)

    def call(*inputs: Any, **named: Any) -> Any:
        given = plain.positional(inputs, named)
        refuse(zip((each["name"] for each in plain.inputs), given, strict=False))
        results = _FromLibrary.apply(forward, backward, count, saved, *given)
        return results[0] if len(results) == 1 else results

    return call
