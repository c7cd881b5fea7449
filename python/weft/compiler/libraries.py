# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""``weft.compile``: a kernel as a PTX library on disk."""

from __future__ import annotations

import math
import os
import pathlib
from collections.abc import Iterable, Mapping
from typing import Any

from ..language.types import dtype
from ..runtime.library import load, write_library
from ..targets import default_target, newest_first
from . import cubins, promises
from .jit import JITFunction
from .kernel import Kernel
from .signature import parse, short_name


def compile(
    fn: Any,
    target: str | Iterable[str] | None = None,
    signature: str | None = None,
    out: str | os.PathLike[str] | None = None,
    *,
    constants: Mapping[str, Any] | None = None,
    num_warps: int = 4,
    num_stages: int = 3,
    cubin: cubins.Asked = False,
) -> Any:
    """Compile a kernel or a program for one or more targets ("sm_80,sm_90a"; ``weft doctor`` lists them, the default
    first) and write the PTX library ``out``, a directory; gives it opened (weft.runtime.Library).

    Argument types come from ``signature`` ("x:*fp16:16, n:i32, BLOCK=128", where :16 promises divisibility by 16; of a
    program "q:fp16[B,H,N,64]:16, w=64") or from the annotations of the parameters.
    Of a kernel under ``weft.autotune`` or ``weft.heuristics``, constants and options come from the choices that its
    calls left on disk, and from the functions.
    ``cubin`` asks for machine code beside the PTX, which GPUs that it fits load in its place: True for the targets
    themselves, or names of targets ("sm_80,sm_86"). It takes ptxas.
    Raises CompilationError for the kernel, weft.runtime.Error for the directory.
    """
    if getattr(fn, "__weft_program__", False):
        return fn.compile(target, signature, out, constants=constants, cubin=cubin)
    settled = getattr(fn, "settled", None)  # of a kernel with heuristics or a tuner around it
    wrapped, fn = fn, getattr(fn, "kernel", fn)
    if not isinstance(fn, JITFunction):
        raise TypeError(f"expected a function decorated with @weft.jit or @weft.program, but got {wrapped!r}")
    if out is None:
        raise TypeError("expected 'out', the directory of the library; to compile without one, use kernel.compile(...)")
    target = default_target() if target is None else target
    names = [t.strip() for t in target.split(",")] if isinstance(target, str) else list(target)
    assembled_for = cubins.asked(cubin, names)
    options = {"num_warps": num_warps, "num_stages": num_stages}
    known = {**(parse(signature).constants if signature else {}), **(constants or {})}
    kernels = []
    for name in names:
        given = {**options, **(settled(known, name) if settled else {})}
        warps, stages = (given.pop(each) for each in options)
        kernels += _forms(fn, signature, {**(constants or {}), **given}, name, warps, stages)
    files = {_file(fn, kernel, kernels): kernel.ptx for kernel in kernels}
    manifest = [_manifest(fn, kernels)]
    described, codes = cubins.assembled(manifest, files, assembled_for)
    write_library(out, manifest, {**files, **codes}, cubins=described)
    return load(out)


def _forms(
    fn: JITFunction, signature: str | None, constants: Mapping[str, Any], target: str, warps: int, stages: int
) -> list[Kernel]:
    """The kernel for a target. Where bulk copies need more of its arguments than is promised, before it one that counts
    on that: launches take the first whose guards hold."""
    kernel = fn.compile(signature, constants, target, warps, stages)
    if not promises.copies_boxes(target):
        return [kernel]
    asked = promises.all_promised(kernel.signature)
    if asked == kernel.signature:
        return [kernel]
    wanted = promises.needed(kernel.signature, fn.compile_for(asked, target, warps, stages).ptx)
    if wanted is None:
        return [kernel]
    faster = fn.compile_for(wanted, target, warps, stages)
    return [faster, kernel] if promises.entries_with_maps(faster.ptx) else [kernel]


def _file(fn: JITFunction, kernel: Kernel, kernels: list[Kernel]) -> str:
    """The part of the library that holds a kernel's PTX."""
    first = next(each for each in reversed(kernels) if each.target == kernel.target)
    return f"{fn.__name__}.{kernel.target}{'' if kernel is first else '.aligned'}.ptx"


def _manifest(fn: JITFunction, kernels: list[Kernel]) -> dict[str, Any]:
    """The kernel as a library's manifest has it; the newest target comes first, as it is preferred."""
    arguments = kernels[0].signature.arguments
    return {
        "name": fn.__name__,
        "source": {"file": pathlib.Path(fn.source.file).name, "line": fn.source.first_line, "sha256": fn.cache_key},
        "arguments": [{"name": name, "type": short_name(argument.type)} for name, argument in arguments.items()],
        "variants": [_variant(fn, kernel, _file(fn, kernel, kernels)) for kernel in newest_first(kernels)],
    }


def _variant(fn: JITFunction, kernel: Kernel, file: str) -> dict[str, Any]:
    return {
        "target": kernel.target,
        "ptx": file,
        "entry": kernel.name,
        "num_warps": kernel.options.num_warps,
        "num_stages": kernel.options.num_stages,
        "shared_bytes": kernel.shared_bytes,
        "constants": {name: _constant(value) for name, value in kernel.signature.constants.items()},
        "guards": [
            {"argument": name, "divisible_by": a.divisibility}
            for name, a in kernel.signature.arguments.items()
            if a.divisibility > 1
        ],
    }


def _constant(value: Any) -> Any:
    """A constant as JSON holds it; infinities and NaN, which JSON has not, by name."""
    if isinstance(value, float) and not math.isfinite(value):
        return repr(value)
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    return short_name(value) if isinstance(value, dtype) else repr(value)
