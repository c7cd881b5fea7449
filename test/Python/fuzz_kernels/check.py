# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Runs described kernels on the simulator and compares what they leave in memory."""

from __future__ import annotations

import importlib.util
import pathlib
import tempfile

import numpy as np
import weft.simulator

from . import describe as d
from .emit import source
from .interpret import UnfitError, contents, interpret


def build(text: str):
    """The kernel of a module's text."""
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder) / "random_kernel.py"
        file.write_text(text)
        spec = importlib.util.spec_from_file_location("random_kernel", file)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        _ = module.kernel.source  # read while the file is there
    return module.kernel


def fault(kernel: d.Kernel, interleavings: int = 2) -> str | None:
    """What is wrong with a kernel's run, or None. Raises UnfitError where floats would round."""
    wanted = interpret(kernel)
    try:
        function = build(source(kernel))
        arrays = contents(kernel)
        ticket, flag = np.zeros(1, np.int32), np.zeros(kernel.programs + 2, np.int32)
        made = function.warmup(*arrays.values(), kernel.n, ticket, flag, num_warps=kernel.warps)
    except Exception as error:
        return f"does not compile: {type(error).__name__}: {error}"
    for interleaving in range(interleavings):
        arrays = contents(kernel)
        flag[:], flag[0], ticket[:] = 0, 1, 0
        given = {**arrays, "n": np.int32(kernel.n), "ticket": ticket, "flag": flag}
        launched = [given[name] for name in made.signature.arguments]
        report = weft.simulator.launch(
            made.ptx, made.name, kernel.programs, 32 * kernel.warps, launched, shared=made.shared_bytes,
            seed=interleaving, limit=2_000_000,
        )  # fmt: skip
        unexpected = [f for f in report.findings if not (wanted.undefined and f.kind == "uninitialised")]
        if unexpected:
            return f"finding: {unexpected[0]}"
        if must_be_found(kernel, wanted.undefined) and not report.findings:
            return "an undefined value reaches memory, and nothing is found"
        for name, array in arrays.items():
            known = wanted.memory[name].defined
            numbers = wanted.memory[name].numbers
            same = np.isclose(array.astype(numbers.dtype), numbers, rtol=0, atol=0, equal_nan=True) | ~known
            if not same.all():
                at = int(np.argmin(same))
                return f"{name}[{at}] is {array[at]}, and {numbers[at]} was expected ({(~same).sum()} differ)"
    return None


def must_be_found(kernel: d.Kernel, undefined: bool) -> bool:
    """Whether an undefined value surely reaches memory: differences of equal numbers may be zeros to the compiler, and
    what is loaded as 8 or 16 bits may be widened by masks, which the simulator takes to leave written bits alone."""
    narrow = {buffer.name for buffer in kernel.buffers if buffer.dtype in ("int8", "uint8", "int16", "uint16")}
    return undefined and not any(
        (isinstance(s, d.Binary) and s.op == "-")
        or (isinstance(s, d.Scale) and s.by < 0)
        or (isinstance(s, d.Load) and s.buffer in narrow and s.mask is not None and s.other is None)
        for s in every(kernel.body)
    )


def every(body: tuple):
    """The statements, those in loops and turns too."""
    for statement in body:
        yield statement
        yield from every(getattr(statement, "body", ()))


def drawn(seed: int) -> d.Kernel:
    """The kernel of a seed: the first one drawn whose numbers are exact."""
    random = np.random.default_rng(seed)
    while True:
        kernel = d.draw(random)
        try:
            interpret(kernel)
        except UnfitError:
            continue
        return kernel
