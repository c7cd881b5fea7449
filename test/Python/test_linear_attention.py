# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""flash-linear-attention's Triton kernels, as installed, through ``weft.triton``: results and gradients."""

import importlib.util
import pathlib

import pytest
from replaced import operator_errors

pytestmark = [pytest.mark.ecosystem, pytest.mark.slow]
SCRIPT = pathlib.Path(__file__).with_name("linear_attention.py")


def test_its_operators_are_right_forward_and_backward(tmp_path, seed):
    if importlib.util.find_spec("fla") is None:
        pytest.skip("needs flash-linear-attention")
    # Its TileLang kernels, where that is installed, are not Triton's.
    found = operator_errors(SCRIPT, tmp_path, seed, FLA_TILELANG="0", WEFT_AUTOTUNE="first")
    assert len(found) == 30
    for name, errors in found:
        assert max(errors) < 5e-3, (name, errors)  # of products in TF32, chained
