# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Each example runs by itself, as a user would start it, and checks itself."""

import os
import pathlib
import re
import subprocess
import sys

import pytest
import torch
from weft.testing import layers

# test_mechanism_library.py runs the library of all mechanisms
EXAMPLES = sorted((pathlib.Path(__file__).resolve().parents[2] / "examples").glob("[0-9]*.py"))
EXAMPLES = [path for path in EXAMPLES if path.stem != "11_library"]
(MODELS,) = (path for path in EXAMPLES if path.stem == "10_language_models")


def run(path, place, *options, **variables):
    environment = {**os.environ, **variables}
    command = [sys.executable, path, *options]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, cwd=place, env=environment)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip(), "expected the example to say what it checked"
    return done.stdout


@pytest.mark.parametrize("path", [path for path in EXAMPLES if path != MODELS], ids=lambda p: p.stem)
def test_example(path, tmp_path):
    run(path, tmp_path)


@pytest.mark.parametrize(
    "path", [path for path in EXAMPLES if path != MODELS and path.stem > "04"], ids=lambda p: p.stem
)
def test_mechanisms_with_loose_approximations(path, tmp_path):
    """The simulator's approximate functions are nearer to exact than a GPU's need be: not so here."""
    run(path, tmp_path, WEFT_SIMULATOR_APPROXIMATIONS="loose", WEFT_SIMULATOR_CHECKS="none")


# ---- Language models: losses agree far better than to the 1 % that is wanted, and have to, to tell anything.

MECHANISMS = ["gau-conv", "gau", "sas", "sfa", "sema", "attention"]


def differences(said):
    """The largest relative difference of the losses, in per cent, by mechanism."""
    return {name: float(found) for name, found in re.findall(r"^([\w-]+) +(?:next|blots) .* ([\d.e+-]+) %", said, re.M)}


def test_language_models(tmp_path):
    """Some steps of each; that the kernels do nothing forbidden is seen by the tests of the mechanisms."""
    options = ("--mechanism", *MECHANISMS, "--steps", "3", "--out", "curves.svg")
    said = run(MODELS, tmp_path, *options, WEFT_SIMULATOR_CHECKS="none")
    found = differences(said)
    assert list(found) == MECHANISMS and max(found.values()) < 0.01, said
    assert "<svg" in (tmp_path / "curves.svg").read_text()


def test_language_models_tell(example):
    """What three steps of wrong mechanisms differ by: more than those of Weft may."""
    models = example("10_language_models")
    dim, heads, causal = models.DIM, models.HEADS, models.causal

    class Scaled(layers.Attention):
        def mix(self, q, k, v, form, **more):
            return super().mix(1.1 * q, k, v, form, **more)

    wrong = {
        "attention": lambda: Scaled(dim, heads, mask=causal, rope=True),
        "sema": lambda: layers.SEMA(dim, heads, window=8),
        "sfa": lambda: layers.SFA(dim, heads, max_joins=0),
        "sas": lambda: layers.SAS(dim, heads, many=4, wide=24, kernel=3, causal=False),
    }
    for name, form in wrong.items():
        mechanism = models.MECHANISMS[name]
        lessons, characters = models.batches(5, 3, mechanism.fills)
        torch.manual_seed(5)
        right, other = models.Model(characters, mechanism.plain), models.Model(characters, form)
        other.load_state_dict(right.state_dict())
        losses = [models.train(model, lessons, lambda *_: None) for model in (right, other)]
        assert 100 * models.difference(*losses) > 0.01, name


@pytest.mark.slow
def test_language_models_to_the_end(tmp_path):
    said = run(MODELS, tmp_path)
    found = differences(said)
    assert sorted(found) == sorted(MECHANISMS) and max(found.values()) < 0.1, said


def test_there_are_examples():
    assert len(EXAMPLES) >= 4
