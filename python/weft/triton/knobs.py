# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""``triton.knobs``: the settings of Triton's that Weft has. Those that set Triton's own stages are absent.

triton.knobs.runtime.launch_enter_hook.add(lambda metadata: print(metadata.get()["name"]))
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from weft.compiler import launches
from weft.compiler.launches import Passing


class LazyDict:
    """What is told of a launch: ``get()`` gives "name", "grid", "num_warps" and "stream"."""

    def __init__(self, launch: Passing):
        self._launch = launch

    def get(self) -> dict[str, Any]:
        """The facts by name."""
        kernel = self._launch.kernel
        return {"name": kernel.name, "grid": self._launch.grid, "num_warps": kernel.options.num_warps, "stream": None}


class HookChain:
    """Functions that are called with each launch."""

    def __init__(self, hooks: list[Callable[[Passing], Any]]):
        self._hooks = hooks
        self._added: dict[Callable[[LazyDict], Any], Callable[[Passing], Any]] = {}

    def add(self, hook: Callable[[LazyDict], Any]) -> None:
        """Call ``hook`` with each launch from now on."""
        if hook not in self._added:
            self._added[hook] = lambda launch: hook(LazyDict(launch))
            self._hooks.append(self._added[hook])

    def remove(self, hook: Callable[[LazyDict], Any]) -> None:
        """Call ``hook`` no more."""
        if hook in self._added:
            self._hooks.remove(self._added.pop(hook))


class _Runtime:
    """Hooks of launches. ``interpret`` is False: kernels are always compiled, also for the simulator."""

    def __init__(self) -> None:
        self.launch_enter_hook = HookChain(launches.before)
        self.launch_exit_hook = HookChain(launches.after)
        self.interpret = False
        self.debug = False


class _Autotuning:
    """``cache``: whether choices are kept on disk by default, as they are. ``print`` has no effect."""

    cache = True
    print = False
    listener = None


runtime = _Runtime()
autotuning = _Autotuning()

__all__ = ["HookChain", "LazyDict", "autotuning", "runtime"]
