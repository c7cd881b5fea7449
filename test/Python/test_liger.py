# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Liger's Triton kernels, as installed, through ``weft.triton``: results and gradients beside their definitions."""

import importlib.util
import os
import pathlib
import subprocess
import sys

import pytest

pytestmark = pytest.mark.ecosystem
SCRIPT = pathlib.Path(__file__).with_name("liger_operators.py")


def test_its_operators_are_right_forward_and_backward(tmp_path, seed):
    if importlib.util.find_spec("liger_kernel") is None:
        pytest.skip("needs liger-kernel")
    environment = {**os.environ, "WEFT_CACHE_DIR": str(tmp_path), "WEFT_TEST_SEED": str(seed)}
    done = subprocess.run(
        [sys.executable, "-m", "weft.triton", SCRIPT], capture_output=True, text=True, check=False, env=environment
    )
    assert done.returncode == 0, done.stderr
    lines = [line.split() for line in done.stdout.splitlines()]
    assert len(lines) == 16
    for name, *errors in lines:
        assert max(map(float, errors)) < 1e-5, (name, errors)  # of sums of some hundred terms in float32
