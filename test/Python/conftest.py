# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""What the Python tests share: the examples as modules, and a table of how near to their limits the judged results
came.
"""

import importlib.util
import json
import os
import pathlib
import subprocess
import sys
import types

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]


def load_example(name):
    """The module of examples/NAME.py, not run as a program."""
    if str(ROOT / "examples") not in sys.path:  # as it is for an example that is run
        sys.path.append(str(ROOT / "examples"))
    spec = importlib.util.spec_from_file_location(f"example_{name}", ROOT / "examples" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="session")
def example():
    return load_example


def run_python(*arguments):
    """Run Python with this tree's weft; gives the finished process, which must have succeeded."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "python")}
    command = [sys.executable, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done


@pytest.fixture(scope="session")
def mechanism_library(once):
    """examples/mechanisms compiled for both targets by `weft compile`: its ``path``, and what the command ``said``; and
    what examples/11_library.py ``reported`` of it and wrote to ``vectors``.
    """

    def make(place):
        command = ("-m", "weft.cli", "compile", ROOT / "examples" / "mechanisms", "--target", "sm_80,sm_90a")
        said = run_python(*command, "-o", place / "library").stderr
        script = ROOT / "examples" / "11_library.py"
        reported = run_python(script, place / "library", "--vectors", place / "vectors").stdout
        (place / "texts.json").write_text(json.dumps({"said": said, "reported": reported}))

    place = once("mechanisms", make)
    texts = json.loads((place / "texts.json").read_text())
    return types.SimpleNamespace(path=place / "library", vectors=place / "vectors", **texts)


# Tests of other libraries, which take seconds to import.
ECOSYSTEM = ("test_hf_kernel.py", "test_liger.py", "test_linear_attention.py", "test_transformers.py")


def pytest_ignore_collect(collection_path, config):
    """Files of tests marked `ecosystem` are not imported where their tests would not run."""
    return True if collection_path.name in ECOSYSTEM and "not ecosystem" in config.option.markexpr else None


def pytest_collection_modifyitems(items):
    """What asks for the library of all mechanisms comes first: the first tests are one worker's, others would wait."""
    items.sort(key=lambda item: "mechanism_library" not in getattr(item, "fixturenames", ()))


@pytest.fixture
def held(record_property):
    """held(group, draw): weft.testing.hold, and a row of the table that the run ends with."""
    from weft.testing import hold

    def run(group, draw):
        last = {}

        def judged():
            nonlocal last
            last = draw()  # which hold keeps, to compare several
            return last

        try:
            hold(judged)
        finally:
            record_property("accuracy", [group, {name: result.closeness for name, result in last.items()}])

    return run


def recorded(terminalreporter, name):
    """What tests recorded under a name."""
    reports = [report for found in terminalreporter.stats.values() for report in found if hasattr(report, "when")]
    calls = [report for report in reports if report.when == "call"]
    return [value for report in calls for key, value in report.user_properties if key == name]


def pytest_terminal_summary(terminalreporter):
    """The seeds of random programs; and one line a group: how many cases, and the largest error over its limit."""
    for seeds in sorted(recorded(terminalreporter, "random programs")):
        terminalreporter.write_line(f"random programs: {seeds}")
    groups = {}
    for group, closeness in recorded(terminalreporter, "accuracy"):
        groups.setdefault(group, []).append(closeness)
    if not groups:
        return
    terminalreporter.section("largest error / its limit (mechanisms of the size grid)")
    for group in sorted(groups):
        worst = {}
        for closeness in groups[group]:
            for name, value in closeness.items():
                worst[name] = max(worst.get(name, 0.0), value)
        results = "  ".join(f"{name} {value:.2f}" for name, value in worst.items())
        terminalreporter.write_line(f"{group:42} {len(groups[group]):4} cases   {results}")
