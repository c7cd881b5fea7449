# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Every example of examples/patterns, forward and all gradients, held against float64 by the accuracy rule."""

import importlib.util
import pathlib

import pytest
import torch
from weft.testing import drawn, judge

PATTERNS = sorted((pathlib.Path(__file__).resolve().parents[2] / "examples" / "patterns").glob("*.py"))


def load(path):
    """The module of an example: a program of the file's name, ``inputs`` and ``expected``."""
    spec = importlib.util.spec_from_file_location(f"pattern_{path.stem}", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    "dtype", [pytest.param(torch.float16, id="f16"), pytest.param(torch.bfloat16, id="bf16", marks=pytest.mark.slow)]
)
@pytest.mark.parametrize("path", PATTERNS, ids=lambda path: path.stem)
def test_pattern(path, dtype, seed, held):
    module, generator = load(path), torch.Generator().manual_seed(seed)
    program = getattr(module, path.stem)
    held(
        f"examples/patterns/{path.stem}",
        lambda: judge(program, module.expected, drawn(module.inputs, dtype, generator), generator=generator),
    )


def test_every_pattern_is_there():
    assert len(PATTERNS) >= 21
