# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Kernels that other compilers made: nvcc -O3 and -G, and Triton, all for sm_80. Each gives its reference's numbers,
with every check on and no finding, in order and interleaved."""

from __future__ import annotations

import importlib
import subprocess
import zlib
from pathlib import Path

import numpy as np
import pytest
from corpus.case import CASES, Case, compare
from planted import ENVIRONMENT, NVCC

simulator = pytest.importorskip("weft.simulator")
CORPUS = Path(__file__).parent / "corpus"
for module in sorted(path.stem for path in CORPUS.glob("*.cu")):
    importlib.import_module(f"corpus.{module}")

MODES = {"O3": ["-O3", "-lineinfo"], "G": ["-G"]}


@pytest.fixture(scope="session")
def compiled(once):
    """PTX of a file of the corpus in a mode, compiled once."""

    def compile_file(source: str, mode: str) -> Path:
        def make(place: Path) -> None:
            command = [NVCC, "-arch=sm_80", "-std=c++17", *MODES[mode], "-ptx", str(CORPUS / source)]
            command += ["-o", str(place / "made.ptx")]
            result = subprocess.run(command, capture_output=True, text=True, env=ENVIRONMENT)
            assert result.returncode == 0, result.stderr

        return once(f"{source}.{mode}", make) / "made.ptx"

    return compile_file


def check(ptx, entry: str, launch, **options) -> None:
    """Runs a launch and holds it to its reference."""
    report = simulator.launch(ptx, entry, launch.grid, launch.block, launch.args, shared=launch.shared, **options)
    assert not report.findings, "\n".join(map(str, report.findings))
    compare(launch)
    if launch.output is not None:
        assert sorted(report.output.splitlines()) == sorted(launch.output)


@pytest.mark.skipif(NVCC is None, reason="no nvcc on this machine")
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_cuda(case: Case, mode: str, compiled) -> None:
    launch = case.prepare(np.random.default_rng(zlib.crc32(case.id.encode())))
    check(compiled(case.source, mode), case.entry, launch)


@pytest.mark.skipif(NVCC is None, reason="no nvcc on this machine")
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_cuda_interleaved(case: Case, compiled) -> None:
    launch = case.prepare(np.random.default_rng(zlib.crc32(case.id.encode())))
    check(compiled(case.source, "O3"), case.entry, launch, seed=12345)
