# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""What candidates are held against: results of the default schedule, and of the program in float32 throughout."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from weft.programs.buckets import Symbols
from weft.programs.simulated import run_plan
from weft.runtime.plans import saved_outputs

from .cases import check_sizes, count_sizes, make_inputs, rounded, widened
from .evaluate import Compile
from .judging import DRAWS, Case, case_file, save_case, save_clean
from .launched import fingerprints


def write_cases(
    compile: Compile,
    text: str,
    name: str,
    options: Mapping[str, Any],
    sizes: Mapping[str, int],
    given: Mapping[str, np.ndarray],
    longest: int,
    seed: int,
    folder: str,
    timed: bool = False,
    draws: Iterable[int] = range(DRAWS),
) -> None:
    """Draws inputs, runs the program by its default schedules and in float32, and writes a case of each function for
    each of ``draws`` and, with the first, the inputs to count on into a folder, or to time on. With arrays ``given``
    sizes are theirs."""
    ptx, info = compile(text, name, options)
    wide_ptx, wide_info = compile(text, name, {**options, "widen": True})
    inputs = _program(info, name)["inputs"]
    symbols = Symbols.of(inputs)
    runs = _Runs(ptx, info, wide_ptx, wide_info, name)
    small = dict(sizes) if given else check_sizes(symbols, sizes)
    for number in draws:
        generator = np.random.default_rng([seed, number])
        runs.write(number, make_inputs(inputs, small, given, generator), generator, folder)
        if number == 0:
            full = dict(sizes) if given or timed else count_sizes(symbols, sizes, longest)
            runs.write_inputs(full, given, generator, folder)
            if not timed:
                save_clean(folder, runs.checked - runs.faulty)


def _program(info: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    return next(each for each in info["programs"] if each["name"] == name)


class _Runs:
    """A program by its default schedules, and in float32."""

    def __init__(
        self, ptx: str, info: Mapping[str, Any], wide_ptx: str, wide_info: Mapping[str, Any], name: str
    ) -> None:
        self.ptx, self.info, self.wide_ptx, self.wide_info, self.name = ptx, info, wide_ptx, wide_info, name
        self.prints = fingerprints(ptx, info)
        self.checked: set[str] = set()
        """kernels that ran with all checks, by what tells them apart"""
        self.faulty: set[str] = set()
        self.differentiated = any(each["name"] == f"{name}.backward" for each in info["programs"])

    def write(self, number: int, inputs: list[np.ndarray], generator: np.random.Generator, folder: str) -> None:
        types = [each["type"] for each in _program(self.info, self.name)["inputs"]]
        wide = [widened(array, kind) for array, kind in zip(inputs, types, strict=True)]
        if not self.differentiated:
            self._write("", number, inputs, wide, folder)
            return
        forward = self._write(".forward", number, inputs, wide, folder)
        # the results are among the forward's: float32 on the simulator takes the longest
        self._write("", number, inputs, wide, folder, forward.exact)
        behind = self._behind(inputs, forward.plain, generator)
        backward = _program(self.info, f"{self.name}.backward")["inputs"][len(inputs) + self._saved() :]
        gradients = [widened(g, each["type"]) for g, each in zip(behind[self._saved() :], backward, strict=True)]
        saved = [forward.exact[name] for name in self._saved_names(wide=True)]
        self._write(".backward", number, [*inputs, *behind], [*wide, *saved, *gradients], folder)

    def _write(
        self,
        part: str,
        number: int,
        inputs: list[Any],
        wide: list[Any],
        folder: str,
        known: Mapping[str, np.ndarray] | None = None,
    ) -> Case:
        checked = number == 0
        run = run_plan(self.ptx, self.info, self.name + part, inputs, checks="all" if checked else "none")
        if checked:
            self.checked |= {self.prints[each.kernel] for each in run.launches}
            self.faulty |= {self.prints[each.kernel] for each in run.launches if each.report.findings}
        types = {each["name"]: each["type"] for each in _program(self.info, self.name + part)["outputs"]}
        if known is None:
            known = run_plan(self.wide_ptx, self.wide_info, self.name + part, wide, checks="none").outputs
        exact = {name: known[name] for name in types}
        case = Case(inputs, run.outputs, exact, types)
        save_case(folder, part, number, case)
        return case

    def write_inputs(
        self,
        sizes: Mapping[str, int],
        given: Mapping[str, np.ndarray],
        generator: np.random.Generator,
        folder: str,
    ) -> None:
        """The inputs that counters or times are taken on. What a backward takes besides the program's own is made up:
        nothing that is counted depends on it. Where integers are among it, such as SFA's units, a forward saves it."""
        own = _program(self.info, self.name)["inputs"]
        made = dict(zip((each["name"] for each in own), make_inputs(own, sizes, given, generator), strict=True))
        for part in ("", ".forward", ".backward") if self.differentiated else ("",):
            described = _program(self.info, self.name + part)["inputs"]
            saved = described[len(own) : len(own) + self._saved()] if part == ".backward" else []
            if any(each["type"].startswith("i") for each in saved):
                plain = [made[each["name"]] for each in own]
                found = run_plan(self.ptx, self.info, f"{self.name}.forward", plain, checks="none").outputs
                made |= {d["name"]: found[name] for d, name in zip(saved, self._saved_names(), strict=True)}
            arrays = make_inputs(described, sizes, made, generator)
            named = {f"input{i}": array for i, array in enumerate(arrays)}
            np.savez(case_file(folder, part, "count"), **named)  # type: ignore[arg-type]

    def _saved_names(self, wide: bool = False) -> Sequence[str]:
        info = self.wide_info if wide else self.info
        plain, forward, backward = (_program(info, self.name + part) for part in ("", ".forward", ".backward"))
        numbers = saved_outputs(len(plain["inputs"]), len(plain["outputs"]), forward["outputs"], backward["inputs"])
        return [forward["outputs"][number]["name"] for number in numbers]

    def _saved(self) -> int:
        return len(self._saved_names())

    def _behind(
        self, inputs: list[np.ndarray], forward: Mapping[str, np.ndarray], generator: np.random.Generator
    ) -> list[np.ndarray]:
        """What a backward takes after the inputs: what was saved, and gradients of the results, drawn."""
        described = _program(self.info, f"{self.name}.backward")["inputs"][len(inputs) + self._saved() :]
        shapes = {f"d_{name}": array.shape for name, array in forward.items()}
        drawn = [generator.standard_normal(shapes[d["name"]]).astype(np.float32) for d in described]
        gradients = [rounded(array, each["type"]) for array, each in zip(drawn, described, strict=True)]
        return [*(forward[name] for name in self._saved_names()), *gradients]
