# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""``triton.profiler``: what the launches of tile kernels between ``start`` and ``finalize`` took, as a tree of scopes.

    session = proton.start("run")
    with proton.scope("forward", {"flops": 2 * m * n * k}):
        kernel[grid](x, y)
    proton.finalize()  # writes run.hatchet

On a GPU "time (ns)" is measured on its stream by events around the launch. Without one it is the cost model's, beside
what the simulator counted: "warp_instructions", "sectors" of 32 bytes, "mma_macs". Launches of the thread that started
the first session are recorded; those of programs of libraries and of torch itself are not.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import json
import pathlib
import time
from collections.abc import Callable, Mapping
from typing import Any

from weft.compiler import launches
from weft.compiler.launches import Passing
from weft.folders import new_file
from weft.kernels.counting import count

DEFAULT_PROFILE_NAME = "proton"


@dataclasses.dataclass
class _Node:
    """A scope, or a kernel within one."""

    name: str
    metrics: dict[str, Any] = dataclasses.field(default_factory=dict)
    children: dict[str, _Node] = dataclasses.field(default_factory=dict)

    def under(self, name: str) -> _Node:
        return self.children.setdefault(name, _Node(name))

    def add(self, metrics: Mapping[str, Any]) -> None:
        for name, value in metrics.items():
            self.metrics[name] = value if isinstance(value, str) else self.metrics.get(name, 0) + value

    def tree(self) -> dict[str, Any]:
        """As Proton's files have it."""
        below = [child.tree() for child in self.children.values()]
        return {"frame": {"name": self.name, "type": "function"}, "metrics": self.metrics, "children": below}


@dataclasses.dataclass
class _Session:
    path: pathlib.Path
    root: _Node = dataclasses.field(default_factory=lambda: _Node("ROOT", {"count": 0}))
    active: bool = True
    events: list[tuple[_Node, Any, Any]] = dataclasses.field(default_factory=list)
    """launches on a GPU that have not been timed yet"""

    def here(self) -> _Node:
        """The node of the open scopes."""
        return functools.reduce(_Node.under, _scopes, self.root)


_sessions: dict[int, _Session] = {}
_scopes: list[str] = []
_watching = contextlib.ExitStack()
_started = 0  # sessions so far


def _active() -> list[_Session]:
    return [session for session in _sessions.values() if session.active]


def _take(launch: Passing) -> None:
    """Run a launch, and record it in the active sessions."""
    nodes = [(session, session.here().under(launch.kernel.name)) for session in _active()]
    if launch.simulated:
        seconds, counted = count(launch)
        found = {
            "count": 1,
            "time (ns)": 1e9 * seconds,
            "warp_instructions": counted.warp_instructions,
            "sectors": counted.sectors,
            "mma_macs": sum(counted.mma_macs.values()),
            "device_type": "simulator",
        }
        for _, node in nodes:
            node.add(found)
        return
    import torch

    device = next((each.device for each in launch.arguments if getattr(each, "is_cuda", False)), None)
    with torch.cuda.device(device):
        before, after = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        before.record()
        launch.run()
        after.record()
    for session, node in nodes:
        node.add({"count": 1, "device_type": "CUDA"})
        session.events.append((node, before, after))


def _watch() -> None:
    """Take this thread's launches while there is an active session, and no longer."""
    _watching.close()
    if _active():
        _watching.enter_context(launches.taken(_take))


def start(
    name: str | None = None,
    *,
    context: str = "shadow",
    data: str = "tree",
    backend: str | None = None,
    mode: Any = None,
    hook: Any = None,
) -> int:
    """Begin a session, whose file is to be ``name`` with ".hatchet" behind it; its number. There are trees of scopes
    alone: other contexts, data, backends and modes raise ValueError. ``hook`` has no effect."""
    global _started
    for option, given, known in (("context", context, "shadow"), ("data", data, "tree")):
        if given != known:
            raise ValueError(f"expected {option!r} to be {known!r}, but got {given!r}")
    if backend is not None or mode is not None:
        raise ValueError(f"expected no backend and no mode, which Weft has not, but got {backend!r} and {mode!r}")
    number, _started = _started, _started + 1
    _sessions[number] = _Session(pathlib.Path(f"{name or DEFAULT_PROFILE_NAME}.hatchet"))
    _watch()
    return number


def _chosen(session: int | None) -> list[_Session]:
    if session is not None and session not in _sessions:
        raise ValueError(f"expected a session that was started and is not finalized, but got {session!r}")
    return list(_sessions.values()) if session is None else [_sessions[session]]


def activate(session: int | None = None) -> None:
    """Record again, in a session or in all of them."""
    for each in _chosen(session):
        each.active = True
    _watch()


def deactivate(session: int | None = None, flushing: bool = False) -> None:
    """Record no more, in a session or in all of them, until ``activate``."""
    for each in _chosen(session):
        each.active = False
    _watch()


def finalize(session: int | None = None, output_format: str = "") -> None:
    """End a session, or all of them, and write what it has, as JSON: a tree of "frame", "metrics" and "children"."""
    if output_format not in ("", "hatchet"):
        raise ValueError(f"expected 'output_format' to be 'hatchet', but got {output_format!r}")
    for number in [number for number, each in _sessions.items() if each in _chosen(session)]:
        ended = _sessions.pop(number)
        for node, before, after in ended.events:
            after.synchronize()
            node.add({"time (ns)": 1e6 * before.elapsed_time(after)})
        with new_file(ended.path) as file:
            file.write_text(json.dumps([ended.root.tree(), {}]))
    _watch()


class scope:
    """What is launched under a name: around statements (``with scope("forward"):``), or a decorator of a function.
    Numbers given as ``metrics`` are added to the scope's each time that it is entered."""

    def __init__(self, name: str, metrics: Mapping[str, Any] | None = None):
        self.name, self.metrics = name, metrics

    def __enter__(self) -> scope:
        enter_scope(self.name, metrics=self.metrics)
        return self

    def __exit__(self, *failed: Any) -> None:
        exit_scope(self.name)

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def within(*args: Any, **kwargs: Any) -> Any:
            with type(self)(self.name, self.metrics):
                return function(*args, **kwargs)

        return within


class cpu_timed_scope(scope):
    """A scope whose "cpu_time (ns)" is the time that the host spends in it."""

    def __enter__(self) -> cpu_timed_scope:
        super().__enter__()
        self._since = time.perf_counter_ns()
        return self

    def __exit__(self, *failed: Any) -> None:
        exit_scope(self.name, metrics={"cpu_time (ns)": time.perf_counter_ns() - self._since})


def enter_scope(name: str, *, metrics: Mapping[str, Any] | None = None) -> int | None:
    """Open a scope within those that are open; how many there are then, or None where nothing is recorded."""
    _scopes.append(name)
    return _noted(metrics)


def exit_scope(name: str | None = None, *, metrics: Mapping[str, Any] | None = None) -> int | None:
    """Close the innermost scope; ValueError where that is another one than ``name``, or there is none."""
    if not _scopes or name not in (None, _scopes[-1]):
        raise ValueError(f"expected to leave the scope {_scopes[-1:]}, but got {name!r}")
    noted = _noted(metrics)
    _scopes.pop()
    return noted


def _noted(metrics: Mapping[str, Any] | None) -> int | None:
    numbers = {name: each.item() if hasattr(each, "item") else each for name, each in (metrics or {}).items()}
    for session in _active():
        session.here().add(numbers)
    return len(_scopes) if _active() else None


def profile(function: Callable[..., Any] | None = None, *, name: str | None = None, **options: Any) -> Any:
    """A decorator: each call is a session of its own, which ``finalize`` writes."""
    if function is None:
        return functools.partial(profile, name=name, **options)

    @functools.wraps(function)
    def recorded(*args: Any, **kwargs: Any) -> Any:
        number = start(name, **options)
        try:
            return function(*args, **kwargs)
        finally:
            deactivate(number)

    return recorded


__all__ = [
    "DEFAULT_PROFILE_NAME",
    "activate",
    "cpu_timed_scope",
    "deactivate",
    "enter_scope",
    "exit_scope",
    "finalize",
    "profile",
    "scope",
    "start",
]
