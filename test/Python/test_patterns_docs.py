# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""The examples of docs/Patterns.md run as they stand, and its table names every pattern there is."""

import pathlib
import re

import weft
from weft import patterns

PAGE = pathlib.Path(__file__).parents[2] / "docs" / "Patterns.md"


def test_examples_run(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert len(blocks) >= 4
    names = {}
    for block in blocks:
        exec(compile(block, str(PAGE), "exec"), names)
    assert "of the blocks" in capsys.readouterr().out
    assert (tmp_path / "longformer.svg").read_text().startswith("<svg")


def test_every_pattern_is_listed():
    made = {name for name, value in vars(patterns).items() if not name.startswith("_") and callable(value)}
    made = {name for name in made if getattr(getattr(patterns, name), "__module__", "") == "weft.patterns"}
    for name in made - {"Pattern"}:
        assert f"`weft.{name}(" in PAGE.read_text(), name
        assert hasattr(weft, name)
