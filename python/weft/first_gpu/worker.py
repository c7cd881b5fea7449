# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""One section in a process of its own: python -m weft.first_gpu.worker SECTION ROWS OPTIONS."""

from __future__ import annotations

import importlib
import json
import pathlib
import sys
import traceback
from typing import Any

from weft.first_gpu.cases import Case, LeftOut, Options, Wrong
from weft.first_gpu.rows import DONE, FAILED, LEFT_OUT, Rows
from weft.first_gpu.sections import SECTIONS


def run_cases(cases: list[Case], rows: Rows) -> None:
    """Run those that have no row yet."""
    ended = {tuple(row["name"]) for row in rows.all()}
    rows.expect(len(cases))
    for case in cases:
        if case.name in ended:
            continue
        rows.begin(case.name, case.ours)
        try:
            rows.end(case.name, DONE, case.ours, **case.run())
        except LeftOut as why:
            rows.end(case.name, LEFT_OUT, case.ours, str(why))
        except Wrong as why:
            rows.end(case.name, FAILED, case.ours, str(why))
        except Exception as error:  # whatever a case meets is its row's reason, and the next one runs
            where = traceback.extract_tb(error.__traceback__)[-1]
            place = f"{pathlib.Path(where.filename).name}:{where.lineno}"
            rows.end(case.name, FAILED, case.ours, f"{type(error).__name__} at {place}: {_first_lines(str(error))}")
            if "CUDA error" in str(error) or "CUDA_ERROR" in str(error):
                sys.exit(3)  # the context may be lost: a new process has a new one


def _first_lines(text: str) -> str:
    return " ".join(text.split("\n")[:4])[:600]


def main(arguments: list[str]) -> int:
    """Run the section; 0 when every case has its row."""
    section, rows, options = arguments
    given: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value for name, value in json.loads(options).items()
    }
    made = importlib.import_module(f"weft.first_gpu.{SECTIONS[section].module}").cases(Options(**given))
    run_cases(list(made), Rows(pathlib.Path(rows)))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
