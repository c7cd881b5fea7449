# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Planted bugs in what nvcc made of planted/planted.cu, each reported as what it is at its source line, and each beside
a corrected twin that is clean."""

from __future__ import annotations

import numpy as np
import planted
import pytest
import weft.simulator as simulator
from planted import CompiledPlant


@pytest.fixture(scope="module", params=["committed", "fresh"])
def text(request) -> str:
    if request.param == "committed":
        return planted.TEXT.read_text()
    if planted.NVCC is None:
        pytest.skip("no nvcc on this machine: only the committed PTX is run")
    return planted.compiled()


def run(text: str, plant: CompiledPlant, which: str, seed: int = 0) -> simulator.Report:
    x = np.zeros(plant.elements, np.int32) if plant.grid > 1 else np.arange(plant.elements, dtype=np.int32)
    return simulator.launch(text, f"{plant.name}_{which}", plant.grid, plant.block, [x], seed=seed)


@pytest.mark.parametrize("plant", planted.COMPILED, ids=lambda plant: plant.name)
def test_compiled_bug_is_found_and_its_twin_is_clean(plant, text):
    report = run(text, plant, "bug")
    assert {finding.kind for finding in report.findings} == {plant.kind}, list(map(str, report.findings))
    if plant.line:
        assert f"planted.cu:{plant.line}" in {found.source for found in report.findings}, list(
            map(str, report.findings)
        )
    for seed in (0, 5):
        clean = run(text, plant, "fixed", seed)
        assert not clean.findings, list(map(str, clean.findings))
