# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Launches of which all programs are to run at once, since they wait for each other: whether the device holds them.

The launch itself is a plain one. On a GPU where other launches run at the same time its programs wait for those to
end; two launches of this kind side by side may wait for each other.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..errors import Error
from ..targets import Target, occupancy, target_named, targets
from . import ptxas
from .entries import tensor_columns
from .targets import target_of

if TYPE_CHECKING:
    from .kernel import Kernel


@dataclass(frozen=True)
class Room:
    """How many programs of a kernel a device holds at once, and what decides it."""

    multiprocessors: int
    resident: int
    """programs on a multiprocessor"""
    registers: int
    """of a thread"""
    shared_bytes: int
    threads: int

    @property
    def programs(self) -> int:
        """On the whole device."""
        return self.multiprocessors * self.resident

    def check(self, name: str, grid: tuple[int, ...]) -> None:
        """Raise weft.Error, with the numbers, where the grid has more programs."""
        wanted = math.prod(grid)
        if wanted > self.programs:
            raise Error(
                f"expected a cooperative launch of '{name}' to have at most {self.programs} programs, which run at "
                f"once, but got {wanted}: {self.resident} fit on each of {self.multiprocessors} multiprocessors, with "
                f"{self.registers} registers a thread, {self.shared_bytes} bytes of shared memory and {self.threads} "
                "threads a program; launch fewer programs and let each do more"
            )


def room(kernel: Kernel, module: Any, device: Any) -> Room:
    """The room for a kernel that is loaded on a device. The simulator stands for the first GPU of its target, and
    registers are those that ptxas reports; without it, the most that a thread can have. Raises weft.Error for a GPU
    whose numbers are not known."""
    machine = _machine(device)
    known, gpu = module.attributes, next(iter(machine.gpus.values()))
    registers = int(known["registers"]) or _registers(kernel.ptx, kernel.target, kernel.name)
    registers = registers or machine.registers_per_thread
    shared = int(known["static_shared_bytes"]) + kernel.shared_bytes
    processors = gpu.multiprocessors if device.simulated else int(device.properties["multiprocessors"])
    resident = occupancy(registers, kernel.num_warps, shared, machine, tensor_columns(kernel.ptx, kernel.name))
    return Room(processors, resident, registers, shared, machine.warp_size * kernel.num_warps)


def check(kernel: Kernel, module: Any, device: Any, grid: tuple[int, ...]) -> None:
    """Raise weft.Error, with the numbers, where a cooperative launch's programs do not all run at once."""
    room(kernel, module, device).check(kernel.name, grid)


def _machine(device: Any) -> Target:
    """The target whose multiprocessors are the device's."""
    if device.simulated:
        return target_named(target_of(device))
    major, minor = device.properties["capability"]
    for each in targets().values():
        if each.capability == 10 * major + minor:
            return each
    raise Error(
        f"expected a GPU whose multiprocessors are known for 'launch_cooperative_grid', but '{device.name}' has "
        f"compute capability {major}.{minor}: launch without it no more programs than the GPU holds at once"
    )


@functools.lru_cache(maxsize=64)
def _registers(ptx: str, target: str, entry: str) -> int | None:
    """The registers of a thread; None where there is no ptxas."""
    found = ptxas.figures(ptx, target, [entry])
    return None if not found else found[entry].registers
