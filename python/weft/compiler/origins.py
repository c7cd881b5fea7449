# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Whose code is at hand: this package's, Python's or an array library's, or the user's."""

from __future__ import annotations

import pathlib
import sys
from typing import Any

#: the folder of this package, with a slash at its end
PACKAGE = str(pathlib.Path(__file__).resolve().parents[1]) + "/"
#: the libraries whose arrays programs and kernels take, and whose insides nobody here follows
LIBRARIES = ("torch", "numpy", "scipy", "triton")


def is_own(file: str) -> bool:
    """Whether a source file is this package's."""
    return file.startswith(PACKAGE)


def root(module: Any) -> str:
    """The top-level package of a module, given by its dotted name: "torch" for "torch.nn.functional"; "" for None."""
    return str(module or "").partition(".")[0]


def is_foreign(module: Any) -> bool:
    """Whether code of a module is Python's or an array library's, whose insides are not followed."""
    return root(module) in sys.stdlib_module_names or root(module) in LIBRARIES
