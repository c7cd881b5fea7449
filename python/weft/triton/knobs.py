# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""``triton.knobs``: the settings of Triton's that Weft has. Those that set Triton's own stages are absent.

triton.knobs.runtime.launch_enter_hook.add(lambda metadata: print(metadata.get()["name"]))
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from weft.compiler import launches
from weft.compiler.cache import directory
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

    __weft_hooks__ = True

    def __init__(self, hooks: list[Callable[[Passing], Any]]):
        self._hooks = hooks
        self._added: dict[Callable[[LazyDict], Any], Callable[[Passing], Any]] = {}

    def __bool__(self) -> bool:
        return bool(self._added)

    def __call__(self, metadata: Any) -> None:
        for hook in list(self._added):
            hook(metadata)

    def add(self, hook: Callable[[LazyDict], Any]) -> None:
        """Call ``hook`` with each launch from now on."""
        if hook not in self._added:
            self._added[hook] = lambda launch: hook(LazyDict(launch))
            self._hooks.append(self._added[hook])

    def remove(self, hook: Callable[[LazyDict], Any]) -> None:
        """Call ``hook`` no more."""
        if hook in self._added:
            self._hooks.remove(self._added.pop(hook))

    def replace(self, hook: Callable[[LazyDict], Any] | HookChain | None) -> None:
        """Call ``hook`` alone, or none: what an assignment to a hook of ``runtime`` means."""
        if hook is self:
            return
        added = list(hook._added) if isinstance(hook, HookChain) else [hook] if hook is not None else []
        if not all(map(callable, added)):
            raise TypeError(f"expected a function of a launch's metadata, or None, but got {type(hook).__name__}")
        for each in list(self._added):
            self.remove(each)
        for each in added:
            self.add(each)


class _Runtime:
    """Hooks of launches, to which functions are added, or one is assigned. ``interpret`` is False: kernels are always
    compiled, also for the simulator."""

    def __init__(self) -> None:
        self._enter, self._exit = HookChain(launches.before), HookChain(launches.after)
        self.interpret = False
        self.debug = False
        self.jit_post_compile_hook: Any = None

    @property
    def launch_enter_hook(self) -> HookChain:
        """Called with each launch before it is handed to the device."""
        return self._enter

    @launch_enter_hook.setter
    def launch_enter_hook(self, hook: Callable[[LazyDict], Any] | HookChain | None) -> None:
        self._enter.replace(hook)

    @property
    def launch_exit_hook(self) -> HookChain:
        """Called with each launch after it was handed to the device."""
        return self._exit

    @launch_exit_hook.setter
    def launch_exit_hook(self, hook: Callable[[LazyDict], Any] | HookChain | None) -> None:
        self._exit.replace(hook)


class _Autotuning:
    """``cache``: whether choices are kept on disk by default, as they are. ``print`` has no effect."""

    cache = True
    print = False
    listener = None


class _Cache:
    """``dir``: the folder of compiled kernels, which WEFT_CACHE_DIR sets; "" where none are kept."""

    @property
    def dir(self) -> str:
        return str(directory() or "")


class _Nvidia:
    """``libdevice_path`` is kept and has no effect: functions of ``libdevice`` are Weft's own."""

    libdevice_path: str | None = None


cache = _Cache()
nvidia = _Nvidia()
runtime = _Runtime()
autotuning = _Autotuning()

__all__ = ["HookChain", "LazyDict", "autotuning", "cache", "nvidia", "runtime"]
