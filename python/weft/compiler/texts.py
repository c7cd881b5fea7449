# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""What a compiled kernel is at every stage, by name: source, IR, PTX, machine code; made when it is asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from ..errors import Error
from . import ptxas

if TYPE_CHECKING:
    from .kernel import Kernel

_IR = ("python", "tile", "warp", "pipelined", "llvm")


def _machine_code(kernel: Kernel) -> bytes:
    return ptxas.cubin(kernel.ptx, kernel.target)


def _sass(kernel: Kernel) -> str:
    return ptxas.sass_text(kernel.ptx, kernel.target)


def _ir(*stages: str) -> Callable[[Kernel], str]:
    """The first of these stages that the kernel has."""
    return lambda kernel: next((kernel.ir[stage] for stage in stages if stage in kernel.ir), "")


_MADE: dict[str, Callable[[Kernel], Any]] = {
    "source": lambda kernel: kernel.function.source.text,
    **{stage: _ir(stage) for stage in _IR},
    "ttir": _ir("tile"),
    "ttgir": _ir("pipelined", "warp"),
    "llir": _ir("llvm"),
    "ptx": lambda kernel: kernel.ptx,
    "cubin": _machine_code,
    "sass": _sass,
}


class NoStage(Error, KeyError):
    """What a kernel has no text of, or has none of here, as the tools that make it are missing."""

    __str__ = Exception.__str__


class Texts(Mapping[str, Any]):
    """A kernel's texts by stage, under Triton's names as well: "source", "ptx", and the IR's, of which "ttir" is the
    tile IR, "ttgir" the warp IR and "llir" LLVM's dialect; "cubin", an ELF file's bytes, where there is a ptxas, and
    "sass", its code as nvdisasm or cuobjdump prints it, where there is one of them too.

    It lists what is there. ``asm["sass"]`` raises NoStage, a KeyError that says which tool is missing, where it is not.
    """

    def __init__(self, kernel: Kernel):
        self._kernel = kernel
        self._known: dict[str, Any] = {}

    def __getitem__(self, stage: str) -> Any:
        if stage not in _MADE:
            raise NoStage(f"expected a stage among {', '.join(self)}, but got {stage!r}")
        if missing := _missing(stage):
            raise NoStage(
                f"expected {missing} on PATH, in CUDA_HOME or of an installed Triton for '{stage}' of "
                f"'{self._kernel.name}', but found none: the machine code of its PTX is made by CUDA's tools"
            )
        if stage not in self._known:
            self._known[stage] = _MADE[stage](self._kernel)
        return self._known[stage]

    def __iter__(self) -> Iterator[str]:
        return (stage for stage in _MADE if not _missing(stage))

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __contains__(self, stage: object) -> bool:
        return stage in _MADE and not _missing(str(stage))

    def __repr__(self) -> str:
        return f"the texts of '{self._kernel.name}': {', '.join(self)}"


def _missing(stage: str) -> str:
    """The tool that a stage lacks; nothing where it needs none, or has it."""
    if stage in ("cubin", "sass") and ptxas.find_tool("ptxas") is None:
        return "ptxas"
    if stage == "sass" and not any(map(ptxas.find_tool, ptxas.DISASSEMBLERS)):
        return "nvdisasm or cuobjdump"
    return ""
