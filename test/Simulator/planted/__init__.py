# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Planted bugs: what a plant is, and those that nvcc compiled.

    python test/Simulator/planted/__init__.py

makes planted.ptx of planted.cu anew, which needs nvcc.
"""

from __future__ import annotations

import dataclasses
import os
import pathlib
import re
import shutil
import subprocess

FOLDER = pathlib.Path(__file__).resolve().parent
SOURCE, TEXT = FOLDER / "planted.cu", FOLDER / "planted.ptx"
NVCC = shutil.which("nvcc")
#: What nvcc is run with: it crashes with a sanitizer's runtime in it, which tools/sanitized.sh preloads.
ENVIRONMENT = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}


@dataclasses.dataclass(frozen=True)
class CompiledPlant:
    """A kernel `KIND__NAME` of planted.cu, and the launch that shows what is wrong with it."""

    name: str
    grid: int = 1
    block: int = 64
    elements: int = 256

    @property
    def kind(self) -> str:
        return self.name.split("__")[0].replace("_", "-")

    @property
    def line(self) -> int | None:
        """The line of planted.cu that the finding must name; None where the place is nobody's."""
        lines = SOURCE.read_text().splitlines()
        return next((i for i, line in enumerate(lines, 1) if line.endswith(f"// BUG {self.name}")), None)


LAUNCHES = {"global_race__last_block": {"grid": 2}}
NAMES = re.findall(r"^PLANT\((\w+)\)", SOURCE.read_text(), re.M)
COMPILED = [CompiledPlant(name, **LAUNCHES.get(name, {})) for name in NAMES]


def compiled() -> str:
    """The PTX of planted.cu: without paths of this machine, comments and debug sections, and with plain `.loc`s."""
    command = [NVCC, "-arch=sm_80", "-O3", "-lineinfo", "-std=c++17", "-w", "-ptx", str(SOURCE), "-o", "/dev/stdout"]
    text = subprocess.run(command, capture_output=True, text=True, check=True, env=ENVIRONMENT).stdout
    text = re.sub(r"\.section\s+\.debug_\w+\s*\{.*?\n\s*\}", "", text, flags=re.S)
    text = re.sub(r'(\.file\s+\d+ )".*/', r'\1"', text)
    text = re.sub(r", function_name [^\n]*", "", re.sub(r"//[^\n]*", "", text))
    return "\n".join(line.rstrip() for line in text.splitlines() if line.strip()) + "\n"


if __name__ == "__main__":
    TEXT.write_text(compiled())
