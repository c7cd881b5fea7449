# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""The tests marked gpu, a file a case."""

from __future__ import annotations

import functools
import importlib.util
import pathlib
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as xml
from collections.abc import Iterator
from typing import Any

from weft.first_gpu.cases import CHECKOUT, Case, LeftOut, Options, Wrong


def cases(options: Options) -> Iterator[Case]:
    """The files of the repository that have such tests."""
    folder = CHECKOUT / "test" / "Python"
    if not folder.is_dir() or importlib.util.find_spec("pytest") is None:
        yield Case(("all",), _absent)
        return
    for path in sorted(folder.glob("test_*.py")):
        if "pytest.mark.gpu" in path.read_text(encoding="utf-8"):
            yield Case((path.name,), functools.partial(_run, path))


def _absent() -> dict[str, Any]:
    raise LeftOut("the tests are in Weft's repository, and need pytest: run `make gpu` there")


def _run(path: pathlib.Path) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        results = pathlib.Path(folder) / "results.xml"
        command = [sys.executable, "-m", "pytest", "-q", "-m", "gpu", f"--junitxml={results}", str(path)]
        done = subprocess.run(command, cwd=CHECKOUT, capture_output=True, text=True, check=False)
        if not results.exists():
            raise Wrong(f"pytest ended with {done.returncode}: {(done.stdout + done.stderr)[-400:]}")
        found = [_outcome(case) for case in xml.parse(results).getroot().iter("testcase")]
    failed = [f"{name}: {reason}" for name, outcome, reason in found if outcome == "failed"]
    if failed:
        raise Wrong("; ".join(failed)[:1000])
    if not any(outcome == "passed" for _, outcome, _ in found):
        raise LeftOut("; ".join(sorted({reason for _, _, reason in found})) or "no test ran")
    skipped = [f"{name}: {reason}" for name, outcome, reason in found if outcome == "skipped"]
    return {"passed": sum(outcome == "passed" for _, outcome, _ in found), "skipped": "; ".join(skipped)}


def _outcome(case: xml.Element) -> tuple[str, str, str]:
    name = case.get("name", "")
    for kind, outcome in (("failure", "failed"), ("error", "failed"), ("skipped", "skipped")):
        if (found := case.find(kind)) is not None:
            return name, outcome, (found.get("message") or "")[:300]
    return name, "passed", ""
