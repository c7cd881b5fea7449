# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Programs of a library in torch's autograd: NAME.forward and NAME.backward, with no compiler in the process."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import torch

from weft.runtime.program import saved_outputs

if TYPE_CHECKING:
    from weft.runtime.library import Library
    from weft.runtime.program import Program


class _FromLibrary(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, forward: Program, backward: Program, count: int, saved: Sequence[int], *inputs: Any) -> Any:
        results = forward.run(inputs)
        ctx.program, ctx.inputs, ctx.results = backward, len(inputs), [(r.shape, r.dtype) for r in results[:count]]
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(*inputs, *(results[number] for number in saved))
        ctx.mark_non_differentiable(*(r for r in results[:count] if not r.dtype.is_floating_point))
        return results[:count]

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, *gradients: Any) -> Any:
        saved = ctx.saved_tensors
        where = saved[0].device
        given = [
            torch.zeros(shape, dtype=dtype, device=where) if gradient is None else _readable(gradient)
            for gradient, (shape, dtype) in zip(gradients, ctx.results, strict=True)
            if dtype.is_floating_point
        ]
        found = ctx.program.run([*saved, *given])
        numbered = dict(zip(ctx.program.gradients_of, found, strict=True))
        return (None, None, None, None, *(numbered.get(number) for number in range(ctx.inputs)))


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
        given = plain._positional(inputs, named)
        results = _FromLibrary.apply(forward, backward, count, saved, *given)
        return results[0] if len(results) == 1 else results

    return call
