# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Operations of programs called on concrete arrays, outside of a program: each runs as a program of its own; mixers
wait until they are applied or materialised.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

from ..runtime.compiling import compiling
from ..runtime.plain import promised
from . import concrete, graph
from .facts import readable
from .inputs import flatten
from .tensors import lift


def operation(function: Callable[..., Any]) -> Callable[..., Any]:
    """Mark a function as an operation of programs: arrays among its arguments become inputs while tracing; without a
    program around it, it runs as one."""

    @functools.wraps(function)
    def call(*args: Any, **keywords: Any) -> Any:
        if compiling():
            from . import dynamo  # PyTorch is loaded: it reads this

            return dynamo.call(concrete.run, (call, args, keywords), {})
        if graph.present() is not None:
            return function(*map(lift, args), **{name: lift(value) for name, value in keywords.items()})
        return concrete.run(call, args, keywords)

    call.__weft_operation__ = True  # type: ignore[attr-defined]
    return call


def whole(function: Callable[..., Any], writes: str = "") -> Callable[..., Any]:
    """Mark a function that checks its arguments and calls programs: torch.compile takes it as one call, but where the
    keyword ``writes`` is given, with which it is ``apart``."""
    signature = inspect.signature(function)

    @functools.wraps(function)
    def call(*args: Any, **keywords: Any) -> Any:
        if compiling():
            from . import dynamo

            if writes and keywords.get(writes) is not None:
                return dynamo.outside(call, args, keywords)
            return dynamo.call(call, args, keywords)
        found: list[tuple[str, Any]] = []
        flatten((args, keywords), "", found)
        if any(promised(array) for _, array in found):
            _named(signature, args, keywords)
        return function(*args, **keywords)

    return call


def apart(function: Callable[..., Any]) -> Callable[..., Any]:
    """Mark a function that changes its arguments in place by a kernel, which no graph of torch.compile has: it runs
    between two graphs."""

    @functools.wraps(function)
    def call(*args: Any, **keywords: Any) -> Any:
        if compiling():
            from . import dynamo

            return dynamo.outside(function, args, keywords)
        return function(*args, **keywords)

    return call


def _named(signature: inspect.Signature, args: tuple[Any, ...], keywords: dict[str, Any]) -> None:
    """Refuse, by its name, a tensor without data beside others that have data."""
    found: list[tuple[str, Any]] = []
    for name, value in signature.bind(*args, **keywords).arguments.items():
        flatten(value, name, found)
    readable(found, differentiable=True)
