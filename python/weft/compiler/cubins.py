# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Machine code for libraries: which cubins are asked for, and those of a library's PTX, by ptxas."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ..errors import Error
from ..targets import default_target
from . import ptxas

#: what ``cubin=`` takes: whether to assemble for the targets themselves, or names of targets
Asked = bool | str | Iterable[str]
#: cubins as a manifest has them
Described = list[dict[str, Any]]


def asked(cubin: Asked, targets: Sequence[str]) -> tuple[str, ...]:
    """The targets to assemble for: none, those of the PTX, or those that are named ("sm_80,sm_86"). Raises TypeError
    and ValueError for other things, and weft.Error where there is no ptxas to do it."""
    if isinstance(cubin, bool):
        names = list(targets) if cubin else []
    elif isinstance(cubin, (str, list, tuple, set, frozenset)):
        names = [each.strip() for each in cubin.split(",")] if isinstance(cubin, str) else list(cubin)
    else:
        raise TypeError(f"expected 'cubin' to be a truth or names of targets, but got {cubin!r}")
    for name in names:
        if not isinstance(name, str) or not re.fullmatch(r"sm_\d{2,3}[af]?", name):
            example = default_target()
            raise ValueError(f"expected the name of a target, such as {example!r}, for 'cubin', but got {name!r}")
    if names and ptxas.find_tool("ptxas") is None:
        raise Error(
            "expected ptxas on PATH, in CUDA_HOME or of an installed Triton to make cubins with, but found none: "
            "install one, or ask for no cubin; the driver compiles the PTX then"
        )
    return tuple(dict.fromkeys(names))


def assembled(
    kernels: Iterable[Mapping[str, Any]], files: Mapping[str, str | bytes], names: Sequence[str]
) -> tuple[Described, dict[str, bytes]]:
    """The cubins of a library's PTX for those of the targets ``names`` that it can be assembled for, as a manifest has
    them, and their files. ``kernels`` are as a manifest has them, ``files`` by name.

    Raises weft.Error for a target that no PTX serves, and with ptxas' words for PTX that it refuses.
    """
    target_of = {variant["ptx"]: variant["target"] for kernel in kernels for variant in kernel["variants"]}
    jobs = [(file, name) for file, target in target_of.items() for name in names if serves(target, name)]
    for name in names:
        if not any(wanted == name for _, wanted in jobs):
            have = ", ".join(dict.fromkeys(target_of.values()))
            raise Error(f"expected a target that PTX for {have} can be assembled for, but got '{name}' for a cubin")
    if not jobs:
        return [], {}

    from concurrent.futures import ThreadPoolExecutor  # slow to load

    def assemble(job: tuple[str, str]) -> bytes:
        return ptxas.cubin(_text(files[job[0]]), job[1])

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        codes = list(pool.map(assemble, jobs))
    described: Described = []
    made = {}
    for (file, name), code in zip(jobs, codes, strict=True):
        made[_file_of(file, name)] = code
        digest = hashlib.sha256(_text(files[file]).encode()).hexdigest()
        described.append({"file": _file_of(file, name), "target": name, "ptx": file, "ptx_sha256": digest})
    return described, made


def serves(target: str, cubin: str) -> bool:
    """Whether PTX for a target can be assembled for another: for itself and what is newer, but PTX that uses what one
    architecture or family has, for itself alone."""
    if target == cubin:
        return True
    return target[-1].isdigit() and cubin[-1].isdigit() and int(target[3:]) <= int(cubin[3:])


def _file_of(ptx: str, target: str) -> str:
    """sema.sm_80.ptx gives sema.sm_80.cubin, and for another target sema.sm_80.sm_86.cubin."""
    stem = ptx.removesuffix(".ptx")
    return f"{stem}.cubin" if target in stem.split(".") else f"{stem}.{target}.cubin"


def _text(file: str | bytes) -> str:
    return file if isinstance(file, str) else file.decode()
