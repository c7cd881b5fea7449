# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Whether a candidate's results are right, by cases that were written before: inputs, what the default schedule gives
and what the program in float32 gives. It needs no compiler.
"""

from __future__ import annotations

import functools
import json
import pathlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np

from weft.errors import Error
from weft.programs.simulated import Run

from .agreement import disagreement

_CLEAN = "clean.json"
DRAWS = 3  # cases of a function at most; all but the first are for who exceeds a bound


class Unsure(Exception):  # no error: what asks for further draws
    """Results exceed a bound by little on the first draw, and there are no others yet."""


@dataclass(frozen=True)
class Case:
    """One draw: inputs of a function, what the default schedule and the widened program give, and types by name."""

    inputs: list[np.ndarray]
    plain: dict[str, np.ndarray]
    exact: dict[str, np.ndarray]
    types: dict[str, str]


def case_file(folder: str, part: str, number: int | str) -> pathlib.Path:
    """The file that a function's case of that number is kept in; ``part`` is "", ".forward" or ".backward"."""
    return pathlib.Path(folder, f"{part.lstrip('.') or 'plain'}.{number}.npz")


def save_case(folder: str, part: str, number: int, case: Case) -> None:
    """Write a case to its file, for the processes that judge candidates."""
    arrays = {f"input{i}": array for i, array in enumerate(case.inputs)}
    arrays |= {f"plain.{name}": array for name, array in case.plain.items()}
    arrays |= {f"exact.{name}": array for name, array in case.exact.items()}
    np.savez(case_file(folder, part, number), types=np.array(json.dumps(case.types)), **arrays)  # type: ignore[arg-type]


def save_clean(folder: str, prints: Iterable[str]) -> None:
    """Write which kernels, by weft.tuning.launched.fingerprints, ran with all checks and without findings."""
    pathlib.Path(folder, _CLEAN).write_text(json.dumps(sorted(prints)), encoding="utf-8")


def load_clean(folder: str) -> frozenset[str]:
    """What ``save_clean`` wrote, or none."""
    file = pathlib.Path(folder, _CLEAN)
    return frozenset(json.loads(file.read_text(encoding="utf-8"))) if file.exists() else frozenset()


@functools.lru_cache(maxsize=16)
def load_case(folder: str, part: str, number: int) -> Case:
    """Read a case from its file; the last 16 are kept."""
    with np.load(case_file(folder, part, number)) as file:
        arrays = {name: file[name] for name in file.files}

    def under(prefix: str) -> dict[str, np.ndarray]:
        return {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}

    inputs = under("input")
    return Case(
        [inputs[str(i)] for i in range(len(inputs))],
        under("plain."),
        under("exact."),
        json.loads(str(arrays["types"])),
    )


@functools.lru_cache(maxsize=4)
def load_inputs(folder: str, part: str) -> list[np.ndarray]:
    """The inputs that counters are taken on."""
    with np.load(case_file(folder, part, "count")) as file:
        return [file[f"input{i}"] for i in range(len(file.files))]


def wrong(run: Callable[[str, list[np.ndarray]], Run], name: str, folder: str, part: str) -> str:
    """Why the results of a function of program ``name`` are not those of the reference in ``folder``, or "". One draw
    in some two hundred exceeds a bound by chance, so an excess below three times the bound counts only if one of two
    further draws exceeds one too. Raises Unsure where these are not written yet."""
    first = ""
    for number in range(DRAWS):
        if number and not case_file(folder, part, number).exists():
            raise Unsure(first)
        case = load_case(folder, part, number)
        try:
            given = run(name + part, case.inputs)
        except Error as error:
            return f"it does not run: {first_line(str(error))}"
        if given.findings:
            return f"the simulator found: {given.findings[0]}"
        said, excess = disagreement(given.outputs, case.plain, case.exact, case.types, part == ".backward")
        if said and (excess >= 3 or first):
            return f"wrong: {said}"
        if number == 0 and not said:
            return ""
        first = first or said
    return ""


def first_line(text: str) -> str:
    """The first line of what an error says."""
    return text.strip().splitlines()[0] if text.strip() else "no reason given"
