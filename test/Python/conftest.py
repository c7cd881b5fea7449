# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""What the Python tests share: a fresh seed, printed with every failure, and the examples as modules."""

import importlib.util
import os
import pathlib
import secrets

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]


@pytest.fixture
def seed(request):
    """A fresh seed for this test; WEFT_TEST_SEED repeats one. pytest shows it with a failure."""
    value = int(os.environ.get("WEFT_TEST_SEED", secrets.randbits(32)))
    print(f"seed {value} (repeat with WEFT_TEST_SEED={value})")
    return value


def load_example(name):
    """The module of examples/NAME.py, not run as a program."""
    spec = importlib.util.spec_from_file_location(f"example_{name}", ROOT / "examples" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="session")
def example():
    return load_example
