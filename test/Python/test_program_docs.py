# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""The examples of docs/Programs.md run as they stand."""

import pathlib
import re

import pytest
import torch
import weft

PAGE = pathlib.Path(__file__).parents[2] / "docs" / "Programs.md"


@pytest.fixture
def blocks(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    found = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert len(found) == 4
    return [compile(block, str(PAGE), "exec") for block in found]


def test_programs(blocks):
    names = {}
    exec(blocks[0], names)
    assert names["q"].grad.any() and names["lepe"].grad.any()
    exec(blocks[1], names)
    q, k, v = (names[name].detach() for name in "qkv")
    assert names["alibi"](q, k, v, torch.rand(4)).isfinite().all()
    exec(blocks[2], names)
    assert {"sema", "sema.forward", "sema.backward"} <= set(weft.load("libsema").programs)


def test_one_call(blocks):
    q, k, v = (torch.randn(1, 2, 14 * 14, 32).half() for _ in range(3))
    weight = torch.randn(2 * 32, 1, 3, 3).half()
    names = {"weft": weft, "q": q, "k": k, "v": v, "bias": torch.zeros(14 * 14), "sink": torch.zeros(2)}
    exec(blocks[3], {**names, "lepe_weight": weight})
