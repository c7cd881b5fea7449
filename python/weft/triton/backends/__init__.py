# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""``triton.backends``. ``backends`` names what kernels are compiled for and run by: "cpu" is the simulator.
``torch.compile`` generates Triton kernels for tensors on the CPU where ``torch._inductor.config.cpu_backend`` is
"triton"; by default it writes C++."""

from __future__ import annotations

from dataclasses import dataclass

from . import compiler, driver, nvidia
from .compiler import BaseBackend, Compiler
from .driver import CudaDriver, Driver, DriverBase, SimulatorDriver


@dataclass(frozen=True)
class Backend:
    """A compiler's class and its driver's."""

    compiler: type[Compiler]
    driver: type[Driver]


backends: dict[str, Backend] = {"nvidia": Backend(Compiler, CudaDriver), "cpu": Backend(Compiler, SimulatorDriver)}

__all__ = ["Backend", "BaseBackend", "DriverBase", "backends", "compiler", "driver", "nvidia"]
