# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""What ptxas makes of PTX: registers, spills, machine instructions. Used where ptxas is found, never required."""

from __future__ import annotations

import functools
import importlib.util
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
from collections import Counter
from dataclasses import dataclass

from weft.errors import Error

from . import sass


@dataclass(frozen=True)
class Resources:
    """What one thread of a kernel takes, and its machine code (None without cuobjdump)."""

    registers: int
    spill_store_bytes: int
    spill_load_bytes: int
    stack_bytes: int
    code: tuple[sass.Instruction, ...] | None

    @property
    def instructions(self) -> Counter[str] | None:
        """Instructions by mnemonic, without NOP, or None where they could not be read."""
        return None if self.code is None else Counter(each.name for each in self.code)

    @property
    def instruction_count(self) -> int | None:
        """All instructions, or None where they could not be read."""
        return None if self.instructions is None else self.instructions.total()

    @property
    def matrix_instructions(self) -> int | None:
        """HMMA and IMMA instructions, or None where they could not be read."""
        return None if self.instructions is None else self.instructions["HMMA"] + self.instructions["IMMA"]


@functools.cache
def find_tool(name: str) -> str | None:
    """The path of "ptxas" or "cuobjdump":

    On PATH, in CUDA_HOME, or in an installed Triton; None where there is none.
    """
    found = shutil.which(name)
    folders = [pathlib.Path(os.environ[key]) / "bin" for key in ("CUDA_HOME", "CUDA_PATH") if os.environ.get(key)]
    folders.append(pathlib.Path("/usr/local/cuda/bin"))
    triton = importlib.util.find_spec("triton")
    if triton is not None and triton.origin:
        folders.append(pathlib.Path(triton.origin).parent / "backends" / "nvidia" / "bin")
    candidates = [found] if found else [str(folder / name) for folder in folders]
    return next((path for path in candidates if os.access(path, os.X_OK)), None)


def assemble(ptx: str, target: str, entry: str | None = None) -> Resources | None:
    """Assemble PTX for a target and report, on one entry or on all of them together;

    None where there is no ptxas. Raises weft.Error, with ptxas' words, for PTX that it refuses.
    """
    if find_tool("ptxas") is None:
        return None
    report, code = _assembled(ptx, target)
    if entry is not None:
        report = _section(report, r"Compiling entry function '([^']+)'", entry)
        code = None if code is None else _section(code, r"Function : (\S+)", entry)
    return _resources(report, code)


@functools.lru_cache(maxsize=4)
def _assembled(ptx: str, target: str) -> tuple[str, str | None]:
    """What ptxas reports, and the machine code."""
    with tempfile.TemporaryDirectory() as folder:
        source, cubin = pathlib.Path(folder, "kernel.ptx"), pathlib.Path(folder, "kernel.cubin")
        source.write_text(ptx)
        command = [str(find_tool("ptxas")), "-v", f"-arch={target}", str(source), "-o", str(cubin)]
        run = subprocess.run(command, capture_output=True, text=True, check=False)
        if run.returncode != 0:
            raise Error(f"ptxas refused the PTX for {target}: {run.stderr.strip()}")
        return run.stderr, _machine_code(cubin)


def _section(text: str, heading: str, name: str) -> str:
    """The part of a text under the heading that names ``name``, up to the next heading."""
    parts = re.split(heading, text)
    return "".join(body for head, body in zip(parts[1::2], parts[2::2], strict=True) if head == name)


def _resources(report: str, code: str | None) -> Resources:
    def number(pattern: str) -> int:
        return sum(int(value) for value in re.findall(pattern, report))

    return Resources(
        registers=number(r"Used (\d+) registers"),
        spill_store_bytes=number(r"(\d+) bytes spill stores"),
        spill_load_bytes=number(r"(\d+) bytes spill loads"),
        stack_bytes=number(r"(\d+) bytes stack frame"),
        code=None if code is None else sass.instructions(code),
    )


def _machine_code(cubin: pathlib.Path) -> str | None:
    cuobjdump = find_tool("cuobjdump")
    if cuobjdump is None:
        return None
    run = subprocess.run([cuobjdump, "-sass", str(cubin)], capture_output=True, text=True, check=False)
    return run.stdout if run.returncode == 0 else None
