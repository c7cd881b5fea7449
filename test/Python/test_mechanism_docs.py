# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""The examples of docs/Mechanisms.md run as they stand."""

import pathlib
import re

PAGE = pathlib.Path(__file__).parents[2] / "docs" / "Mechanisms.md"


def section(title):
    """The Python blocks of a section."""
    text = PAGE.read_text().split(f"\n## {title}", 1)[1].split("\n## ", 1)[0]
    return [compile(block, str(PAGE), "exec") for block in re.findall(r"```python\n(.*?)```", text, re.DOTALL)]


def test_sas():
    names = {}
    for block in section("SAS"):
        exec(block, names)
    assert names["out"].shape == (1, 32, 96)
    for tensors in ({"q": names["q"], "k": names["k"], "v": names["v"]}, *(names[f"{n}_expand"] for n in "qkv")):
        assert all(x.grad.any() for x in tensors.values())
