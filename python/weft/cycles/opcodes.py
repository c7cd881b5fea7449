# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""What each mnemonic keeps busy: its execution unit, for how many words of a lane; products of matrix instructions."""

from __future__ import annotations

import re
from dataclasses import dataclass

from .listing import Instruction

_OF_PIPE = {
    "float32": "FADD FMUL FFMA FSWZADD FADD2 FMUL2 FFMA2",
    "multiply": "IMAD IDP IMUL HFMA2 HADD2 HMUL2 HMNMX2 HSET2 HSETP2 VFMA",
    "float64": "DADD DMUL DFMA DSETP DMNMX",
    "special": "MUFU F2I I2F F2F FRND POPC FLO BREV I2I",
    "shared": "LDS LDSM STS STSM ATOMS SYNCS LDGSTS MATCH",
    "shuffle": "SHFL MOVM REDUX",
    "tensor load": "LDTM",
    "tensor store": "STTM",
    "global": "LD ST LDG STG LDL STL LDC ATOM ATOMG RED TEX SUST SULD S2R S2UR CCTL LDTRAM B2R",
    "control": "BRA BRX BSSY BSYNC BREAK EXIT RET CALL JMP JMX WARPSYNC YIELD KILL BAR DEPBAR LDGDEPBAR ERRBAR MEMBAR "
    "FENCE NOP NANOSLEEP WARPGROUP CGAERRBAR UCGABAR_ARV UCGABAR_WAIT ACQBULK BMOV BPT RPCMOV PREEXIT ELECT UTMALDG "
    "UTMASTG UTMAREDG UTMAPF UTMACCTL UTMACMDFLUSH UBLKCP UBLKRED UBLKPF USETMAXREG ENDCOLLECTIVE WARPGROUPSET UTCBAR",
}
_PIPE = {name: pipe for pipe, names in _OF_PIPE.items() for name in names.split()}
_PAIRS = ("FADD2", "FMUL2", "FFMA2")  # of two numbers of 32 bits
_TIMES = re.compile(r"^x(\d+)$")
_SHAPE = re.compile(r"^(\d+)x(\d+)x(\d+)$")
#: m, n and k as matrix instructions of a warp have them: digits without a separator
_SHAPES = {
    "884": (8, 8, 4), "1684": (16, 8, 4), "1688": (16, 8, 8), "16816": (16, 8, 16), "16832": (16, 8, 32),
    "16864": (16, 8, 64), "8816": (8, 8, 16), "8832": (8, 8, 32),
    "88128": (8, 8, 128), "168128": (16, 8, 128), "168256": (16, 8, 256),
}  # fmt: skip


def pipe_of(name: str) -> str:
    """The kind of execution unit of a mnemonic; integers' for those that no list names."""
    if name in _PIPE:
        return _PIPE[name]
    if name.startswith("U") or name in ("R2UR", "S2UR", "VOTEU"):
        return "uniform"
    return "integer"


def words_of(instruction: Instruction) -> int:
    """How many words of 4 bytes each lane takes of memory, of the exchange between lanes or of pairs of numbers; 1
    elsewhere."""
    if instruction.name in _PAIRS:
        return 2
    if instruction.name in ("LDTM", "STTM"):
        return _tensor_words(instruction.modifiers)
    if instruction.name in ("LDSM", "STSM"):
        return next((int(each) for each in instruction.modifiers if each in ("2", "4")), 1)
    if pipe_of(instruction.name) in ("shared", "global"):
        return next((int(each) // 32 for each in instruction.modifiers if each in ("64", "128")), 1)
    return 1


#: registers of a lane for each time that a move to or from tensor memory is repeated, by its shape
_REGISTERS = {"16dp128bit": 2, "16dp256bit": 4}


def _tensor_words(modifiers: tuple[str, ...]) -> int:
    times = next((int(found[1]) for each in modifiers if (found := _TIMES.match(each))), 1)
    return times * next((_REGISTERS[each] for each in modifiers if each in _REGISTERS), 1)


@dataclass(frozen=True)
class Product:
    """A matrix instruction: its shape, the factors' type as targets name it, and whether four warps share it."""

    m: int
    n: int
    k: int
    element: str
    warpgroup: bool
    a_shared: bool = False
    """whether the left factor is in shared memory; the right one of a warpgroup's always is"""
    tensor: bool = False
    """whether its sums are in tensor memory"""
    pair: bool = False
    """whether a neighbouring multiprocessor has as many rows more, and half of the right factor"""

    @property
    def operations(self) -> int:
        """Multiplies and adds."""
        return 2 * self.m * self.n * self.k

    @property
    def shared_bytes(self) -> int:
        """Bytes that it reads from shared memory."""
        if not self.warpgroup:
            return 0
        size = 32 // self.k  # families' rows are 32 bytes
        columns = self.n // 2 if self.pair else self.n
        return size * self.k * (columns + (self.m if self.a_shared else 0))


def product_of(instruction: Instruction) -> Product | None:
    """The product that an instruction makes; None of others, and of shapes that are not known."""
    name, modifiers = instruction.name, instruction.modifiers
    if not name.endswith("MMA") or not modifiers:
        return None
    shape = _SHAPE.match(modifiers[0])
    sizes = tuple(map(int, shape.groups())) if shape else _SHAPES.get(modifiers[0])
    if sizes is None:
        return None
    m, n, k = sizes
    a_shared = bool(shape) and instruction.operands.partition(",")[2].lstrip().startswith("gdesc")
    return Product(m, n, k, _element(name, modifiers), bool(shape), a_shared)


def _element(name: str, modifiers: tuple[str, ...]) -> str:
    if name.startswith("D"):
        return "f64"
    if name.startswith("I"):
        return "s4" if "S4" in modifiers or "U4" in modifiers else "s8"
    if name.startswith("B"):
        return "b1"
    if name.startswith("Q"):
        return "e4m3"
    return "tf32" if "TF32" in modifiers else "bf16" if "BF16" in modifiers else "f16"
