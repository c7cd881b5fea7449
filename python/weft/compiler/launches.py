# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""What a launch passes on its way to the device: hooks before and after, and whoever takes launches in the device's
place to count them.

    weft.compiler.launches.before.append(lambda launch: print(launch.kernel.name, launch.grid))
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..runtime.devices import device_for

if TYPE_CHECKING:
    from .kernel import Kernel


@dataclass(frozen=True)
class Passing:
    """One launch of a compiled kernel, of its run-time arguments, on as many programs as the grid has."""

    kernel: Kernel
    module: Any
    grid: tuple[int, ...]
    arguments: tuple[Any, ...]

    @property
    def simulated(self) -> bool:
        """Whether it goes to the simulator."""
        return bool(device_for(self.arguments).simulated)

    def run(self) -> None:
        """Hand the launch to its device."""
        self.module.launch(self.grid, 32 * self.kernel.num_warps, self.arguments)


#: called with each launch before and after it is handed to the device
before: list[Callable[[Passing], Any]] = []
after: list[Callable[[Passing], Any]] = []

_state = threading.local()


def are_watched() -> bool:
    """Whether launches of this thread have hooks, or go elsewhere."""
    return bool(before or after or getattr(_state, "taker", None))


def pass_on(launch: Passing) -> None:
    """Launch, by way of the hooks and of whoever takes this thread's launches."""
    for hook in before:
        hook(launch)
    taker = getattr(_state, "taker", None)
    if taker is None:
        launch.run()
    else:
        taker(launch)
    for hook in after:
        hook(launch)


@contextlib.contextmanager
def taken(by: Callable[[Passing], Any]) -> Iterator[None]:
    """This thread's launches go to ``by`` in the place of their devices; it may run them."""
    outer = getattr(_state, "taker", None)
    _state.taker = by
    try:
        yield
    finally:
        _state.taker = outer
