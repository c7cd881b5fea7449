# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""flash-linear-attention's Triton kernels, as installed, through ``weft.triton``: results and gradients."""

import importlib.util
import os
import pathlib
import subprocess
import sys

import pytest

pytestmark = pytest.mark.ecosystem
SCRIPT = pathlib.Path(__file__).with_name("linear_attention.py")


def test_its_operators_are_right_forward_and_backward(tmp_path, seed):
    if importlib.util.find_spec("fla") is None:
        pytest.skip("needs flash-linear-attention")
    # Its TileLang kernels, where that is installed, are not Triton's.
    environment = {
        **os.environ,
        "FLA_TILELANG": "0",
        "WEFT_AUTOTUNE": "first",
        "WEFT_CACHE_DIR": str(tmp_path),
        "WEFT_TEST_SEED": str(seed),
    }
    done = subprocess.run(
        [sys.executable, "-m", "weft.triton", SCRIPT], capture_output=True, text=True, check=False, env=environment
    )
    assert done.returncode == 0, done.stderr
    lines = [line.split() for line in done.stdout.splitlines()]
    assert len(lines) == 30
    for name, *errors in lines:
        assert max(map(float, errors)) < 5e-3, (name, errors)  # of products in TF32, chained
