# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""``triton.compiler.compiler``: kernels compiled ahead.

source = ASTSource(kernel, {"x": "*fp32", "n": "i32", "BLOCK": "constexpr"}, {"BLOCK": 64})
compiled = triton.compile(source, target=GPUTarget("cuda", 90, 32), options={"num_warps": 8})
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from weft.compiler import libraries
from weft.compiler.ast_source import ASTSource
from weft.compiler.fingerprint import compiler_fingerprint as triton_key
from weft.compiler.kernel import Kernel as CompiledKernel
from weft.triton.backends.compiler import Compiler, GPUTarget
from weft.triton.runtime.driver import driver


def make_backend(target: GPUTarget) -> Compiler:
    """The compiler for a target. Raises ValueError for targets of other vendors."""
    if not Compiler.supports_target(target):
        raise ValueError(f"expected a target of backend 'cuda' or 'cpu', but got {target}")
    return Compiler(target)


def max_shared_mem(device: int) -> int:
    """The most shared memory that a program may have."""
    return int(driver.active.utils.get_device_properties(device)["max_shared_mem"])


def compile(
    src: Any, target: Any = None, options: Mapping[str, Any] | None = None, *rest: Any, **library: Any
) -> CompiledKernel | Any:
    """The kernel of an ``ASTSource`` for a ``GPUTarget``, the active driver's by default, with options such as
    "num_warps". Of a kernel or a program itself, ``weft.compile``, which writes a library.

    Raises CompilationError at the kernel's own line.
    """
    if not isinstance(src, ASTSource):
        return libraries.compile(src, target, options, *rest, **library)  # type: ignore[arg-type]
    if rest or library:
        raise TypeError(f"expected a target and options of an ASTSource, but got {', '.join(library) or rest}")
    backend = make_backend(driver.active.get_current_target() if target is None else target)
    chosen = backend.parse_options({**src.parse_options(), **(options or {})})
    made: CompiledKernel = src.fn.compile_for(
        src.wanted(),
        backend.name,
        chosen.num_warps,
        chosen.num_stages,
        chosen.debug,
        chosen.enable_fp_fusion,
    )
    simulated = backend.target.backend == "cpu"
    return dataclasses.replace(made, simulated=simulated, cooperative=chosen.launch_cooperative_grid)


__all__ = ["ASTSource", "CompiledKernel", "compile", "make_backend", "max_shared_mem", "triton_key"]
