# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Scripts of the repository as modules."""

from __future__ import annotations

import importlib.util
import pathlib
import sys
from types import ModuleType

ROOT = pathlib.Path(__file__).resolve().parents[2]


def load_script(path: str) -> ModuleType:
    """The module of a script such as "benchmarks/decode.py", not run as a program."""
    file = ROOT / path
    spec = importlib.util.spec_from_file_location(f"script_{file.stem}", file)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # where dataclasses look their types up
    spec.loader.exec_module(module)
    return module
