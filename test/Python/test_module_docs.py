# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""The examples of docs/Modules.md run as they stand, and its table names every module there is."""

import pathlib
import re

import weft

PAGE = pathlib.Path(__file__).parents[2] / "docs" / "Modules.md"


def test_examples_run(capsys):
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert len(blocks) >= 3
    names = {}
    for block in blocks:
        exec(compile(block, str(PAGE), "exec"), names)
    said = capsys.readouterr().out
    assert "torch.bfloat16" in said and "torch.Size([1, 50, 64])" in said


def test_every_module_is_listed():
    for name in weft.nn.__all__:
        assert f"`weft.nn.{name}(" in PAGE.read_text(), name
