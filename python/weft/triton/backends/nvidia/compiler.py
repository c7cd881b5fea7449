# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""``triton.backends.nvidia.compiler``: which ptxas there is. Kernels choose inline assembly by its version."""

from __future__ import annotations

import re
import subprocess
from dataclasses import dataclass

from weft.compiler.ptxas import find_tool
from weft.errors import Error


@dataclass(frozen=True)
class NvidiaTool:
    """A tool's path, and its version as in "12.8"."""

    path: str
    version: str


def get_ptxas(arch: int = 80) -> NvidiaTool:
    """The ptxas that is found, one for every ``arch``. Errors: weft.Error where none is, or it tells no version."""
    path = find_tool("ptxas")
    if path is None:
        raise Error("expected ptxas on PATH, in CUDA_HOME or in an installed Triton, but found none")
    said = subprocess.run([path, "--version"], capture_output=True, text=True, check=False).stdout
    version = re.search(r"release (\d+\.\d+)", said)
    if version is None:
        raise Error(f"expected '{path} --version' to tell a release, but got '{said.strip()}'")
    return NvidiaTool(path, version[1])


__all__ = ["NvidiaTool", "get_ptxas"]
