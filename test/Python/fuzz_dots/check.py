# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Runs a drawn kernel on the simulator, compares what it leaves in memory, and makes smaller one that fails."""

from __future__ import annotations

import importlib.util
import os
import pathlib
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any
from unittest import mock

import numpy as np
import weft
import weft.simulator

from .arrays import Pointer, UnfitError, encoded, language
from .draw import OPERANDS, OWN, Drawn

#: elements that results may take, so that a kernel runs in a second
MOST_STORED = 4_000_000
SHORT = {"float16": "fp16", "bfloat16": "bf16", "float32": "fp32", "int8": "i8", "float8e5": "fp8e5", "int32": "i32"}
NOTHING = -77


@dataclass
class Verdict:
    text: str  # what is wrong; empty where nothing is
    ptx: str = ""


def built(text: str) -> Any:
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder) / "random_dots.py"
        file.write_text(f"import weft\nimport weft.language as wl\n\n\n@weft.jit\n{text}")
        spec = importlib.util.spec_from_file_location("random_dots", file)
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        _ = module.kernel.source  # read while the file is there
    return module.kernel


def contents(drawn: Drawn) -> dict[str, np.ndarray]:
    """The memory before the kernel, by parameters."""
    rng = np.random.default_rng(drawn.seed)
    operands = rng.integers(-1, 2, OPERANDS) * (rng.random(OPERANDS) < 0.6)
    return {
        "a": operands.astype(float),
        "out": np.full(drawn.stored, float(NOTHING)),
        "narrow": np.full(drawn.stored, float(NOTHING)),
        "counts": np.zeros(1024),
        "own": np.resize(operands, OWN * drawn.programs).astype(float),
        "idx": rng.integers(0, 64, 256),
    }


def types(drawn: Drawn) -> dict[str, str]:
    return {"a": drawn.dtype, "out": drawn.sums, "narrow": drawn.narrow, "counts": drawn.sums, "own": drawn.dtype,
            "idx": "int32"}  # fmt: skip


def evaluated(drawn: Drawn, rows: int) -> dict[str, np.ndarray]:
    """The memory behind the kernel, as Python runs its text."""
    memory, wl = contents(drawn), language()
    scope: dict[str, Any] = {"wl": wl, "range": range}
    exec(drawn.text, scope)
    for program in range(drawn.programs):
        wl.program_id = lambda axis, program=program: program
        wl.num_programs = lambda axis: drawn.programs
        scope["kernel"](*map(Pointer, memory.values()), *drawn.counts, rows)
    return memory


def judged(drawn: Drawn, target: str, seeds: int = 2) -> Verdict:
    """Raises UnfitError where it is no kernel to judge."""
    rows = int(np.random.default_rng(drawn.seed).integers("% rows" in drawn.text, 257))
    if drawn.stored > MOST_STORED:
        raise UnfitError("large")
    wanted = evaluated(drawn, rows)
    kinds = types(drawn)
    signature = ", ".join([*(f"{name}:*{SHORT[kind]}:16" for name, kind in kinds.items()),
                           "n0:i32, n1:i32, n2:i32, rows:i32"])  # fmt: skip
    try:
        kernel = built(drawn.text).compile(
            signature, target=target, num_warps=drawn.warps, num_stages=drawn.stages, **drawn.options
        )
    except Exception as error:
        if "bytes of shared memory, the limit of a block" in str(error):
            raise UnfitError("shared memory") from None
        return Verdict(f"does not compile: {type(error).__name__}: {error}")
    numbers = dict(zip(("n0", "n1", "n2", "rows"), map(np.int32, (*drawn.counts, rows)), strict=True))
    for seed in range(seeds):
        arrays = {name: encoded(array, kinds[name]) for name, array in contents(drawn).items()}
        given = {**arrays, **numbers}
        processors = {"WEFT_SIMULATOR_MULTIPROCESSORS": str((1, 2, 5)[seed % 3])}  # which persistent kernels ask for
        try:
            with mock.patch.dict(os.environ, processors):
                report = weft.simulator.launch(
                    kernel.ptx, kernel.name, drawn.programs, 32 * kernel.num_warps,
                    [given[name] for name in kernel.signature.arguments], shared=kernel.shared_bytes, seed=seed,
                    limit=10_000_000, threads=1,
                )  # fmt: skip
        except weft.Error as error:
            return Verdict(f"does not run: {error}", kernel.ptx)
        if report.findings:
            return Verdict(f"finding: {report.findings[0]}", kernel.ptx)
        for name, array in arrays.items():
            differ = array != encoded(wanted[name], kinds[name])
            if differ.any():
                at = int(np.argmax(differ))
                return Verdict(f"{name}[{at}] is {array[at]}, and {wanted[name][at]} was expected", kernel.ptx)
    return Verdict("", kernel.ptx)


def smaller(drawn: Drawn) -> Iterator[Drawn]:
    """The kernel without a line, and what is under it."""
    lines = drawn.text.splitlines()
    for first in range(2, len(lines)):
        depth = len(lines[first]) - len(lines[first].lstrip())
        past = first + 1
        while past < len(lines) and len(lines[past]) - len(lines[past].lstrip()) > depth:
            past += 1
        yield replace(drawn, text="\n".join(lines[:first] + lines[past:]) + "\n")


def shrunk(drawn: Drawn, fails: Callable[[Drawn], bool]) -> Drawn:
    """As few lines as still fail."""
    for less in smaller(drawn):
        if fails(less):
            return shrunk(less, fails)
    return drawn
