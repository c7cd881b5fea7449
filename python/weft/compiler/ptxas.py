# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""What ptxas makes of PTX: machine code, registers, spills. Used where ptxas is found, never required."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import hashlib
import importlib.machinery
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from weft.errors import Error

from . import cache, sass
from .entries import fingerprints, only


@dataclasses.dataclass(frozen=True)
class Resources:
    """What one thread of a kernel takes, and its machine code (None without cuobjdump)."""

    registers: int
    spill_store_bytes: int
    spill_load_bytes: int
    stack_bytes: int
    code: tuple[sass.Instruction, ...] | None
    #: what ptxas says that it did to products of warpgroups: waits and fences put in, products run one after another
    advice: tuple[str, ...] = ()

    @property
    def spilled_bytes(self) -> int:
        """Bytes that are stored because registers do not hold them, and those loaded again."""
        return self.spill_store_bytes + self.spill_load_bytes

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
        """Matrix instructions, or None where they could not be read."""
        names = (*sass.MATRIX, *sass.TENSOR_MATRIX)
        return None if self.instructions is None else sum(self.instructions[name] for name in names)


@functools.cache
def find_tool(name: str) -> str | None:
    """The path of "ptxas", "cuobjdump" or "nvdisasm":

    On PATH, in CUDA_HOME, or in an installed Triton; None where there is none.
    """
    found = shutil.which(name)
    folders = [pathlib.Path(os.environ[key]) / "bin" for key in ("CUDA_HOME", "CUDA_PATH") if os.environ.get(key)]
    folders.append(pathlib.Path("/usr/local/cuda/bin"))
    triton = importlib.machinery.PathFinder.find_spec("triton")  # not weft.triton, which may stand under its name
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
    advice = _advice(report, entry)
    if entry is not None:
        report = _sections(report, r"Compiling entry function '([^']+)'").get(entry, "")
        code = None if code is None else _sections(code, r"Function : (\S+)").get(entry, "")
    return dataclasses.replace(_resources(report, code), advice=advice)


def cubin(ptx: str, target: str) -> bytes:
    """The machine code of PTX for a target: an ELF file. Raises weft.Error, with ptxas' words, for PTX that it
    refuses. There must be a ptxas."""
    with tempfile.TemporaryDirectory() as folder:
        return _run(ptx, target, pathlib.Path(folder))[1].read_bytes()


class Figures(NamedTuple):
    """What ``entries`` keeps of a kernel's Resources; instructions are None without cuobjdump."""

    registers: int
    spill_bytes: int
    instructions: int | None


def known_entries(ptx: str, target: str) -> dict[str, Figures] | None:
    """The figures of each entry of PTX, where the cache on disk has them."""
    known = cache.read(_name_of(ptx, target))
    return None if known is None else {entry: Figures(*figures) for entry, figures in known.items()}


def _name_of(ptx: str, target: str) -> str:
    return cache.key(["figures", _version(), hashlib.sha256(ptx.encode()).hexdigest(), target])


def entries(ptx: str, target: str) -> dict[str, Figures]:
    """The figures of each entry of PTX, from the cache on disk where they are known. Raises weft.Error as ``assemble``
    does."""
    name = _name_of(ptx, target)
    known = cache.read(name)
    if known is None:
        known = {entry: list(found) for entry, found in _entries(ptx, target).items()}
        cache.write(name, known)
    return {entry: Figures(*figures) for entry, figures in known.items()}


def _entries(ptx: str, target: str) -> dict[str, Figures]:
    report, code = _assembled(ptx, target)
    codes = {} if code is None else _sections(code, r"Function : (\S+)")
    made = {}
    for entry, part in _sections(report, r"Compiling entry function '([^']+)'").items():
        found = _resources(part, None if code is None else codes.get(entry, ""))
        spills = found.spill_store_bytes + found.spill_load_bytes
        made[entry] = Figures(found.registers, spills, found.instruction_count)
    return made


_FIGURES: dict[tuple[str, str], Figures] = {}  # by an entry's fingerprint and the target


def figures(ptx: str, target: str, names: Sequence[str]) -> dict[str, Figures] | None:
    """The figures of some entries of PTX; those that this process has met, in other modules too, are not assembled
    again. None where there is no ptxas. Raises weft.Error as ``assemble`` does."""
    if find_tool("ptxas") is None:
        return None
    keys = {name: (key, target) for name, key in fingerprints(ptx, names).items()}
    missing = [name for name in names if keys[name] not in _FIGURES]
    if missing:
        found = _entries(only(ptx, missing), target)
        _FIGURES.update({keys[name]: found[name] for name in missing if name in found})
    return {name: _FIGURES[key] for name, key in keys.items() if key in _FIGURES}


#: Code alone, without the analysis of its data flow, which takes a quarter of nvdisasm's time and prints nothing here.
NVDISASM = ("-c", "-ndf")


def listing(ptx: str, target: str) -> str | None:
    """The machine code as nvdisasm prints it, with the source line of each instruction; None where there is no ptxas,
    or no nvdisasm. Raises weft.Error, with ptxas' words, for PTX that it refuses."""
    nvdisasm = find_tool("nvdisasm")
    if find_tool("ptxas") is None or nvdisasm is None:
        return None
    with _with_lines(ptx, target) as made:
        run = subprocess.run([nvdisasm, *NVDISASM, "-g", str(made)], capture_output=True, text=True, check=False)
        return run.stdout if run.returncode == 0 else None


DISASSEMBLERS = ("nvdisasm", "cuobjdump")


def sass_text(ptx: str, target: str) -> str:
    """The machine code as nvdisasm prints it, or cuobjdump where there is no nvdisasm. There must be a ptxas, and one
    of them. Raises weft.Error, with their words, for PTX or machine code that they refuse."""
    tool = next(name for name in DISASSEMBLERS if find_tool(name))
    with _with_lines(ptx, target) as made:
        command = [str(find_tool(tool)), *(NVDISASM if tool == "nvdisasm" else ["-sass"]), str(made)]
        run = subprocess.run(command, capture_output=True, text=True, check=False)
    if run.returncode != 0:
        raise Error(f"{tool} refused the machine code for {target}: {run.stderr.strip()}")
    return run.stdout


def control_codes(ptx: str, target: str) -> str:
    """The machine code as nvdisasm prints it with the words of each instruction, and its source line. There must be a
    ptxas and an nvdisasm. Raises weft.Error, with ptxas' words, for PTX that it refuses."""
    with _with_lines(ptx, target) as made:
        return disassembled(made)


def disassembled(cubin: pathlib.Path) -> str:
    """A cubin's machine code with the words of each instruction. Raises weft.Error, with nvdisasm's words."""
    command = [str(find_tool("nvdisasm")), *NVDISASM, "-g", "-hex", str(cubin)]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    if run.returncode != 0:
        raise Error(f"nvdisasm refused '{cubin.name}': {run.stderr.strip()}")
    return run.stdout


@functools.cache
def _version() -> str:
    """What tells one ptxas, and one cuobjdump, from another."""
    tools = [pathlib.Path(path) for path in map(find_tool, ("ptxas", "cuobjdump")) if path]
    return " ".join(f"{tool} {tool.stat().st_size} {tool.stat().st_mtime_ns}" for tool in tools)


@functools.lru_cache(maxsize=4)
def _assembled(ptx: str, target: str) -> tuple[str, str | None]:
    """What ptxas reports, and the machine code."""
    with _with_lines(ptx, target) as made:
        return _report_and_lines(ptx, target)[0], _machine_code(made)


@functools.lru_cache(maxsize=4)
def _report_and_lines(ptx: str, target: str) -> tuple[str, bytes]:
    """What ptxas reports, and the cubin, which has the source lines: asked for one after the other, of the same PTX."""
    with tempfile.TemporaryDirectory() as folder:
        report, made = _run(ptx, target, pathlib.Path(folder), "-lineinfo")
        return report, made.read_bytes()


@contextlib.contextmanager
def _with_lines(ptx: str, target: str) -> Iterator[pathlib.Path]:
    """A cubin with source lines, as a file."""
    _, code = _report_and_lines(ptx, target)
    with tempfile.TemporaryDirectory() as folder:
        made = pathlib.Path(folder) / "kernel.cubin"
        made.write_bytes(code)
        yield made


def _run(ptx: str, target: str, folder: pathlib.Path, *options: str) -> tuple[str, pathlib.Path]:
    """What ptxas reports, and the cubin that it wrote."""
    (folder / "kernel.ptx").write_text(ptx)
    command = [str(find_tool("ptxas")), "-v", *options, f"-arch={target}", "kernel.ptx", "-o", "kernel.cubin"]
    run = subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder)
    if run.returncode != 0:
        raise Error(f"ptxas refused the PTX for {target}: {run.stderr.strip()}")
    return run.stderr, folder / "kernel.cubin"


def _sections(text: str, heading: str) -> dict[str, str]:
    """The parts of a text under the headings, by the name in each."""
    parts = re.split(heading, text)
    found: dict[str, str] = {}
    for head, body in zip(parts[1::2], parts[2::2], strict=True):
        found[head] = found.get(head, "") + body
    return found


def _advice(report: str, entry: str | None) -> tuple[str, ...]:
    """The lines about products of warpgroups, C7500 to C7599, of one entry or of all."""
    found = re.findall(r"\((C75\d\d)\) (.*?) in function '([^']+)'", report)
    return tuple(f"{code}: {text}" for code, text, name in found if entry in (None, name))


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
