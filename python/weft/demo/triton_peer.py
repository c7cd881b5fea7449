# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""The same kernel source compiled by Triton, where Triton is installed: the peer that Weft's code is held against."""

from __future__ import annotations

import importlib.util
import time
import types
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from weft.targets import default_target, target_named


@dataclass(frozen=True)
class PeerKernel:
    """What Triton made: PTX text, and the seconds from Python to PTX."""

    ptx: str
    seconds: float


def available() -> bool:
    """Whether Triton is installed; it needs no GPU to compile."""
    return importlib.util.find_spec("triton") is not None


def compile_with_triton(
    function: Callable[..., Any],
    signature: Mapping[str, str],
    constants: Mapping[str, Any],
    *,
    divisible: tuple[str, ...] = (),
    capability: int | None = None,
    warps: int = 4,
    stages: int = 3,
) -> PeerKernel:
    """Compile a kernel's plain Python function with Triton.

    ``signature`` maps the run-time arguments to Triton type strings ("*fp16", "i32"), ``constants`` the constexpr
    ones to values, ``divisible`` names the arguments that are multiples of 16. The function's ``wl`` is Triton's
    language, name for name.
    """
    import triton
    import triton.language as tl
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    names = function.__code__.co_varnames[: function.__code__.co_argcount]
    kernel = triton.jit(
        types.FunctionType(
            function.__code__, {**function.__globals__, "wl": tl}, function.__name__, function.__defaults__
        )
    )
    kernel.fn.__module__ = function.__module__
    full = {name: signature.get(name, "constexpr") for name in names}
    attrs = {(names.index(name),): [["tt.divisibility", 16]] for name in divisible}
    started = time.perf_counter()
    compiled = triton.compile(
        ASTSource(kernel, full, {(names.index(n),): v for n, v in constants.items()}, attrs),
        target=GPUTarget("cuda", capability or target_named(default_target()).capability, 32),
        options={"num_warps": warps, "num_stages": stages},
    )
    return PeerKernel(compiled.asm["ptx"], time.perf_counter() - started)
