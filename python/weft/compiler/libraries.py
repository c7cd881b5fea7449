# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""``weft.compile``: a kernel as a PTX library on disk."""

from __future__ import annotations

import dataclasses
import math
import os
import pathlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ..language.types import dtype
from ..runtime.library import load, write_library
from ..targets import newest_first
from . import cubins, promises, targets
from . import names as names_of
from .jit import JITFunction
from .kernel import Kernel
from .signature import for_function, parse, short_name

#: what a choice may say beside constants
_OPTIONS = ("num_warps", "num_stages", "cluster", "persistent")


def compile(
    fn: Any,
    target: str | Iterable[str] | None = None,
    signature: str | None = None,
    out: str | os.PathLike[str] | None = None,
    *,
    constants: Mapping[str, Any] | None = None,
    num_warps: int = 4,
    num_stages: int = 3,
    cluster: int = 1,
    persistent: bool = False,
    cubin: cubins.Asked = False,
    grid: Sequence[str] | None = None,
) -> Any:
    """Compile a kernel or a program for one or more targets ("sm_80,sm_90a"; ``weft doctor`` lists them, the default
    first) and write the PTX library ``out``, a directory; gives it opened (weft.runtime.Library).

    Argument types come from ``signature`` ("x:*fp16:16, n:i32, BLOCK=128", where :16 promises divisibility by 16; of a
    program "q:fp16[B,H,N,64]:16, w=64") or from the annotations of the parameters.
    Of a kernel under ``weft.autotune`` or ``weft.heuristics``, constants and options come from the choices that its
    calls left on disk, and from the functions. Choices that depend on integer arguments are all in the library: a
    launch takes that of its arguments, or for others the one that most have.
    ``grid`` is that of launches that give none, up to three expressions of integer arguments and constants:
    ["cdiv(n, BLOCK)"]. Choices that differ in constants need it.
    ``cluster``: programs that share copies, as of a launch; grids must be multiples of it. ``persistent``: one block on
    each multiprocessor goes over the programs, as of a launch.
    ``cubin`` asks for machine code beside the PTX, which GPUs that it fits load in its place: True for the targets
    themselves, or names of targets ("sm_80,sm_86"). It takes ptxas.
    Raises CompilationError for the kernel, weft.runtime.Error for the directory.
    """
    if getattr(fn, "__weft_program__", False):
        if grid is not None:
            raise TypeError(f"expected no 'grid' of a program, which has its own, but got {grid!r}")
        if (num_warps, num_stages) != (4, 3):
            raise TypeError(
                "expected no 'num_warps' and 'num_stages' of a program, whose schedules are chosen, but got "
                f"{num_warps!r} and {num_stages!r}; weft.tuning.tune tries others"
            )
        for option, value, default in (("cluster", cluster, 1), ("persistent", persistent, False)):
            if value != default:
                raise TypeError(f"expected no '{option}' of a program, whose schedules are chosen, but got {value!r}")
        return fn.compile(target, signature, out, constants=constants, cubin=cubin)
    settled = getattr(fn, "settled", None)  # of a kernel with heuristics or a tuner around it
    wrapped, fn = fn, getattr(fn, "kernel", fn)
    if not isinstance(fn, JITFunction):
        raise TypeError(f"expected a function decorated with @weft.jit or @weft.program, but got {wrapped!r}")
    if out is None:
        raise TypeError("expected 'out', the directory of the library; to compile without one, use kernel.compile(...)")
    names = targets.asked(target)
    assembled_for = cubins.asked(cubin, names)
    options = dict(zip(_OPTIONS, (num_warps, num_stages, cluster, persistent), strict=True))
    known = {**(parse(signature).constants if signature else {}), **(constants or {})}
    forms: list[_Form] = []
    for name in names:
        choices = settled(known, name) if settled else [({}, {})]
        _check_grid(fn, grid, choices)
        for number, (key, chosen) in enumerate(choices):
            given = {**options, **chosen}
            asked = {each: given.pop(each) for each in options}
            made = _forms(fn, signature, {**(constants or {}), **given}, name, asked)
            ordinal = "" if number == len(choices) - 1 else f".{number}"
            suffixes = [f"{ordinal}.aligned", ordinal] if len(made) > 1 else [ordinal]
            forms += [
                _Form(kernel, f"{fn.__name__}.{name}{suffix}.ptx", key)
                for kernel, suffix in zip(made, suffixes, strict=True)
            ]
    names_of.check("kernel", fn.__name__, forms[0].kernel.signature.arguments)
    files = {form.file: form.kernel.ptx for form in forms}
    manifest = [_manifest(fn, forms, grid)]
    described, codes = cubins.assembled(manifest, files, assembled_for)
    write_library(out, manifest, {**files, **codes}, cubins=described)
    return load(out)


@dataclasses.dataclass(frozen=True)
class _Form:
    """A kernel with the part of the library that holds its PTX, and the values of arguments that it is chosen for."""

    kernel: Kernel
    file: str
    key: Mapping[str, int]

    @property
    def target(self) -> str:
        return self.kernel.target


def _check_grid(fn: JITFunction, grid: Sequence[str] | None, choices: Sequence[tuple[Any, Mapping[str, Any]]]) -> None:
    if grid is not None and (
        isinstance(grid, str) or not 1 <= len(grid) <= 3 or not all(isinstance(each, str) for each in grid)
    ):
        raise TypeError(f"expected one to three expressions for 'grid', ['cdiv(n, BLOCK)'], but got {grid!r}")
    constants = [{n: v for n, v in chosen.items() if n not in _OPTIONS} for _, chosen in choices]
    if grid is None and any(each != constants[0] for each in constants):
        differing = sorted({n for each in constants for n in each if each[n] != constants[0].get(n)})
        raise ValueError(
            f"expected 'grid' for '{fn.__name__}', whose choices by key differ in {', '.join(differing)}, but got None"
            "; give it as expressions of arguments and constants, grid=['cdiv(n, BLOCK)'], or fix the key in the "
            "signature, NAME=VALUE"
        )


def _forms(
    fn: JITFunction, signature: str | None, constants: Mapping[str, Any], target: str, options: Mapping[str, Any]
) -> list[Kernel]:
    """The kernel for a target. Where bulk copies need more of its arguments than is promised, before it one that counts
    on that: launches take the first whose guards hold."""
    asked = for_function(fn, parse(signature) if signature else None, constants)
    kernel = fn.compile_for(asked, target, **options)  # for arrays that may share memory
    if not promises.copies_boxes(target):
        return [kernel]
    asked = promises.all_promised(kernel.signature)
    if asked == kernel.signature:
        return [kernel]
    wanted = promises.needed(kernel.signature, fn.compile_for(asked, target, **options).ptx)
    if wanted is None:
        return [kernel]
    faster = fn.compile_for(wanted, target, **options)
    return [faster, kernel] if promises.entries_with_maps(faster.ptx) else [kernel]


def _manifest(fn: JITFunction, forms: list[_Form], grid: Sequence[str] | None) -> dict[str, Any]:
    """The kernel as a library's manifest has it; the newest target comes first, as it is preferred."""
    arguments = forms[0].kernel.signature.arguments
    return {
        "name": fn.__name__,
        "source": {"file": pathlib.Path(fn.source.file).name, "line": fn.source.first_line, "sha256": fn.cache_key},
        "arguments": [{"name": name, "type": short_name(argument.type)} for name, argument in arguments.items()],
        "variants": [_variant(form, grid) for form in newest_first(forms)],
    }


def _variant(form: _Form, grid: Sequence[str] | None) -> dict[str, Any]:
    kernel = form.kernel
    guards: dict[str, dict[str, Any]] = {name: {"argument": name, "equals": value} for name, value in form.key.items()}
    for name, argument in kernel.signature.arguments.items():
        if argument.divisibility > 1:
            guards.setdefault(name, {"argument": name})["divisible_by"] = argument.divisibility
    described = {
        "target": kernel.target,
        "ptx": form.file,
        "entry": kernel.name,
        "num_warps": kernel.num_warps,
        "num_stages": kernel.options.num_stages,
        "shared_bytes": kernel.shared_bytes,
        **({"cluster": [kernel.cluster, 1, 1]} if kernel.cluster > 1 else {}),
        "constants": {name: _constant(value) for name, value in kernel.signature.constants.items()},
        "guards": list(guards.values()),
    }
    return described if grid is None else {**described, "grid": [*grid, *["1"] * (3 - len(grid))]}


def _constant(value: Any) -> Any:
    """A constant as JSON holds it; infinities and NaN, which JSON has not, by name."""
    if isinstance(value, float) and not math.isfinite(value):
        return repr(value)
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    return short_name(value) if isinstance(value, dtype) else repr(value)
