# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""A program and its generated backward, held against the same formula in float64 and in plain operations."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import torch

from weft.testing.accuracy import Accuracy, accuracy
from weft.testing.attention import FORMS

#: formula(tensors by name, form) -> a result or several
Formula = Callable[[Mapping[str, torch.Tensor], str], Any]


def judge(
    program: Callable[[Mapping[str, torch.Tensor]], Any],
    formula: Formula,
    tensors: Mapping[str, torch.Tensor],
    *,
    names: Sequence[str] = ("out",),
    gradients: bool = True,
    input_scale: float = 1.0,
    products_as_given: bool = True,
    generator: torch.Generator | None = None,
) -> dict[str, Accuracy]:
    """Run ``program`` on ``tensors`` and judge every result and the gradient of every floating tensor, by name.

    ``program`` and ``formula`` take the tensors by name; ``names`` are their results'. The gradients of the results
    are drawn at random; memory that is allocated while the program runs is full of NaN. Integer tensors go through
    as they are.
    """
    leaves = [name for name, x in tensors.items() if x.dtype.is_floating_point] if gradients else []
    with poisoned():
        mine = {name: _leaf(x) if name in leaves else x for name, x in tensors.items()}
        results = _tuple(program(mine))
        if len(results) != len(names):
            raise ValueError(f"expected the results {', '.join(names)}, but got {len(results)}")
        d_results = [torch.randn(x.shape, generator=generator).to(x.dtype) for x in results]
        mine_grads = _gradients(results, d_results, [mine[name] for name in leaves])

    def by_formula(dtype: torch.dtype | None, form: str) -> list[torch.Tensor]:
        own = {
            name: _leaf(x.to(dtype or x.dtype)) if name in leaves else x.double() if dtype and _floating(x) else x
            for name, x in tensors.items()
        }
        values = _tuple(formula(own, form))
        return [*values, *_gradients(values, d_results, [own[name] for name in leaves])]

    exact = by_formula(torch.float64, FORMS[1])
    plain = [by_formula(None, form) for form in FORMS]
    judged = {}
    everything = [*names, *(f"d_{name}" for name in leaves)]
    for i, (name, out) in enumerate(zip(everything, [*results, *mine_grads], strict=True)):
        judged[name] = accuracy(
            out,
            exact[i].detach(),
            [form[i].detach() for form in plain],
            gradient=i >= len(names),
            input_scale=input_scale,
            products_as_given=products_as_given,
        )
    return judged


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
    """While it lasts, PyTorch's fresh memory is full of NaN, so that an element nobody wrote is seen."""
    deterministic = torch.are_deterministic_algorithms_enabled()
    warn_only = torch.is_deterministic_algorithms_warn_only_enabled()
    fill = torch.utils.deterministic.fill_uninitialized_memory  # type: ignore[attr-defined]
    try:
        torch.use_deterministic_algorithms(True, warn_only=True)
        torch.utils.deterministic.fill_uninitialized_memory = True  # type: ignore[attr-defined]
        yield
    finally:
        torch.utils.deterministic.fill_uninitialized_memory = fill  # type: ignore[attr-defined]
        torch.use_deterministic_algorithms(deterministic, warn_only=warn_only)
