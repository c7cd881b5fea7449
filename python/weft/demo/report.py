# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""The demo's tables and its verdict."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from weft.compiler.ptxas import Resources as PtxasResources
from weft.compiler.ptxas import assemble, find_tool
from weft.compiler.signature import parse
from weft.demo import triton_peer
from weft.demo.tables import Grid
from weft.targets import default_target, target_named

if TYPE_CHECKING:
    from weft.demo.__main__ import Compiled, Ran
    from weft.demo.cases import Case

Resources = PtxasResources | None


@dataclass(frozen=True)
class Beside:
    """One kernel as Weft and as Triton compile it for the default target."""

    case: Case
    ours: PtxasResources
    theirs: PtxasResources
    our_seconds: float
    their_seconds: float


def peers_of(cases: Sequence[Case]) -> list[Case]:
    """The cases to compile with Triton: none where Triton, ptxas or cuobjdump is missing."""
    ready = triton_peer.available() and find_tool("ptxas") and find_tool("cuobjdump")
    return [case for case in cases if case.beside_triton] if ready else []


def beside_triton(case: Case) -> Beside:
    """Compile a case with both compilers, at the same tiling, warps and stages."""
    target = target_named(default_target())
    ours = case.kernel.compile(case.signature, target=target.name, num_warps=case.warps, num_stages=3)
    signature = parse(case.signature)
    theirs = triton_peer.compile_with_triton(
        case.kernel.fn,
        dict(zip(signature.arguments, ours.types, strict=True)),
        signature.constants,
        divisible=tuple(name for name, argument in signature.arguments.items() if argument.divisibility % 16 == 0),
        warps=case.warps,
        stages=3,
    )
    our_resources, their_resources = assemble(ours.ptx, target.name), assemble(theirs.ptx, target.name)
    assert our_resources is not None and their_resources is not None, "peers_of has found ptxas"
    return Beside(case, our_resources, their_resources, ours.info["times_ms"]["total"] / 1e3, theirs.seconds)


def main_table(compiled: Sequence[Compiled], ran: Sequence[Ran]) -> Grid:
    """A row for each case and target."""
    results = {id(result.case): result for result in ran}
    numbers = ("error", "plain PyTorch's", "registers", "spills", "instructions", "mma", "compile s", "run s")
    rows = []
    for each in compiled:
        result = results[id(each.case)]
        rows.append(
            (
                each.case.name,
                each.target,
                result.device,
                f"{result.judgement.error:.1e}",
                f"{result.judgement.plain_error:.1e}",
                *_resource_cells(each.resources),
                "as above" if each.seconds is None else f"{each.seconds:.2f}",
                f"{result.judgement.seconds:.2f}",
            )
        )
    title = "Kernels: compiled from Python, run, and held against float64"
    return Grid(title, ("case", "target", "device", *numbers), rows, left=3)


def _resource_cells(resources: Resources) -> tuple[str, ...]:
    if resources is None:
        return ("-",) * 4
    count, matrix = resources.instruction_count, resources.matrix_instructions
    share = "-" if not count or matrix is None else f"{100 * matrix / count:.0f} %"
    spills = resources.spilled_bytes
    return (str(resources.registers), str(spills), "-" if count is None else f"{count:,}", share)


def peer_table(beside: Sequence[Beside]) -> Grid:
    """Weft's code beside Triton's, with the ratios."""
    rows = []
    for each in beside:
        ours, theirs = each.ours, each.theirs
        ratio = (ours.instruction_count or 0) / (theirs.instruction_count or 1)
        rows.append(
            (
                each.case.name,
                f"{ours.registers} / {theirs.registers}",
                f"{_spills(ours)} / {_spills(theirs)}",
                f"{ours.instruction_count:,} / {theirs.instruction_count:,}",
                f"{ratio:.2f}",
                f"{each.our_seconds:.2f} / {each.their_seconds:.2f}",
            )
        )
    columns = ("case", "registers", "spill bytes", "instructions", "ratio", "Python to PTX s")
    title = f"The same source, tiling, warps and stages for {default_target()}: Weft beside Triton"
    return Grid(title, columns, rows)


def _spills(resources: PtxasResources) -> int:
    return resources.spilled_bytes


def failures(compiled: Sequence[Compiled], ran: Sequence[Ran]) -> list[str]:
    """What is wrong: results out of bounds, and spills."""
    wrong = [f"{each.case.name}: {text}" for each in ran for text in each.judgement.failures]
    for each in compiled:
        if each.resources is not None and _spills(each.resources):
            wrong.append(
                f"{each.case.name} for {each.target}: expected no spills, but got {_spills(each.resources)} bytes"
            )
    return wrong


def verdict(wrong: Sequence[str], ran: Sequence[Ran], mechanisms: int) -> str:
    """One line when all is well; what is wrong, a line each, when not."""
    if not wrong:
        return (
            f"All {len(ran)} kernels and {mechanisms} mechanisms, forward and backward, are right on {ran[0].device}: "
            "at most twice as far from float64 as plain PyTorch (gradients: three times), and no kernel spills."
        )
    return "\n".join([f"{len(wrong)} of the demo's checks failed:", *(f"  {text}" for text in wrong)])
