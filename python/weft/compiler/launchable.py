# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""What is launched as ``something[grid](*args)``."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any


class Launchable:
    """A kernel, or something around a kernel: autotuning, heuristics, a library's own entry. What derives from this
    says what ``run`` does. ``fn`` is what stands inside, at last the Python function; ``arg_names`` are its
    parameters."""

    fn: Any
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
