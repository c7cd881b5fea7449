# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Programs as custom operators of torch (torch.library), so that whatever records, transforms or compiles torch's
operations sees them: torch.compile and torch.export, meta and fake tensors, torch.func, checkpointing policies, the
profiler.

A program that is differentiated is two operators: ``weft::NAME_KEY`` gives its results and what its backward needs,
``weft::NAME_KEY_backward`` takes the inputs, what was saved and the gradients of the results, and gives gradients. One
that is not differentiated is ``weft::NAME_KEY_inference``. Their shapes are the plan's own size expressions
(docs/LibraryFormat.md), so sizes may be torch's symbols.
"""

from __future__ import annotations

import contextlib
import functools
import re
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import torch

from weft import locks, native

from . import batching, flops, transforms
from .elements import TORCH
from .first_order import beside, second_order
from .plain import dual
from .plans import evaluate, fit, saved_outputs
from .tangents import Linearise

if TYPE_CHECKING:
    from .program import Program


class _Library(torch.library.Library):
    """Definitions of operators, where a kernel for autograd is asked only for what is to be differentiated."""

    def __init__(self) -> None:
        super().__init__("weft", "FRAGMENT")
        self.kernels: dict[str, Any] = {}

    def impl(self, op_name: Any, fn: Any, dispatch_key: str = "", *, with_keyset: bool = False, **options: Any) -> None:
        kernel = self.kernels.get(op_name)
        if kernel is not None and dispatch_key == "Autograd":
            fn = kernel.differentiable(fn, _leads_to_kernel)
        super().impl(op_name, fn, dispatch_key, with_keyset=with_keyset, **options)


_LIBRARY = _Library()
_lock = locks.lock("operators")
_made: dict[str, Operators] = {}
_linearised: dict[str, LinearisedOperator] = {}
_recorders = threading.local()


class Runs(Protocol):
    """A program's functions: ".forward" and ".backward", or "", the program itself."""

    def __call__(self, part: str, tensors: Sequence[Any]) -> Sequence[Any]:
        """Run one of them on plain tensors."""

    def direct(self, part: str) -> Program | None:
        """The program that has just run, where calls of tensors that kernels take as they are may run it with nothing
        asked, until the runtime's ``forget_operators``; None for others."""


@dataclass(frozen=True)
class Plans:
    """What operators need of a program's plans: inputs and outputs as {"name", "type", "dims"}. Without a backward
    ``forward`` is the program itself and ``backward`` None."""

    forward: Mapping[str, Any]
    backward: Mapping[str, Any] | None
    results: int
    """how many of the forward's outputs are the program's results; the rest is kept for the backward"""

    @functools.cached_property
    def saved(self) -> list[int]:
        """The numbers of the forward's outputs that the backward takes after the inputs."""
        if self.backward is None:
            return []
        given = len(self.forward["inputs"])
        return saved_outputs(given, self.results, self.forward["outputs"], self.backward["inputs"])

    @functools.cached_property
    def differentiable(self) -> list[int]:
        """The numbers of the results that have gradients."""
        outputs = self.forward["outputs"][: self.results]
        return [number for number, each in enumerate(outputs) if each["type"].startswith(("fp", "bf"))]


@dataclass(frozen=True)
class LinearisedOperator:
    """An operator of outputs and tangents, and its plan."""

    operator: Any
    plan: Mapping[str, Any]


@dataclass(frozen=True)
class Operators:
    """A program's operators, as torch.ops.weft has them; ``backward`` is None of one for inference, and of one whose
    results depend on no input that has gradients."""

    name: str
    called: str
    plans: Plans
    forward: Any
    backward: Any
    linearise: Linearise

    def __call__(self, arrays: Sequence[Any]) -> tuple[Any, ...]:
        """The program's results."""
        record = getattr(_recorders, "record", None)
        if record is not None:
            found = record(self, arrays)
        elif transforms.transformed() or any(map(dual, arrays)):
            found = transforms.forward(self, arrays)
        else:
            found = self.run_forward(arrays)
        return tuple(found[: self.plans.results])

    def run_forward(self, tensors: Sequence[Any]) -> tuple[Any, ...]:
        """What the forward operator gives: the results, and what it keeps for the backward."""
        return _several(self.forward(*tensors))

    def run_backward(self, tensors: Sequence[Any]) -> tuple[Any, ...]:
        """What the backward operator gives of ``taken``."""
        return () if self.backward is None else _several(self.backward(*tensors))

    def plan(self, part: str) -> Mapping[str, Any]:
        """The plan of ".forward" or ".backward", or of the program itself where it has no backward, ""."""
        plan = self.plans.backward if part == ".backward" else self.plans.forward
        assert plan is not None
        return plan

    def linearised(self, part: str, numbers: tuple[int, ...]) -> LinearisedOperator:
        """The operator of a part's outputs and their tangents, given its inputs and then tangents of those of these
        numbers. NotImplementedError where there is none."""
        called = "_".join([f"{self.called}{part.replace('.', '_')}_tangent", *map(str, numbers)])
        with _lock:
            found = _linearised.get(called)
            if found is None:
                made = self.linearise(part, numbers)
                operator = _operator(called, f"{self.name}{part}.tangent", made.plan, made.run)
                found = _linearised[called] = LinearisedOperator(operator, made.plan)
            return found

    def run_linearised(self, part: str, numbers: tuple[int, ...], tensors: Sequence[Any]) -> tuple[Any, ...]:
        """What that operator gives."""
        return _several(self.linearised(part, numbers).operator(*tensors))

    def saved(self, outputs: Sequence[Any]) -> list[Any]:
        """What of the forward's outputs its backward takes."""
        return [outputs[number] for number in self.plans.saved]

    def without_gradients(self, outputs: Sequence[Any]) -> list[Any]:
        """Those of the forward's outputs that have no gradients: integers, truths, and what is no result."""
        return [each for number, each in enumerate(outputs) if number not in self.plans.differentiable]

    def taken(self, kept: Sequence[Any], gradients: Sequence[Any]) -> list[Any]:
        """The tensors that the backward takes: inputs and saved outputs, and the gradients of the results, given those
        of all outputs."""
        return [*kept, *(gradients[number] for number in self.plans.differentiable)]

    def by_input(self, gradients: Sequence[Any], inputs: Sequence[Any]) -> list[Any]:
        """What the backward gives, for each input and on its device; None for one that has no gradient."""
        assert self.plans.backward is not None
        found = dict(zip(self.plans.backward["gradients_of"], gradients, strict=True))
        return beside([found.get(number) for number in range(len(inputs))], inputs)


@contextlib.contextmanager
def recorded_by(record: Callable[[Operators, Sequence[Any]], Sequence[Any]]) -> Iterator[None]:
    """A ``with`` in which this thread's programs call ``record(operators, tensors)`` in the place of their forward
    operator."""
    before = getattr(_recorders, "record", None)
    _recorders.record = record
    try:
        yield
    finally:
        _recorders.record = before


def transformed(called: str, *tensors: Any) -> tuple[Any, ...]:
    """The forward of the operators that are called so, under transforms of torch.func: a node of torch's graphs."""
    return transforms.forward(_made[called], tensors)


def operators(
    name: str, key: str, differentiate: bool, plans: Callable[[], Plans], run: Runs, linearise: Linearise
) -> Operators:
    """The operators of the program ``name``, defined when they are first asked for. ``key`` tells apart programs of one
    name, the same in every process; ``run`` runs its functions, of which there is but "" where it is not to
    ``differentiate``; ``linearise`` makes the linearised functions of these."""
    called = f"{_identifier(name)}_{key}" + ("" if differentiate else "_inference")
    with _lock:
        found = _made.get(called)
        if found is None:
            found = _made[called] = _define(called, name, plans(), run, linearise)
        return found


def _define(called: str, name: str, plans: Plans, run: Runs, linearise: Linearise) -> Operators:
    if plans.backward is None:
        operator = _operator(called, name, plans.forward, *_of(run, ""))
        message = "expected a form with a backward, but got the one for inference: call it with gradients enabled"
        _refuse_gradients(operator, f"'{name}': {message}")
        return Operators(name, called, plans, operator, None, linearise)
    forward = _operator(called, name, plans.forward, *_of(run, ".forward"))
    backward = None
    if plans.backward["outputs"]:
        backward = _operator(f"{called}_backward", f"{name}.backward", plans.backward, *_of(run, ".backward"))
        _refuse_gradients(backward, second_order(name))
    made = Operators(name, called, plans, forward, backward, linearise)
    _differentiate(made)
    return made


def _of(runs: Runs, part: str) -> tuple[Callable[[Sequence[Any]], Sequence[Any]], Callable[[], Program | None]]:
    return functools.partial(runs, part), functools.partial(runs.direct, part)


def _operator(
    called: str,
    name: str,
    plan: Mapping[str, Any],
    run: Callable[[Sequence[Any]], Sequence[Any]],
    direct: Callable[[], Program | None] = lambda: None,
) -> Any:
    """One operator, with its kernel, its shapes and its rule for torch.vmap."""
    # (Names with their number are all different, and no words of Python's.)
    taken = ", ".join(f"Tensor {_identifier(each['name'])}_{number}" for number, each in enumerate(plan["inputs"]))
    outputs = plan["outputs"]
    given = "Tensor" if len(outputs) == 1 else f"({', '.join(['Tensor'] * len(outputs))})"
    _LIBRARY.define(f"{called}({taken}) -> {given}", tags=(torch.Tag.pt2_compliant_tag, torch.Tag.needs_exact_strides))

    def compute(*tensors: Any) -> Any:
        found = _one(tuple(run(tensors)))
        program = direct()
        if program is not None:
            ordinal = next((each.get_device() for each in tensors if each.is_cuda), -1)
            kernel.learn(program.native_for(tensors), ordinal)
        return found

    kernel = _LIBRARY.kernels[called] = native.load("_runtime").OperatorKernel(compute)

    def promise(*tensors: Any) -> Any:
        sizes = fit(plan, tensors)
        of_device = next((each for each in tensors if not each.is_cpu), tensors[0])
        made = [
            of_device.new_empty(
                [evaluate(dim, sizes) for dim in each["dims"]], dtype=getattr(torch, TORCH[each["type"]])
            )
            for each in outputs
        ]
        return _one(tuple(made))

    for backend in ("CPU", "CUDA"):
        _LIBRARY.impl(called, kernel.plain, backend)
    torch.library.register_fake(f"weft::{called}", promise, lib=_LIBRARY)
    operator = getattr(torch.ops.weft, called).default

    def batched(info: Any, in_dims: tuple[int | None, ...], *tensors: Any) -> tuple[Any, Any]:
        return batching.batched(operator, plan, info.batch_size, in_dims, tensors)

    torch.library.register_vmap(operator, batched, lib=_LIBRARY)
    flops.register(operator, name, plan)
    return operator


def _leads_to_kernel(keys: Any) -> bool:
    """Whether a call of these dispatch keys, once it has passed autograd, goes to a device's kernel: no mode, transform
    or other kind of tensor is in between."""
    devices = (torch._C.DispatchKey.CPU, torch._C.DispatchKey.CUDA)
    return (keys & torch._C._after_autograd_keyset).highestPriorityTypeId() in devices


def _differentiate(made: Operators) -> None:
    def setup(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        outputs = _several(output)
        ctx.save_for_backward(*inputs, *made.saved(outputs))
        ctx.mark_non_differentiable(*made.without_gradients(outputs))

    def gradients(ctx: Any, *given: Any) -> tuple[Any, ...]:
        saved = ctx.saved_tensors
        found = made.run_backward(made.taken(saved, given))
        return tuple(made.by_input(found, saved[: len(made.plans.forward["inputs"])]))

    torch.library.register_autograd(made.forward, gradients, setup_context=setup, lib=_LIBRARY)


def _refuse_gradients(operator: Any, message: str) -> None:
    def gradients(ctx: Any, *given: Any) -> Any:
        raise NotImplementedError(message)

    torch.library.register_autograd(operator, gradients, lib=_LIBRARY)


def _identifier(name: str) -> str:
    found = re.sub(r"\W", "_", name, flags=re.ASCII)
    return found if found[:1].isalpha() else f"p{found}"


def _several(given: Any) -> tuple[Any, ...]:
    return (given,) if isinstance(given, torch.Tensor) else tuple(given)


def _one(given: tuple[Any, ...]) -> Any:
    return given[0] if len(given) == 1 else given
