# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Every block of every page runs as it stands; tables name all that there is."""

import importlib
import re
import subprocess
import sys

import pytest
import torch
import weft
from doc_blocks import LANGUAGES, PAGES, ROOT, Page, blocks, differs
from installed import build_folder
from weft import patterns


def run(path, folder, capture, slow, monkeypatch, ecosystem=False):
    monkeypatch.chdir(folder)
    monkeypatch.setenv("WEFT_DEVICE", "simulator")
    if slow:  # what is tuned is measured anew, and chosen for nobody else
        monkeypatch.setenv("WEFT_CACHE_DIR", str(folder / "cache"))
    page = Page(path, folder, build_folder(), capture)
    for block in blocks(path):
        if not block.left_out and (slow or not block.slow) and (ecosystem or not block.ecosystem):
            page.run(block)
    return page.names


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_page(path, tmp_path, capsys, monkeypatch):
    names = run(path, tmp_path, capsys, False, monkeypatch)
    for name, value in names.items():
        if isinstance(value, torch.Tensor) and value.is_floating_point():
            assert value.double().isfinite().all(), name
            gradient = value.grad if value.is_leaf else None
            assert gradient is None or (gradient.isfinite().all() and gradient.any()), name


@pytest.mark.slow
@pytest.mark.parametrize(
    "path", [path for path in PAGES if any(block.slow for block in blocks(path))], ids=lambda path: path.stem
)
def test_page_whole(path, tmp_path, capsys, monkeypatch):
    run(path, tmp_path, capsys, True, monkeypatch)


@pytest.mark.ecosystem
@pytest.mark.parametrize(
    "path", [path for path in PAGES if any(block.ecosystem for block in blocks(path))], ids=lambda path: path.stem
)
def test_page_with_others(path, tmp_path, capsys, monkeypatch):
    for name in ("transformers", "jax"):
        pytest.importorskip(name)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    run(path, tmp_path, capsys, False, monkeypatch, ecosystem=True)


def test_blocks_say_what_they_are():
    """A language that is run, or why not; commands are in console blocks, not in indented ones."""
    left_out = []
    for path in PAGES:
        for block in blocks(path):
            assert block.language in LANGUAGES, f"{path.name}:{block.line}: ```{block.language}"
            known = block.left_out or block.slow or block.ecosystem or block.language == "ptx"
            assert block.note == "" or known, (path.name, block.line)
            left_out += [(path.name, block.line)] * block.left_out
            assert block.language != "console" or block.text.startswith("$ "), (path.name, block.line)
        rest = re.sub(r"^```.*?^```$", "", path.read_text(), flags=re.DOTALL | re.MULTILINE)
        assert not re.findall(r"^    (?:\$ |weft |make |python |\.venv/).*$", rest, re.MULTILINE), path.name
    assert len(left_out) <= 14, left_out


def test_what_is_compared():
    assert not differs("a 0x12345678\n  ...\nb in 1.5 s", "x a 0x99999999 y\n b in 3 s")
    assert differs("a ... b", "b a") and differs("1.25", "1.26") and differs("line 16", "line 17")


def test_every_pattern_is_listed():
    text = (ROOT / "docs" / "Patterns.md").read_text()
    made = {name for name, value in vars(patterns).items() if not name.startswith("_") and callable(value)}
    assert made == set(patterns.__all__)
    for name in made - {"Pattern"}:
        assert f"`weft.{name}(" in text, name
        assert hasattr(weft, name)


def test_every_module_is_listed():
    text = (ROOT / "docs" / "Modules.md").read_text()
    for name in weft.nn.__all__:
        assert f"`weft.nn.{name}(" in text, name


def test_the_page_of_errors_is_that_of_the_catalogue():
    """`python tools/errors_page.py` writes it anew."""
    sys.path.insert(0, str(ROOT / "tools"))
    try:
        errors_page = importlib.import_module("errors_page")
    finally:
        sys.path.remove(str(ROOT / "tools"))
    page = errors_page.page()
    assert page == errors_page.PAGE.read_text(encoding="utf-8")
    numbers = re.findall(r"^### WL(\d{3})$", page, re.M)
    assert len(numbers) == len(set(numbers)) > 70, "a number is given twice"
    assert "{remedy" not in page and "\n\n\n" not in page


def test_files_one_touches():
    """docs/Extending.md says which files name an op, a pattern, a target and an instruction, and no others do."""
    found = subprocess.run([sys.executable, ROOT / "tools" / "extending.py", "--check"], capture_output=True, text=True)
    assert found.returncode == 0, found.stderr
