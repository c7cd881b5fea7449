# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Each example runs by itself, as a user would start it, and checks itself."""

import pathlib
import subprocess
import sys

import pytest

# test_mechanism_library.py runs the library of all mechanisms
EXAMPLES = sorted((pathlib.Path(__file__).resolve().parents[2] / "examples").glob("[0-9]*.py"))
EXAMPLES = [path for path in EXAMPLES if path.stem != "11_library"]


#: what makes a long example short
SHORT = {"10_language_models": ("--steps", "5")}


def run(path, place, *options):
    done = subprocess.run([sys.executable, path, *options], capture_output=True, text=True, timeout=600, cwd=place)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip(), "expected the example to say what it checked"
    return done.stdout


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda p: p.stem)
def test_example(path, tmp_path):
    run(path, tmp_path, *SHORT.get(path.stem, ()))


@pytest.mark.slow
@pytest.mark.parametrize("path", [path for path in EXAMPLES if path.stem in SHORT], ids=lambda p: p.stem)
def test_whole_example(path, tmp_path):
    run(path, tmp_path)


def test_language_models_report(tmp_path):
    (path,) = (path for path in EXAMPLES if path.stem == "10_language_models")
    said = run(path, tmp_path, "--mechanism", "sema", "--steps", "2", "--seed", "3", "--out", "curves.svg")
    assert "sema        blots" in said and "attention" not in said
    assert "<svg" in (tmp_path / "curves.svg").read_text()


def test_there_are_examples():
    assert len(EXAMPLES) >= 4
