# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Products whose sums are in tensor memory (``tcgen05``): their shapes, and who waits for which.

Such an instruction names registers. One holds its descriptor (PTX ISA 9.7.16.4.2: rows, columns, types); K is 32 bytes
of the left factor's rows. One thread of a warpgroup starts the products, and lets an mbarrier know (UTCBAR) when all
that it has started are done; the warpgroup waits at that address (SYNCS.PHASECHK). A wait at an address that no product
of the loop lets know of is one for a copy.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from weft.compiler.sass import TENSOR_MATRIX
from weft.errors import Error

from .flow import Loop
from .listing import Instruction, Kernel
from .opcodes import Product
from .values import Registers, Value, address, same_in_warp, step

_DESCRIPTOR = re.compile(r"idesc\[(UR\d+)\]")
_ADDRESS = re.compile(r"\[([^\]]*)\]")
_SPARSE, _PAIR = 1 << 2, "2CTA"
_HALVES = {0: "f16", 1: "bf16", 2: "tf32"}
_BYTES = {0: "e4m3", 1: "e5m2", 3: "e4m3", 4: "e4m3", 5: "e4m3"}  # those of 6 and 4 bits take as long


def is_tensor_product(name: str) -> bool:
    """Whether instructions of that name multiply into tensor memory, those that the model does not know among them."""
    return name.startswith("UTC") and name.endswith("MMA")


def waits(instruction: Instruction) -> bool:
    """Whether it tries an mbarrier."""
    return instruction.name == "SYNCS" and "PHASECHK" in instruction.modifiers


def tells(instruction: Instruction) -> bool:
    """Whether it has an mbarrier told of the products before it."""
    return instruction.name == "UTCBAR"


def product(instruction: Instruction, descriptor: int) -> Product:
    """The product that an instruction makes by its descriptor, of one block. Raises weft.Error for those that are not
    known: sparse ones, and those with scales."""
    kind = descriptor >> 7 & 7
    known = _HALVES if instruction.name == "UTCHMMA" else _BYTES
    element = "s8" if instruction.name == "UTCIMMA" else known.get(kind)
    if element is None or descriptor & _SPARSE:
        raise Error(f"expected a dense product of 8, 16 or 32 bits for the loop model, but got '{instruction.text}'")
    pair = _PAIR in instruction.modifiers
    rows, columns = (descriptor >> 24 & 31) << 4, (descriptor >> 17 & 63) << 3
    k = {"tf32": 8, "f16": 16, "bf16": 16}.get(element, 32)
    a_shared = instruction.operands.lstrip().startswith("gdesc")
    return Product(rows // 2 if pair else rows, columns, k, element, True, a_shared, tensor=True, pair=pair)


def products(kernel: Kernel) -> dict[int, Product]:
    """The products of a kernel by their instructions' addresses. Raises weft.Error where the code does not say a
    descriptor."""
    if not any(is_tensor_product(each.name) for each in kernel.instructions):
        return {}
    registers = Registers(kernel)
    found = {}
    for block in registers.blocks:
        for each in block.instructions:
            if not is_tensor_product(each.name):
                continue
            register = _DESCRIPTOR.search(each.operands)
            state = registers.at(block, each)
            held = state.get(register[1]) if register and each.name in TENSOR_MATRIX else None
            number = held.known if held is not None else None
            if number is None:
                raise Error(f"expected a product whose descriptor the code says, for the loop model, at "
                            f"{each.address:04x} of '{kernel.name}', but got '{each.text}'")  # fmt: skip
            found[each.address] = product(each, number)
    return found


def read_once(kernel: Kernel, loop: Loop) -> frozenset[int]:
    """The addresses of a loop's instructions that read the same place of shared memory in all lanes."""
    state = Registers(kernel).entering(loop.head, loop.blocks)
    found = set()
    for each in loop.path:
        if each.name == "LDS" and (where := _ADDRESS.search(each.operands)):
            uniform = not re.search(r"(?<!U)R\d", where[1])
            if uniform or same_in_warp(address(state, where[1])):
                found.add(each.address)
        step(state, each)
    return frozenset(found)


@dataclass(frozen=True)
class Barriers:
    """The mbarriers of a loop's path in each of its first iterations: by the place in the path, the address."""

    iterations: tuple[dict[int, Value], ...]
    told: frozenset[Value]
    """those that products let know of"""

    def at(self, iteration: int, place: int) -> Value | None:
        """The mbarrier of products that is told or tried there; None elsewhere, and of copies."""
        found = self.iterations[min(iteration, len(self.iterations) - 1)].get(place)
        return found if found in self.told else None


def barriers(kernel: Kernel, loop: Loop, path: Sequence[Instruction], iterations: int) -> Barriers:
    """Those of a loop whose path is that. Raises weft.Error where sums are read in the loop, and no wait of it is for
    the products that it starts: what is not understood is not timed."""
    if not any(map(tells, path)):
        return Barriers(({},), frozenset())
    state = Registers(kernel).entering(loop.head, loop.blocks)
    found, told = [], set()
    for iteration in range(iterations):
        held: dict[int, Value] = {}
        for place, each in enumerate(path):
            if (tells(each) or waits(each)) and (where := _ADDRESS.search(each.operands)):
                held[place] = address(state, where[1])
                if tells(each):
                    told.add(held[place])
            step(state, each, iteration)
        found.append(held)
    made = Barriers(tuple(found), frozenset(told))
    _check(kernel, path, made)
    return made


def _check(kernel: Kernel, path: Sequence[Instruction], found: Barriers) -> None:
    reads = any(each.name == "LDTM" for each in path)
    matched = any(found.at(i, place) for i, held in enumerate(found.iterations) for place in _tried(path, held))
    if reads and not matched:
        raise Error(f"expected a wait for the products of the loop at {path[0].address:04x} of '{kernel.name}', "
                    "whose sums it reads, but found none whose mbarrier is theirs")  # fmt: skip


def _tried(path: Sequence[Instruction], held: Iterable[int]) -> list[int]:
    return [place for place in held if waits(path[place])]
