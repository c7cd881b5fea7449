# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Each example runs by itself, as a user would start it, and checks itself."""

import pathlib
import subprocess
import sys

import pytest

EXAMPLES = sorted((pathlib.Path(__file__).resolve().parents[2] / "examples").glob("[0-9]*.py"))


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda p: p.stem)
def test_example(path, tmp_path):
    run = subprocess.run([sys.executable, path], capture_output=True, text=True, timeout=300, cwd=tmp_path)
    assert run.returncode == 0, run.stderr
    assert run.stdout.strip(), "expected the example to say what it checked"


def test_there_are_examples():
    assert len(EXAMPLES) >= 4
