# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""What is launched as ``something[grid](*args)``."""

from __future__ import annotations

import functools
import importlib
import pickle
from collections.abc import Callable
from typing import Any


class Decorated:
    """What a decorator makes of a function. As a function it is itself in copies of what holds it, a model's among
    them, and is pickled by the name of its module's global that it is. ``fn`` is what is inside."""

    fn: Any

    def __copy__(self) -> Any:
        return self

    def __deepcopy__(self, memo: Any) -> Any:
        return self

    def __reduce__(self) -> Any:
        function = self.fn
        while isinstance(function, Decorated):
            function = function.fn
        place = getattr(function, "__module__", ""), getattr(function, "__qualname__", type(function).__qualname__)
        try:
            found = _global(*place)
        except (ImportError, AttributeError, ValueError):
            found = None
        if found is not self:
            raise pickle.PicklingError(f"expected a global of module '{place[0]}' to pickle, but got '{place[1]}'")
        return _global, place


def _global(module: str, name: str) -> Any:
    return functools.reduce(getattr, name.split("."), importlib.import_module(module))


class Launchable(Decorated):
    """A kernel, or something around a kernel: autotuning, heuristics, a library's own entry. What derives from this
    says what ``run`` does. ``fn`` is what stands inside, at last the Python function; ``arg_names`` are its
    parameters."""

    arg_names: list[str]
    __name__: str

    def run(self, *args: Any, grid: Any, warmup: bool = False, **kwargs: Any) -> Any:
        """Launch on a grid: what ``something[grid](...)`` does. With ``warmup``, compile and do not launch."""
        raise NotImplementedError(f"expected {type(self).__name__} to define 'run'")

    def warmup(self, *args: Any, grid: Any = None, **kwargs: Any) -> Any:
        """Compile as a call with these arguments would, without a launch."""
        return self.run(*args, grid=grid, warmup=True, **kwargs)

    def __getitem__(self, grid: Any) -> Callable[..., Any]:
        return functools.partial(self.run, grid=grid, warmup=False)
