# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Calls that torch must see as operations of its own: of meta and fake tensors, under torch.func, in torch.export, with
a mode that counts, saves or records what runs. They go through the program's operators (runtime/operators.py); all
others run at once.
"""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from ..compiler.diagnostics import CompilationError
from ..compiler.targets import target_of
from ..runtime.devices import device_for
from ..runtime.operators import Operators, Plans, operators
from ..runtime.program import Program
from ..runtime.tangents import Linearised, without_tangent
from ..targets import default_target
from . import choices
from .compiled import Compiled, compiled, linearised
from .running import alike, as_described, in_torch, packed_as_said, run, run_direct, tuned
from .trace import Traced


def results(traced: Traced, arrays: Sequence[Any], differentiate: bool) -> tuple[Any, ...]:
    """A program's results on a call's arrays, by its operators."""
    given = [each if isinstance(each, torch.Tensor) else in_torch(each) for each in arrays]
    return operators_of(traced, given, differentiate)(given)


def operators_of(traced: Traced, arrays: Sequence[Any], differentiate: bool) -> Operators:
    """The operators of a program for a call's arrays, which need not have memory."""
    target = _target(arrays)
    key = hashlib.sha256(f"{traced.plain}\n{target}".encode()).hexdigest()[:12]
    plain = dataclasses.replace(traced, captured=())  # which this keeps for the life of the process

    def plans() -> Plans:
        form = compiled(plain, target, differentiate)
        if not differentiate:
            return Plans(form.plan(), None, len(traced.outputs))
        return Plans(form.plan(".forward"), form.plan(".backward"), len(traced.outputs))

    runs = _Runs(plain, target, differentiate)
    return operators(traced.name, key, differentiate, plans, runs, runs.linearised)


@dataclass
class _Runs:
    """The functions of a program on plain tensors; with the schedules that were chosen for their sizes."""

    traced: Traced
    target: str
    differentiate: bool
    form: Compiled | None = None  # where nothing was chosen, known again until something is
    changes: int = -1

    def __call__(self, part: str, tensors: Sequence[Any]) -> Sequence[Any]:
        form = self._form(tensors)
        found = run_direct(form, part, tensors)
        if found is not None:
            return found
        described = form.inputs(part)
        given = [as_described(each, wanted) for each, wanted in zip(alike(tensors), described, strict=True)]
        if part != ".backward":
            packed_as_said(self.traced, given)
        return run(form, part, given)

    def direct(self, part: str) -> Program | None:
        """See Runs. A form that was chosen for some sizes is not that of others, and starts are looked at."""
        if self.form is None or (self.traced.starts and part != ".backward"):
            return None
        return self.form.program(part)

    def linearised(self, part: str, numbers: tuple[int, ...]) -> Linearised:
        """The part's outputs and their tangents, given those of its inputs of these numbers."""
        try:
            form = linearised(self.traced, self.target, part, numbers)
        except CompilationError as error:
            raise NotImplementedError(without_tangent(self.traced.name, part, str(error))) from error
        whole = f"{part}.tangent"
        described = form.inputs(whole)

        def compute(tensors: Sequence[Any]) -> Sequence[Any]:
            given = [as_described(each, wanted) for each, wanted in zip(alike(tensors), described, strict=True)]
            packed_as_said(self.traced, given)
            return run(form, whole, given)

        return Linearised(form.plan(whole), compute)

    def _form(self, tensors: Sequence[Any]) -> Compiled:
        changes = choices.changes()
        if self.form is not None and self.changes == changes:
            return self.form
        default = compiled(self.traced, self.target, self.differentiate)
        if not choices.known(self.traced.plain, self.target):
            self.form, self.changes = default, changes
            return default
        self.form = None
        form = tuned(self.traced, tensors[: len(self.traced.inputs)], self.differentiate, self.target)
        # What the operator says that its forward saves, its backward is to find.
        return form if not self.differentiate or _kept(form) == _kept(default) else default


def _kept(form: Compiled) -> list[str]:
    outputs = form.plan(".forward")["outputs"]
    return [outputs[number]["name"] for number in form.saved_outputs]


def _target(arrays: Sequence[Any]) -> str:
    """What kernels for arrays of a device are compiled for; those without one run nowhere."""
    if all(each.device.type == "meta" for each in arrays):
        return default_target()
    return target_of(device_for(tuple(arrays)))
