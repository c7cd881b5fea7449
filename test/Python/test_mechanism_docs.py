# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""The examples of docs/Mechanisms.md run as they stand."""

import pathlib
import re

import pytest
import torch

PAGE = pathlib.Path(__file__).parents[2] / "docs" / "Mechanisms.md"


@pytest.fixture
def run():
    """Runs the Python blocks of a section, and gives its names."""

    def names_of(title):
        text = PAGE.read_text().split(f"\n## {title}", 1)[1].split("\n## ", 1)[0]
        names = {}
        for block in re.findall(r"```python\n(.*?)```", text, re.DOTALL):
            exec(compile(block, str(PAGE), "exec"), names)
        return names

    return names_of


def test_sema(run):
    names = run("SEMA")
    assert names["y"].isfinite().all()
    assert all(names[name].grad.any() for name in ("q", "k", "v", "lepe"))


def test_sfa(run):
    names = run("SFA")
    assert names["loss"].isfinite()
    assert all(names[name].grad.any() for name in ("q", "k", "v", "q_gain", "k_gain"))
    assert names["z"].shape == names["q"].shape and names["z"].isfinite().all()


def test_sas(run):
    names = run("SAS")
    assert names["out"].shape == (1, 32, 96)
    for tensors in ({name: names[name] for name in "qkv"}, *(names[f"{name}_expand"] for name in "qkv")):
        assert all(x.grad.any() for x in tensors.values())


def test_gau(run):
    names = run("GAU and composite attention")
    assert names["y"].isfinite().all() and names["kappa_q"].grad.any()
    u, v, taps = names["u"].detach(), names["v"].detach(), torch.full((2, 64), 0.5).half()
    scales = [names[name].detach() for name in ("kappa_q", "mu_q", "kappa_k", "mu_k")]
    assert names["equipped"](u, v, v, taps, torch.ones(1, 320).half(), *scales).isfinite().all()
