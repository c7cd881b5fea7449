# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""How evenly the blocks of causal attention end, by the loop model: cycles until the last has ended over those that all
multiprocessors would take if none ever waited. In the order of the compiled plan, head by head, and with the longest of
all first, which no L2 cache would hold the keys of.

    python benchmarks/launch_order.py [--target sm_90a] [--tokens 16384] [--channels 2048]

Nothing is timed. Blocks are dealt in the grid's order to the multiprocessor that is free first, as hardware does it
where no other launch is near.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Sequence
from math import ceil
from typing import Any

import weft
from rich.console import Console
from rich.table import Table
from weft.cycles.launch import FITTED, block_cycles, makespan
from weft.cycles.report import KernelCycles, of_ptx
from weft.programs.compiled import compiled
from weft.runtime.plans import evaluate
from weft.targets import Gpu, gpu_named

GPUS = {"sm_80": "A100", "sm_90a": "H100"}
LENGTHS = (512, 1024, 2048, 4096, 8192, 16384)


def causal(q: Any, k: Any, v: Any) -> Any:
    return weft.softmax(q, k, weft.causal()) @ v


def kernels(size: int, target: str, gpu: Gpu) -> list[tuple[KernelCycles, Sequence[str], int]]:
    """Of each kernel that walks, its loops, its grid and a tile's rows."""
    types = ", ".join(f"{name}:fp16[B,H,N,{size}]:16" for name in "qkv")
    form = compiled(weft.program(causal).declare(types), target, True)
    found = []
    for part in (".forward", ".backward"):
        for launch in form.plan(part)["variants"][0]["launches"]:
            facts = [each for each in form.info["kernels"] if each["entry"] == launch["kernel"]]
            (cycles,) = of_ptx(form.ptx, target, gpu, facts)
            if cycles.main is not None:
                rows = int(re.findall(r"cdiv\(N, (\d+)\)", launch["grid"][0])[0])
                found.append((cycles, launch["grid"], rows))
    return found


def tiles(kernel: KernelCycles, length: int, rows: int, size: int) -> list[float]:
    """Cycles of a head's blocks, the longest first: block i walks i + 1 tiles' pairs, of which its own are masked."""
    assert kernel.main is not None
    products = 2 if "backward" not in kernel.name else 3 if "query" in kernel.name else 4
    pairs = sum(kernel.main.macs.values()) / (size * products)  # of an iteration
    steps = rows * rows / pairs
    return [
        block_cycles(kernel, ceil(steps), int(steps * before), FITTED)
        for before in reversed(range(ceil(length / rows)))
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--target", choices=GPUS, default="sm_90a")
    parser.add_argument("--tokens", type=int, default=16384, help="of all sequences together")
    parser.add_argument("--channels", type=int, default=2048, help="of all heads together")
    given = parser.parse_args()
    gpu = gpu_named(GPUS[given.target])
    table = Table("kernel", "D", "tokens", "batch x heads", "abreast", "plan's order", "head by head", "longest first")
    for size in (64, 128):
        for kernel, grid, rows in kernels(size, given.target, gpu):
            slots = gpu.multiprocessors * kernel.resident
            for length in LENGTHS:
                batch, heads = max(1, given.tokens // length), given.channels // size
                extents = [evaluate(each, {"B": batch, "H": heads, "N": length}) for each in grid]
                head = tiles(kernel, length, rows, size)
                abreast = extents[0] // len(head)
                section = [cycles for cycles in head for _ in range(abreast)]
                count = batch * heads
                least = sum(head) * count / slots
                over = [
                    makespan(order, slots) / least
                    for order in (section * (count // abreast), head * count, sorted(head * count, reverse=True))
                ]
                table.add_row(
                    kernel.name,
                    str(size),
                    f"{length:,}",
                    f"{batch} x {heads}",
                    str(abreast),
                    *(f"{x:.3f}" for x in over),
                )
    Console(width=120).print(table)


if __name__ == "__main__":
    main()
