# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Launches of a compiled kernel as it is, without looking for one that fits the arguments."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ..runtime.addressed import is_bare
from ..runtime.devices import device_for
from ..runtime.plain import refuse
from . import composites, cooperative, launches

if TYPE_CHECKING:
    from .kernel import Kernel


def launch(kernel: Kernel, grid: tuple[int, ...], args: Sequence[Any]) -> None:
    """Launch a kernel with an argument for each parameter, or for each that is no constant. Raises TypeError where
    there are more or fewer, ValueError where one is not the multiple that the kernel was promised,
    weft.Error where an array is more than its memory, and where programs of a cooperative launch do not all run at
    once."""
    values = _values(kernel, args)
    refuse(zip(kernel.signature.arguments, values, strict=True))
    for (name, argument), value in zip(kernel.signature.arguments.items(), values, strict=True):
        if argument.divisibility > 1 and _number(value) % argument.divisibility:
            raise ValueError(
                f"'{kernel.name}': expected '{name}' to be a multiple of {argument.divisibility}, as the kernel was "
                f"compiled for, but got {_number(value)}; compile it without that promise"
            )
    if 0 in grid:
        return
    device = device_for(tuple(values))
    kernel = kernel.fitting(values)
    module = kernel.module(device)
    kernel.check_grid(grid)
    if kernel.cooperative:
        cooperative.check(kernel, module, device, grid)
    values = tuple(value.data_ptr() if is_bare(value) else value for value in values)
    if launches.are_watched():
        launches.pass_on(launches.Passing(kernel, module, grid, values))
    else:
        module.launch(grid, 32 * kernel.num_warps, values)


def _values(kernel: Kernel, args: Sequence[Any]) -> tuple[Any, ...]:
    """The run-time arguments among those of a call, a composite's parts in its place."""
    params, varying = kernel.function.params, kernel.signature.arguments
    if len(args) != len(params):
        some = [p for p in params if not p.is_constexpr]
        if len(args) != len(some):
            raise TypeError(
                f"'{kernel.name}': expected an argument for each of its {len(params)} parameters, or for the "
                f"{len(some)} that are no constants, but got {len(args)}"
            )
        params = some
    parts = dict(zip(*_named(*composites.spread(params, args)), strict=True))
    missing = [name for name in varying if name not in parts]
    if missing:
        raise TypeError(f"'{kernel.name}': expected an argument for '{missing[0]}', but got none")
    return tuple(parts[name] for name in varying)


def _named(params: Sequence[Any], values: Sequence[Any]) -> tuple[list[str], Sequence[Any]]:
    return [each.name for each in params], values


def _number(value: Any) -> int:
    """The integer that a promise is about: an address, or the value."""
    if hasattr(value, "data_ptr"):
        return int(value.data_ptr())
    return (
        int(value.ctypes.data) if hasattr(value, "ctypes") and hasattr(value, "shape") and value.shape else int(value)
    )
