# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Kernels on the simulator and on the GPU: those of test/Simulator/corpus, by nvcc and by Triton, and Weft's own."""

from __future__ import annotations

import functools
import importlib
import re
import shutil
import subprocess
import sys
import tempfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from weft.first_gpu.cases import CHECKOUT, Case, LeftOut, Options, Wrong
from weft.first_gpu.exactness import unfixed
from weft.first_gpu.launches import on_gpu, on_simulator
from weft.first_gpu.programs import program_cases
from weft.targets import default_target

_FOLDER = CHECKOUT / "test" / "Simulator"
_MODES = {"-O3": ["-O3"], "-G": ["-G"]}
#: PTX, the entry's name, and what makes a fresh launch of it
Made = tuple[str, str, Callable[[], Any]]


def cases(options: Options) -> Iterator[Case]:
    """A case for each kernel and mode."""
    yield from _chosen(program_cases(), options)
    if not _FOLDER.is_dir():
        yield Case(("nvcc", "all", ""), _left_out("the corpus is in Weft's repository: run `make gpu` there"))
        return
    if str(_FOLDER) not in sys.path:
        sys.path.insert(0, str(_FOLDER))
    yield from _chosen(_cuda_cases(), options)
    yield from _chosen(_triton_cases(), options)


def _chosen(found: Iterator[Case], options: Options) -> Iterator[Case]:
    for case in found:
        if not options.only or any(word in " ".join(case.name) for word in options.only):
            yield case


def _cuda_cases() -> Iterator[Case]:
    for path in sorted((_FOLDER / "corpus").glob("*.cu")):
        importlib.import_module(f"corpus.{path.stem}")
    for each in importlib.import_module("corpus.case").CASES:
        for mode in _MODES:
            yield Case(("nvcc", each.id, mode), functools.partial(compare, functools.partial(_cuda, each, mode)))


def _triton_cases() -> Iterator[Case]:
    try:
        found = importlib.import_module("corpus.triton_cases").CASES
    except ImportError as error:
        yield Case(("Triton", "all", ""), _left_out(f"Triton cannot be imported: {error}"))
        return
    for each in found:
        yield Case(("Triton", each.id, ""), functools.partial(compare, functools.partial(_triton, each)))


def _left_out(reason: str) -> Callable[[], dict[str, Any]]:
    def run() -> dict[str, Any]:
        raise LeftOut(reason)

    return run


def _prepared(each: Any) -> Callable[[], Any]:
    return lambda: each.prepare(np.random.default_rng(zlib.crc32(each.id.encode())))


def _cuda(each: Any, mode: str) -> Made:
    return _nvcc(each.source, mode), each.entry, _prepared(each)


@functools.cache
def _nvcc(source: str, mode: str) -> str:
    tool = shutil.which("nvcc")
    if tool is None:
        raise LeftOut("no nvcc on this machine")
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "made.ptx"
        options = [f"-arch={default_target()}", "-std=c++17", *_MODES[mode]]
        command = [tool, *options, "-ptx", str(_FOLDER / "corpus" / source)]
        done = subprocess.run([*command, "-o", str(out)], capture_output=True, text=True, check=False)
        if done.returncode:
            raise Wrong(f"nvcc: {done.stderr[:400]}")
        return out.read_text(encoding="latin-1")


def _triton(each: Any) -> Made:
    kernel = importlib.import_module("test_corpus_triton").compile_case(each)
    ptx: str = kernel.asm["ptx"]

    def fresh() -> Any:
        launch = _prepared(each)()
        entry = re.search(r"\.entry\s+\w+\s*\((.*?)\)", ptx, re.DOTALL)
        parameters = len(re.findall(r"\.param", entry[1])) if entry else 0
        launch.args += [np.uint64(0)] * (parameters - len(launch.args))  # Triton's scratch buffers
        launch.shared = kernel.metadata.shared
        return launch

    return ptx, kernel.metadata.name, fresh


def compare(make: Callable[[], Made]) -> dict[str, Any]:
    """Run on both; Wrong where the results differ by more than PTX lets them."""
    ptx, entry, fresh = make()
    simulated, real = fresh(), fresh()
    lines = on_gpu(ptx, entry, real)
    expected_lines = on_simulator(ptx, entry, simulated)
    loose = unfixed(ptx, entry)
    largest = 0.0
    for position in simulated.expected:
        ours, theirs = simulated.args[position], real.args[position]
        if not loose:
            _same_bits(position, ours, theirs)
        largest = max(largest, _difference(ours, theirs, simulated.expected[position]))
    if loose:
        try:
            importlib.import_module("corpus.case").compare(real)
        except AssertionError as error:
            raise Wrong(f"the GPU's results: {' '.join(str(error).split())[:400]}") from error
    if simulated.output is not None and lines != expected_lines:
        raise Wrong(f"expected the simulator's {len(expected_lines)} lines, but the GPU printed {lines[:3]}")
    exact = not loose or not (simulated.rtol or simulated.atol)
    return {
        "agreement": "bit for bit" if exact else f"within rtol {simulated.rtol:g}, atol {simulated.atol:g}",
        "largest difference": largest,
        "not fixed by PTX": ", ".join(loose),
    }


def _same_bits(position: int, ours: np.ndarray, theirs: np.ndarray) -> None:
    """The same numbers, zeros' signs too; a NaN is any other, since PTX fixes no payload."""
    differ = _bits(ours) != _bits(theirs)
    if ours.dtype.kind == "f":
        differ &= ~(np.isnan(ours) & np.isnan(theirs)).ravel()
    if differ.any():
        at = int(differ.argmax())
        raise Wrong(
            f"argument {position}: expected the simulator's bits, but {int(differ.sum())} of {ours.size} elements "
            f"differ; the first, {at}: {ours.ravel()[at]!r} on the simulator, {theirs.ravel()[at]!r} on the GPU"
        )


def _bits(array: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(array).ravel().view(f"u{array.dtype.itemsize}")


def _difference(ours: np.ndarray, theirs: np.ndarray, expected: np.ndarray) -> float:
    """The largest difference of finite elements; bf16 travels as its bits."""
    if ours.dtype == np.uint16 and expected.dtype.kind == "f":
        ours, theirs = ((x.astype(np.uint32) << 16).view(np.float32) for x in (ours, theirs))
    first, second = ours.astype(np.float64), theirs.astype(np.float64)
    finite = np.isfinite(first) & np.isfinite(second)
    return float(np.abs(first - second)[finite].max(initial=0.0))
