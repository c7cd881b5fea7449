# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Running compiled programs: outputs made, plans run, on torch tensors or NumPy arrays."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..compiler import places
from ..compiler.targets import target_of
from ..runtime import exchange
from ..runtime.devices import device_for
from ..runtime.elements import is_float
from ..runtime.plans import bind, evaluate
from ..runtime.program import empty
from . import choices
from .compiled import Compiled, compiled
from .facts import has_rows, is_aligned, is_array, readable
from .inputs import rebuild
from .trace import Traced


@dataclass(frozen=True)
class Saved:
    """What ``forward`` keeps for ``backward``: the inputs, and what the program saves."""

    compiled: Compiled
    inputs: tuple[Any, ...]
    saved: tuple[Any, ...]
    home: Any = None
    """an array of the other library that results are of, if any"""


def prepared(traced: Traced, arrays: Sequence[Any]) -> list[Any]:
    """The arrays that a program runs on, of one framework: those of a call and those from around the program."""
    arrays = alike(arrays)
    packed_as_said(traced, arrays)
    return arrays


def forward(traced: Traced, given: Sequence[Any]) -> tuple[Any, Saved]:
    """The results on a call's arrays, and what the backward needs."""
    if not traced.differentiable:
        given_types = ", ".join(each.type for each in traced.outputs)
        raise places.error(
            f"expected '{traced.name}' to have a result of floats, whose gradient its backward takes, "
            f"but got {given_types}"
        )
    arrays = prepared(traced, [*given, *traced.captured])
    form = tuned(traced, arrays, True)
    results = run(form, ".forward", arrays)
    saved = Saved(form, tuple(arrays), tuple(results[number] for number in form.saved_outputs))
    result = rebuild(traced.result, lambda number: results[number] if number >= 0 else arrays[-1 - number])
    return result, saved


def backward(saved: Saved, gradients: Sequence[Any]) -> Mapping[str, Any]:
    """The gradients of the inputs by name, given those of the results; None is zero."""
    if not isinstance(saved, Saved):
        raise TypeError(f"expected what 'forward' gave beside its result, but got {places.described(saved)}")
    traced = saved.compiled.traced
    for gradient in gradients:
        if gradient is not None and not is_array(gradient):
            what = places.described(gradient)
            raise TypeError(f"expected gradients that are arrays, or None for zero, but got {what}")
    found, _ = exchange.adopted([(f"a gradient of {traced.name}", each) for each in gradients])
    gradients = [array for _, array in readable(found)]
    if len(gradients) != len(traced.outputs):
        raise TypeError(f"expected {len(traced.outputs)} gradients, one for each result, but got {len(gradients)}")
    plan = saved.compiled.plan(".backward")
    sizes = bind(plan, [*saved.inputs, *saved.saved])
    where = next((array.device for array in saved.inputs if hasattr(array, "data_ptr")), None)
    given = []
    for gradient, wanted in zip(gradients, traced.outputs, strict=True):
        if not is_float(wanted.type):
            continue
        if gradient is None:
            shape = tuple(evaluate(dim, sizes) for dim in wanted.dims)
            gradient = empty(where, wanted.type, shape, beside=saved.inputs)
            gradient[...] = 0
        given.append(gradient)
    described = plan["inputs"][len(saved.inputs) + len(saved.saved) :]
    given = [as_described(gradient, each) for gradient, each in zip(alike(given), described, strict=True)]
    results = run(saved.compiled, ".backward", [*saved.inputs, *saved.saved, *given])
    names = [traced.inputs[number].name for number in plan["gradients_of"]]
    return dict(zip(names, exchange.given_back(results, saved.home), strict=True))


def packed_as_said(traced: Traced, arrays: Sequence[Any]) -> None:
    """Refuse starts of packed sequences that do not rise from 0 to the number of tokens. Those on a GPU are not looked
    at, which would wait for it: kernels keep them inside of the tokens."""
    sizes = None
    for number, tokens in traced.starts:
        given = arrays[number]
        if getattr(given, "is_cuda", False):
            continue
        values = [int(value) for value in given]
        sizes = sizes or bind({"inputs": [{"dims": each.dims} for each in traced.inputs]}, arrays)
        length = evaluate(tokens, sizes)
        rises = all(a <= b for a, b in itertools.pairwise(values))
        if not values or values[0] != 0 or values[-1] != length or not rises:
            spelled = ", ".join(map(str, values[:8])) + (", ..." if len(values) > 8 else "")
            raise places.error(
                f"expected '{traced.inputs[number].name}' to rise from 0 to the number of tokens, {length}, "
                f"but got [{spelled}]"
            )


def form_of(traced: Traced, given: Sequence[Any], differentiate: bool, target: str | None = None) -> Compiled:
    """The compiled form for a call's arrays."""
    return tuned(traced, [*given, *traced.captured], differentiate, target)


def tuned(
    traced: Traced,
    arrays: Sequence[Any],
    differentiate: bool,
    target: str | None = None,
    form: Callable[..., Compiled] = compiled,
) -> Compiled:
    """The compiled form for arrays: by the schedules that ``weft tune`` chose for their sizes, or by the default. That
    of the forward alone may be one with more, where ``form`` is ``runnable``."""
    target = target or target_of(device_for(tuple(arrays)))
    if not choices.known(traced.plain, target):
        return form(traced, target, differentiate)
    sizes = bind({"inputs": [{"dims": each.dims} for each in traced.inputs]}, arrays)
    return form(traced, target, differentiate, choices.chosen(traced.plain, target, sizes))


def alike(arrays: Sequence[Any]) -> list[Any]:
    """The arrays, all of torch where one is; the last axis of each has no gaps."""
    if any(isinstance(array, exchange.DeviceArray) for array in arrays):
        return [_in_rows(array) for array in arrays]
    if not any(hasattr(array, "data_ptr") for array in arrays):
        import numpy as np

        return [a if has_rows(a) else np.array(a, order="C") for a in arrays]
    import torch

    found = [a if isinstance(a, torch.Tensor) else in_torch(a) for a in arrays]
    return [a if has_rows(a) else a.contiguous() for a in found]


def in_torch(array: Any) -> Any:
    """An array of NumPy as a tensor of the same memory, or of a copy where torch has no such tensors; it knows no type
    of ml_dtypes."""
    import numpy as np
    import torch

    if not has_rows(array):
        array = np.array(array, order="C")
    kind = str(array.dtype)
    if kind != "bfloat16" and not kind.startswith("float8"):
        return torch.from_numpy(array)
    return torch.from_numpy(array.view(f"u{array.itemsize}")).view(getattr(torch, kind))


def _in_rows(array: Any) -> Any:
    """An array beside others in a GPU's memory that are not torch's: nobody here can copy it."""
    if isinstance(array, exchange.DeviceArray) and array.shape and array.shape[-1] > 1 and array.stride(-1) != 1:
        raise places.error("expected arrays whose last axis is contiguous, but got strides " + str(array.stride()))
    return array


def as_described(array: Any, described: Mapping[str, Any]) -> Any:
    """The array, or a copy of it where the code counts on an alignment that it lacks."""
    if not described.get("aligned") or is_aligned(array):
        return array
    if hasattr(array, "data_ptr"):
        return array.contiguous().clone()
    return array.copy(order="C")


def run(form: Compiled, part: str, arrays: Sequence[Any]) -> list[Any]:
    """Run one of a compiled program's functions; gives its outputs, fresh."""
    return list(form.program(part).queue(arrays))


def run_direct(form: Compiled, part: str, arrays: Sequence[Any]) -> Sequence[Any] | None:
    """``run`` in one step, where the arrays are torch's tensors that kernels take as they are; None for others."""
    if form.traced.starts and part != ".backward":
        return None  # they are to be looked at
    found: Sequence[Any] | None = form.program(part).direct(tuple(arrays))
    return found
