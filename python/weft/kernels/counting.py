# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""What launches cost where there is no GPU: run on the simulator, counted, and given to the cost model."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from math import prod
from typing import Any

import weft.simulator
from weft.compiler import launches
from weft.compiler.launches import Passing
from weft.errors import Error
from weft.runtime.addressed import reached
from weft.simulator.cost import Figures, estimate, gpu_of
from weft.targets import target_named
from weft.tuning.launched import compiled, figures


@dataclass
class Counted:
    """The launches that were counted, with the seconds that the cost model gives each."""

    seconds: list[float] = field(default_factory=list)

    @property
    def milliseconds(self) -> float:
        """Of all launches together."""
        return 1e3 * sum(self.seconds)


@contextlib.contextmanager
def counted() -> Iterator[Counted]:
    """Launches of this thread on simulated devices are counted; those on GPUs go there. A launch that the simulator
    finds at fault raises weft.Error."""
    found = Counted()

    def take(launch: Passing) -> None:
        if launch.simulated:
            found.seconds.append(count(launch)[0])
        else:
            launch.run()

    with launches.taken(take):
        yield found


def count(launch: Passing) -> tuple[float, Figures]:
    """Run a launch on the simulator: the seconds that the cost model gives it, and what was counted. Raises weft.Error
    where it is found at fault."""
    kernel = launch.kernel
    options = kernel.options
    report = weft.simulator.launch(
        kernel.ptx,
        kernel.name,
        launch.grid,
        32 * kernel.num_warps,
        [_argument(value) for value in launch.arguments],
        shared=kernel.shared_bytes,
        checks=os.environ.get("WEFT_SIMULATOR_CHECKS") or "all",  # as the device itself reads it
        memory=reached(launch.arguments),
        threads=1,  # blocks that take turns would count how long each waits for others
    )
    if report.findings:
        raise Error(f"the simulator found '{kernel.name}' at fault: {report.findings[0]}")
    limit = target_named(kernel.target).shared_bytes_per_block
    if kernel.shared_bytes > limit:
        raise Error(f"'{kernel.name}' takes {kernel.shared_bytes} bytes of shared memory; a block has {limit}")
    described = {
        "entry": kernel.name,
        "num_warps": kernel.num_warps,
        "num_stages": options.num_stages,
        "shared_bytes": kernel.shared_bytes,
    }
    made = compiled(kernel.ptx, kernel.target, [described])[kernel.name]
    blocks = prod(report.launch.grid)
    found = figures(made, report, blocks, blocks)
    return estimate(found, target_named(kernel.target), gpu_of(kernel.target)).seconds, found


def _argument(value: Any) -> Any:
    """An argument as the simulator takes it: a tensor of torch as the bytes from its first element to the end of its
    storage."""
    if not hasattr(value, "untyped_storage"):
        return value
    import torch

    storage = value.untyped_storage()
    whole = torch.empty(0, dtype=torch.uint8).set_(storage, 0, (storage.nbytes(),))  # type: ignore[call-overload]
    return whole.numpy()[value.storage_offset() * value.element_size() :]
