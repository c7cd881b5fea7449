# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Runs a program on the simulator and compares what it leaves in memory."""

from __future__ import annotations

import importlib.util
import pathlib
import tempfile
from typing import Any

import numpy as np
import torch
import weft
import weft.simulator

from .draw import draw
from .emit import source
from .evaluate import UnknownError, contents, evaluate
from .program import Op, Program, every
from .values import Value, is_float

TORCH = {
    "float8e5": torch.float8_e5m2,
    "float8e4nv": torch.float8_e4m3fn,
    "float16": torch.float16,
    "bfloat16": torch.bfloat16,
    "float32": torch.float32,
    "float64": torch.float64,
}
BITS = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}
SHORT = {"float16": "fp16", "bfloat16": "bf16", "float32": "fp32", "float64": "fp64", "float8e5": "fp8e5",
         "float8e4nv": "fp8e4nv"}  # fmt: skip


def encoded(data: np.ndarray, dtype: str) -> np.ndarray:
    """Numbers as memory has them."""
    if not is_float(dtype):
        return data.copy()
    kind = TORCH[dtype]
    return torch.from_numpy(data.copy()).to(kind).view(torch.uint8).numpy().view(BITS[kind.itemsize])


def decoded(array: np.ndarray, dtype: str) -> np.ndarray:
    if not is_float(dtype):
        return array
    return torch.from_numpy(array.view(np.uint8)).view(TORCH[dtype]).double().numpy()


def built(text: str) -> Any:
    """The kernel of a module's text."""
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder) / "random_tiles.py"
        file.write_text(text)
        spec = importlib.util.spec_from_file_location("random_tiles", file)
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        for each in vars(module).values():
            if hasattr(each, "source"):
                _ = each.source  # read while the file is there
        return module.kernel


def signature(program: Program) -> str:
    def short(dtype: str) -> str:
        return SHORT.get(dtype) or dtype.replace("uint", "u").replace("int", "i")

    return ", ".join([*(f"{b.name}:*{short(b.dtype)}:16" for b in program.buffers), "n:i32"])


def fault(program: Program) -> str | None:
    """What is wrong with a program's run, or None. Raises UnknownError where it cannot be judged."""
    wanted = evaluate(program)
    try:
        kernel = built(source(program))
        made = kernel.compile(
            signature(program), target=program.target, num_warps=program.warps, num_stages=program.stages
        )
    except Exception as error:
        if "bytes of shared memory, the limit of a block" in str(error):
            raise UnknownError from None  # of large tiles, which is said
        return f"does not compile: {type(error).__name__}: {error}"
    first = contents(program)
    arrays = {b.name: encoded(first[b.name], b.dtype) for b in program.buffers}
    given = {**arrays, "n": np.int32(program.n)}
    try:
        report = weft.simulator.launch(
            made.ptx, made.name, program.programs, 32 * made.num_warps,
            [given[name] for name in made.signature.arguments], shared=made.shared_bytes, limit=20_000_000, threads=1,
        )  # fmt: skip
    except weft.Error as error:
        return f"does not run: {error}"
    if report.findings:
        if all(each.kind == "uninitialised" for each in report.findings) and converts(program):
            raise UnknownError  # a float past an integer's range is undefined, as in Triton, and may be folded so
        return f"finding: {report.findings[0]}"
    for buffer in program.buffers:
        if text := difference(buffer.name, decoded(arrays[buffer.name], buffer.dtype), wanted[buffer.name]):
            return text
    return None


def converts(program: Program) -> bool:
    """Whether floats become integers."""
    casts = [s for s in every(program.body) if isinstance(s, Op) and s.name == "cast"]
    types = program.types
    return any(is_float(types[s.ins[0]].dtype) and not is_float(types[s.out[0]].dtype) for s in casts)


def difference(name: str, found: np.ndarray, wanted: Value) -> str | None:
    """Where memory is not what it should be."""
    known = np.isfinite(wanted.err)
    if is_float(wanted.dtype):
        with np.errstate(all="ignore"):
            off = np.abs(found - wanted.data) > wanted.err * 1.001 + 1e-300
        off = off | (np.isnan(found) != np.isnan(wanted.data))
    else:
        off = found != wanted.data
    off = off & known
    if not off.any():
        return None
    at = int(np.argmax(off))
    text = f"{name}[{at}] is {found[at]}, and {wanted.data[at]} ± {wanted.err[at]:.2g} was expected"
    return f"{text} ({off.sum()} of {off.size} differ)"


def judged(seed: int, large: float | None = None) -> tuple[int, str]:
    """What became of a seed's program: "right", "unknown", or what is wrong."""
    torch.set_num_threads(1)
    try:
        return seed, fault(draw(seed, large)) or "right"
    except UnknownError:
        return seed, "unknown"


__all__ = ["UnknownError", "fault", "judged"]
