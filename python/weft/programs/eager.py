# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Operations of programs called on concrete arrays, outside of a program: each runs as a program of its own; mixers
wait until they are applied or materialised.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from . import concrete, graph
from .tensors import lift


def operation(function: Callable[..., Any]) -> Callable[..., Any]:
    """Mark a function as an operation of programs: arrays among its arguments become inputs while tracing; without a
    program around it, it runs as one."""

    @functools.wraps(function)
    def call(*args: Any, **keywords: Any) -> Any:
        if graph.present() is not None:
            return function(*map(lift, args), **{name: lift(value) for name, value in keywords.items()})
        return concrete.run(call, args, keywords)

    call.__weft_operation__ = True  # type: ignore[attr-defined]
    return call
