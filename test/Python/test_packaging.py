# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""What wheels are made of: both projects' metadata, licences and bill of materials, and what the package does where an
extra or the compiler is missing. tools/try_wheel.sh tries a wheel itself.
"""

import io
import json
import os
import pathlib
import re
import subprocess
import sys
import tomllib

import pytest
import weft
from weft import native, tables
from weft.cli import config
from weft.cli.__main__ import main

ROOT = pathlib.Path(__file__).resolve().parents[2]


def project(folder):
    return tomllib.loads((ROOT / folder / "pyproject.toml").read_text())


@pytest.mark.parametrize("folder", [".", "packaging/runtime"])
def test_metadata(folder):
    found = project(folder)
    about, settings = found["project"], found["tool"]["scikit-build"]
    assert about["name"] == {".": "weft-attention"}.get(folder, "weft-attention-runtime")
    assert [each.split(">")[0] for each in about["dependencies"]] == ["numpy"]
    tools = {"weft-opt": "opt", "weft-lsp-server": "lsp_server", "weft-reduce": "reduce"} if folder == "." else {}
    scripts = {"weft": "weft.cli.__main__:main"} | {name: f"weft.cli.tools:{each}" for name, each in tools.items()}
    assert about["scripts"] == scripts and about["license"] == "Apache-2.0"
    (version,) = found["tool"]["dynamic-metadata"]
    text = (ROOT / folder / version["input"]).read_text()
    assert re.search(rf'^__version__ = "{re.escape(weft.__version__)}"$', text, re.MULTILINE)
    for package in settings["wheel"]["packages"]:
        assert (ROOT / folder / package / "py.typed").exists()


def test_extras():
    extras = project(".")["project"]["optional-dependencies"]
    assert {"torch", "jax", "tune", "draw", "cli"} == set(extras)
    page = (ROOT / "docs" / "Installing.md").read_text()
    assert all(f"| `{name}` |" in page for name in extras)
    assert project("packaging/runtime")["project"]["optional-dependencies"].items() <= extras.items()


def test_both_projects_are_built_alike():
    whole, runtime = (project(folder) for folder in (".", "packaging/runtime"))
    assert whole["build-system"] == runtime["build-system"]
    pins = (ROOT / "tools" / "requirements.txt").read_text().splitlines()
    assert set(whole["build-system"]["requires"]) <= set(pins)
    defined = [
        each["tool"]["scikit-build"]["cmake"]["define"] | {"WEFT_BUILD_COMPILER": ""} for each in (whole, runtime)
    ]
    assert defined[0] == defined[1]


def test_versions_agree():
    """CMake's, the package's, and that of both libraries."""
    stated = re.search(r"project\(Weft VERSION ([\d.]+)", (ROOT / "CMakeLists.txt").read_text())[1]
    assert stated == weft.__version__ == native.load("_runtime").version
    assert native.load("_compiler").version() == stated


@pytest.mark.parametrize("options", [[], ["--runtime-only"]], ids=["whole", "runtime"])
def test_what_is_linked_in_is_named(options, tmp_path):
    """Each part of the bill has a licence, and its text where Debian or pybind11 bring one."""
    command = [sys.executable, ROOT / "tools" / "notices.py", tmp_path / "notices", "1.2.3", *options]
    subprocess.run(command, check=True, capture_output=True)
    (path,) = (tmp_path / "notices" / "sboms").glob("*.cyclonedx.json")
    bill = json.loads(path.read_text())
    assert bill["bomFormat"] == "CycloneDX" and bill["metadata"]["component"]["version"] == "1.2.3"
    parts = {each["name"]: each for each in bill["components"]}
    linked = {"fmt", "nlohmann-json", "libmd", "libstdc++", "pybind11"}
    assert set(parts) == (linked if options else linked | {"llvm", "zlib", "zstd"})
    assert all(each["licenses"] for each in parts.values())
    texts = {each.stem for each in (tmp_path / "notices" / "licenses").iterdir()}
    assert "LICENSE" in texts and "pybind11" in texts
    assert {name for name, each in parts.items() if "version" in each} <= texts


def test_tables_without_rich(monkeypatch):
    """The same cells, as plain text."""
    stream = io.StringIO()
    monkeypatch.setattr(tables, "has_rich", lambda: False)
    table = tables.table_class()("name", title="a title", title_justify="left")
    table.add_column("number", justify="right", no_wrap=True)
    table.add_row("first", "1,000")
    table.add_section()
    table.add_row("second")
    console = tables.console_class()(file=stream, width=80)
    console.print(table)
    console.print("done", highlight=False, markup=False)
    expected = ["a title", "name    number", "------  ------", "first    1,000", "------  ------", "second", "done"]
    assert stream.getvalue().splitlines() == expected


WITHOUT = """\
import sys
hidden = {names}
class Hide:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in hidden:
            raise ModuleNotFoundError(f"No module named '{{name}}'", name=name)
sys.meta_path.insert(0, Hide())
"""

ATTENTION = """\
import numpy as np
import weft

@weft.program
def attend(q, k, v):
    return weft.softmax(q, k, weft.causal()) @ v

q, k, v = np.random.default_rng(0).standard_normal((3, 1, 1, 32, 16), dtype=np.float32)
scores = np.where(np.tri(32, dtype=bool), q[0, 0] @ k[0, 0].T / 4, -np.inf)
weights = np.exp(scores - scores.max(1, keepdims=True))
expected = weights / weights.sum(1, keepdims=True) @ v[0, 0]
assert np.abs(np.asarray(attend(q, k, v))[0, 0] - expected).max() < 1e-5
assert not hidden & set(sys.modules)
"""


def test_numpy_alone(tmp_path):
    """Attention is compiled and run where nothing is installed but NumPy."""
    hidden = {"torch", "triton", "rich", "matplotlib", "jax", "jinja2", "scipy"}
    script = tmp_path / "attention.py"
    script.write_text(WITHOUT.format(names=hidden) + ATTENTION)
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "python"), "WEFT_DEVICE": "simulator"}
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr


def test_config(tmp_path, capsys):
    """A source tree has no headers in the package; a wheel says where they are."""
    assert main(["config"]) == 1
    assert "expected a package that was installed from a wheel" in capsys.readouterr().err
    (tmp_path / "weft" / "cmake").mkdir(parents=True)
    found = config.folders(tmp_path / "weft")
    assert found["cmake-prefix"] == str(tmp_path) and found["include"] == str(tmp_path / "weft" / "include")


def test_the_compiler_is_missing(tmp_path, monkeypatch):
    """A runtime's wheel says which one has the compiler, a source tree how to build it."""
    monkeypatch.setenv("WEFT_NATIVE_DIR", str(tmp_path / "weft" / "_native"))
    with pytest.raises(ImportError, match=r"no extension module '_other' in .*: build it with 'make'"):
        native.load("_other")
    (tmp_path / "weft" / "cmake").mkdir(parents=True)
    with pytest.raises(ImportError, match="install weft-attention instead"):
        native.load("_other")
