# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""A program and its generated backward, held against the same formula in float64 and in plain operations."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

import weft.runtime.program as runtime
from weft.testing.accuracy import Accuracy, accuracy, hold, summed
from weft.testing.attention import FORMS

#: tensors -> a result or several
Program = Callable[..., Any]
#: inputs(randn) -> tensors by name; randn(*shape) draws in the storage type, or in dtype= if given
Inputs = Callable[[Callable[..., torch.Tensor]], Mapping[str, torch.Tensor]]


def judge(
    program: Program,
    formula: Program,
    tensors: Mapping[str, torch.Tensor],
    *,
    names: Sequence[str] = ("out",),
    gradients: bool = True,
    parameters: Collection[str] = (),
    unseen: Collection[str] = (),
    input_scale: float = 1.0,
    products_as_given: bool = True,
    generator: torch.Generator | None = None,
) -> dict[str, Accuracy]:
    """Run ``program`` on ``tensors`` and judge every result and the gradient of every floating tensor, by name.

    ``program`` takes the tensors in order, ``formula`` too, and ``form=``; ``names`` are their results'. The
    gradients of the results are drawn at random; memory that is allocated while the program runs is full of NaN.
    Integer tensors go through as they are. Gradients of ``parameters``, and of all vectors, which are such, are judged
    as sums over tokens (``summed``); those of ``unseen``, tensors that no result depends on, are 0 in the formula and
    chance in any arithmetic: left out.
    """
    leaves = [name for name, x in tensors.items() if x.dtype.is_floating_point] if gradients else []
    with poisoned():
        mine = {name: _leaf(x) if name in leaves else x for name, x in tensors.items()}
        results = _tuple(program(*mine.values()))
        if len(results) != len(names):
            raise ValueError(f"expected the results {', '.join(names)}, but got {len(results)}")
        d_results = [torch.randn(x.shape, generator=generator).to(x.dtype) for x in results]
        mine_grads = _gradients(results, d_results, [mine[name] for name in leaves])

    def by_formula(dtype: torch.dtype | None, form: str) -> list[torch.Tensor]:
        own = {
            name: _leaf(x.to(dtype or x.dtype)) if name in leaves else x.double() if dtype and _floating(x) else x
            for name, x in tensors.items()
        }
        values = _tuple(formula(*own.values(), form=form))
        return [*values, *_gradients(values, d_results, [own[name] for name in leaves])]

    exact = by_formula(torch.float64, FORMS[1])
    plain = [by_formula(None, form) for form in FORMS]
    judged = {}
    everything = [*names, *(f"d_{name}" for name in leaves)]
    sums = {*parameters, *(name for name in leaves if tensors[name].dim() < 2)}
    for i, (name, out) in enumerate(zip(everything, [*results, *mine_grads], strict=True)):
        if name.removeprefix("d_") in unseen:
            continue
        found = accuracy(
            out,
            exact[i].detach(),
            [form[i].detach() for form in plain],
            gradient=i >= len(names),
            input_scale=input_scale,
            products_as_given=products_as_given,
        )
        judged[name] = summed(found) if i >= len(names) and name[2:] in sums else found
    return judged


@dataclass(frozen=True)
class Demonstration:
    """A program beside its formula on fresh inputs: what the examples show and the demo tabulates."""

    title: str
    program: Program
    formula: Program
    inputs: Inputs
    #: ``judge``'s options
    rule: Mapping[str, Any] = field(default_factory=dict)

    def judged(self, dtype: torch.dtype) -> dict[str, Accuracy]:
        """The errors of the results and of every gradient, by name. Raises AssertionError where one is wrong."""
        judged: dict[str, Accuracy] = {}

        def draw() -> dict[str, Accuracy]:
            judged.update(judge(self.program, self.formula, drawn(self.inputs, dtype), **self.rule))
            return judged

        hold(draw)
        return judged

    def show(self, dtypes: Sequence[torch.dtype] = (torch.float16,)) -> None:
        """Print the errors. Raises AssertionError where one is wrong."""
        for dtype in dtypes:
            errors = ", ".join(
                f"{name} {result.worst:.1e} ({result.worst_plain:.1e})" for name, result in self.judged(dtype).items()
            )
            kind = str(dtype).removeprefix("torch.")
            print(f"{self.title}, {kind}: largest errors (and plain PyTorch's): {errors}")


def demonstrate(
    program: Program,
    formula: Program,
    inputs: Inputs,
    *,
    title: str,
    dtypes: Sequence[torch.dtype] = (torch.float16, torch.bfloat16),
    **rule: Any,
) -> None:
    """Hold a program and its backward against its formula on fresh inputs, and print the errors; raises where wrong.
    ``rule`` is ``judge``'s options.
    """
    Demonstration(title, program, formula, inputs, rule).show(dtypes)


def drawn(
    inputs: Inputs, dtype: torch.dtype, generator: torch.Generator | None = None, scale: float = 1.0
) -> Mapping[str, torch.Tensor]:
    """Fresh normal tensors, times ``scale``."""

    def randn(*shape: int, dtype: torch.dtype = dtype) -> torch.Tensor:
        return (torch.randn(shape, generator=generator) * scale).to(dtype)

    return inputs(randn)


def _floating(x: torch.Tensor) -> bool:
    return x.dtype.is_floating_point


def _leaf(x: torch.Tensor) -> torch.Tensor:
    return x.detach().requires_grad_()


def _tuple(results: Any) -> tuple[torch.Tensor, ...]:
    return tuple(results) if isinstance(results, (tuple, list)) else (results,)


def _gradients(
    results: Sequence[torch.Tensor], d_results: Sequence[torch.Tensor], leaves: Sequence[torch.Tensor]
) -> list[torch.Tensor]:
    if not leaves:
        return []
    # -inf LSEs of rows that see nothing are constants.
    seeds = [d.to(x.dtype).masked_fill(x.detach() == -torch.inf, 0) for x, d in zip(results, d_results, strict=True)]
    found = torch.autograd.grad(results, leaves, seeds, allow_unused=True)
    return [torch.zeros_like(x) if d is None else d for x, d in zip(leaves, found, strict=True)]


@contextlib.contextmanager
def poisoned() -> Iterator[None]:
    """While it lasts, fresh memory of PyTorch and of programs is full of NaN: an element that nobody wrote is seen."""
    deterministic = torch.are_deterministic_algorithms_enabled()
    warn_only = torch.is_deterministic_algorithms_warn_only_enabled()
    fill = torch.utils.deterministic.fill_uninitialized_memory  # type: ignore[attr-defined]
    run = runtime.Program.run
    try:
        torch.use_deterministic_algorithms(True, warn_only=True)
        torch.utils.deterministic.fill_uninitialized_memory = True  # type: ignore[attr-defined]
        runtime.Program.run = functools.partialmethod(run, poison=True)  # type: ignore[assignment,method-assign]
        yield
    finally:
        runtime.Program.run = run  # type: ignore[method-assign]
        torch.utils.deterministic.fill_uninitialized_memory = fill  # type: ignore[attr-defined]
        torch.use_deterministic_algorithms(deterministic, warn_only=warn_only)
