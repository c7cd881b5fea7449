# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Liger's Triton kernels, as installed, through ``weft.triton``: results and gradients beside their definitions."""

import importlib.util
import pathlib

import pytest
from replaced import operator_errors

pytestmark = pytest.mark.ecosystem
SCRIPT = pathlib.Path(__file__).with_name("liger_operators.py")


def test_its_operators_are_right_forward_and_backward(tmp_path, seed):
    if importlib.util.find_spec("liger_kernel") is None:
        pytest.skip("needs liger-kernel")
    found = operator_errors(SCRIPT, tmp_path, seed)
    assert len(found) == 16
    for name, errors in found:
        assert max(errors) < 1e-5, (name, errors)  # of sums of some hundred terms in float32
