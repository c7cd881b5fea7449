# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""The loop model beside an H100's times of attention's schedules: how far off, and what its choice would cost.

    python benchmarks/schedules.py [--every]

Nothing is timed here. Points are milliseconds of full attention in bfloat16, 32 k tokens in all, heads · D = 2,048, at
4,096 and 16,384 tokens a sequence, on an H100 (80 GB, 2026-11-27; the least of up to three runs, each a median of up
to 20, the L2 cache overwritten before each). The model has the same kernels' machine code, by ptxas and nvdisasm; of
one pass, what its additions in memory take as well (weft.simulator.cost).
"""

from __future__ import annotations

import argparse
import functools
import math
import pathlib
import re
import statistics
import sys
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "python"))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

import weft
from loop_model import ranks
from weft.attention import attend
from weft.cycles.launch import FITTED, block_cycles, seconds
from weft.cycles.rates import rates_of
from weft.cycles.report import KernelCycles, of_ptx
from weft.programs.compiled import compiled
from weft.simulator.cost import LAUNCH_SECONDS
from weft.simulator.traffic import l2_seconds
from weft.targets import gpu_named

TARGET, GPU = "sm_90a", gpu_named("H100")
LENGTHS, TOKENS, CHANNELS = (4096, 16384), 32768, 2048

#: what is computed, channels of a head, schedules (of two passes: of dq, of dk with dv), milliseconds at LENGTHS
POINTS: tuple[tuple[str, int, str, float, float], ...] = (
    ("forward", 64, "128x128x8x2", 2.479, 9.839),
    ("forward", 64, "128x64x8x2", 2.504, 9.376),
    ("forward", 64, "128x64x8x3", 2.269, 9.359),
    ("forward", 64, "256x128x16x2", 2.633, 10.097),
    ("forward", 64, "256x64x16x2", 2.701, 11.175),
    ("forward", 64, "64x128x4x2", 2.105, 9.229),
    ("forward", 64, "64x128x4x3", 2.491, 10.326),
    ("forward", 64, "64x256x4x2", 3.148, 12.114),
    ("forward", 64, "64x64x4x3", 2.621, 11.399),
    ("forward", 80, "128x64x8x2", 2.122, 9.213),
    ("forward", 80, "128x64x8x3", 2.206, 8.925),
    ("forward", 96, "128x128x8x2", 2.052, 8.013),
    ("forward", 96, "128x64x8x2", 1.937, 8.386),
    ("forward", 96, "128x64x8x3", 2.047, 8.117),
    ("forward", 128, "128x128x8x2", 1.664, 6.789),
    ("forward", 128, "128x256x8x2", 4.111, 15.374),
    ("forward", 128, "128x64x8x2", 2.027, 7.674),
    ("forward", 128, "128x64x8x3", 1.906, 8.436),
    ("forward", 128, "256x64x16x2", 2.090, 8.404),
    ("forward", 128, "64x128x4x2", 2.306, 8.607),
    ("forward", 256, "128x64x8x2", 1.525, 6.112),
    ("two passes", 64, "128x128x8x2 128x128x8x2", 6.455, 24.876),
    ("two passes", 64, "128x128x8x2 64x128x4x2", 6.371, 25.122),
    ("two passes", 64, "128x128x8x2 64x64x4x2", 6.495, 25.612),
    ("two passes", 64, "128x128x8x2 64x64x4x3", 6.364, 24.476),
    ("two passes", 64, "128x64x8x2 64x128x4x2", 6.675, 27.579),
    ("two passes", 64, "128x64x8x3 64x128x4x2", 6.774, 27.297),
    ("two passes", 64, "64x128x4x2 128x128x8x2", 6.106, 25.598),
    ("two passes", 64, "64x128x4x2 128x64x8x2", 6.896, 26.938),
    ("two passes", 64, "64x128x4x2 128x64x8x3", 6.712, 27.050),
    ("two passes", 64, "64x128x4x2 64x128x4x2", 6.715, 25.722),
    ("two passes", 64, "64x128x4x2 64x64x4x2", 6.467, 24.987),
    ("two passes", 64, "64x128x4x2 64x64x4x3", 6.233, 25.208),
    ("two passes", 64, "64x64x4x2 128x128x8x2", 6.364, 25.506),
    ("two passes", 64, "64x64x4x2 64x128x4x2", 6.379, 25.277),
    ("two passes", 64, "64x64x4x2 64x64x4x2", 5.823, 24.287),
    ("two passes", 64, "64x64x4x2 64x64x4x3", 6.101, 25.922),
    ("two passes", 64, "64x64x4x3 128x128x8x2", 6.508, 24.935),
    ("two passes", 64, "64x64x4x3 64x128x4x2", 6.554, 24.977),
    ("two passes", 64, "64x64x4x3 64x64x4x2", 6.198, 26.922),
    ("two passes", 64, "64x64x4x3 64x64x4x3", 6.217, 26.530),
    ("two passes", 128, "128x128x8x2 64x64x4x2", 5.443, 22.615),
    ("two passes", 128, "128x64x8x2 128x32x8x2", 6.279, 25.545),
    ("two passes", 128, "128x64x8x2 128x64x8x2", 5.603, 21.946),
    ("two passes", 128, "128x64x8x2 64x128x4x2", 8.476, 34.839),
    ("two passes", 128, "128x64x8x2 64x64x4x2", 5.372, 22.448),
    ("two passes", 128, "128x64x8x2 64x64x4x3", 6.655, 25.567),
    ("two passes", 128, "128x64x8x3 128x64x8x2", 5.609, 22.514),
    ("two passes", 128, "128x64x8x3 64x64x4x2", 5.693, 22.194),
    ("two passes", 128, "128x64x8x3 64x64x4x3", 6.534, 26.489),
    ("two passes", 128, "64x128x4x2 64x64x4x2", 6.187, 24.015),
    ("two passes", 128, "64x64x4x2 64x64x4x2", 6.096, 23.959),
    ("one pass", 64, "128x128x8x2", 6.552, 26.354),
    ("one pass", 64, "128x64x8x2", 7.188, 27.081),
    ("one pass", 64, "128x64x8x3", 7.919, 29.923),
    ("one pass", 64, "64x64x4x2", 6.966, 27.090),
    ("one pass", 64, "64x64x4x3", 7.270, 28.672),
    ("one pass", 128, "128x64x8x2", 5.500, 21.136),
    ("one pass", 128, "128x64x8x3", 5.296, 21.292),
)

#: products of a kernel of each form, by what its name has
_PRODUCTS = {"backward_query": 3, "backward_keys": 4, "backward": 5, "attend": 2}


def program(kind: str, D: int) -> Any:
    """Attention of heads of D channels, traced."""

    def full(q: Any, k: Any, v: Any) -> Any:
        return attend(q, k, v, deterministic=kind != "one pass")

    text = ", ".join(f"{name}:bf16[B,H,N,{D}]:16" for name in "qkv")
    return weft.program(full).declare(text)


@functools.cache
def kernels(kind: str, D: int, schedules: str) -> list[tuple[KernelCycles, int]]:
    """The kernels of one form at such schedules, each with the rows of a block."""
    roles = {"forward": ["forward"], "one pass": ["backward.keys"]}.get(kind, ["backward.query", "backward.keys"])
    chosen = {
        f"0.{role}": [int(x) for x in each.split("x")] for role, each in zip(roles, schedules.split(), strict=True)
    }
    form = compiled(program(kind, D), TARGET, kind != "forward", chosen)
    launches = form.plan("" if kind == "forward" else ".backward")["variants"][0]["launches"]
    rows = {each["kernel"]: int(re.findall(r"cdiv\(N, (\d+)\)", each["grid"][0])[0]) for each in launches}
    facts = [each for each in form.info["kernels"] if each["entry"] in rows]
    return [(found, rows[found.name]) for found in of_ptx(form.ptx, TARGET, GPU, facts)]


def modelled(kind: str, D: int, schedules: str, length: int) -> float:
    """Milliseconds by the loop model."""
    heads, total = TOKENS // length * (CHANNELS // D), 0.0
    for kernel, rows in kernels(kind, D, schedules):
        if kernel.main is None:
            total += LAUNCH_SECONDS
            continue
        products = next(count for name, count in _PRODUCTS.items() if name in kernel.name)
        macs = sum(kernel.main.macs.values())  # of a block's iteration
        iterations = length / (macs / (rows * D * products))
        blocks = math.ceil(length / rows) * heads
        cycles = [block_cycles(kernel, 0, int(iterations), FITTED)] * blocks
        rate = max(rates_of(GPU).operations(element) for element in kernel.main.macs)
        taken = seconds(cycles, kernel.resident, 0, 2 * macs * iterations * blocks, rate, GPU, FITTED)
        added = length / rows * length * D * heads / 8 if kind == "one pass" else 0  # sectors of eight float32
        total += max(taken, l2_seconds(added, added, GPU))
    return total * 1e3


def _correlation(one: list[float], other: list[float]) -> float:
    """Spearman's; NaN of fewer than three."""
    return float(np.corrcoef(*(ranks(np.array(each)) for each in (one, other)))[0, 1]) if len(one) > 2 else math.nan


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--every", action="store_true", help="print every point too")
    options = parser.parse_args()
    console = Console(width=120)
    table = Table("form", "D", "tokens", "schedules", "mean error", "rank correlation", "its choice costs")
    points = Table("form", "D", "tokens", "schedules", "H100, ms", "modelled, ms", "ratio")
    for kind, D in dict.fromkeys((kind, D) for kind, D, *_ in POINTS):
        for place, length in enumerate(LENGTHS):
            mine = [(each[2], each[3 + place]) for each in POINTS if each[:2] == (kind, D)]
            timed = [ms for _, ms in mine]
            found = [modelled(kind, D, schedules, length) for schedules, _ in mine]
            error = statistics.mean(abs(a / b - 1) for a, b in zip(found, timed, strict=True))
            costs = timed[found.index(min(found))] / min(timed)
            rank = _correlation(timed, found)
            row = (kind, str(D), f"{length:,}", str(len(mine)), f"{error:.1%}", f"{rank:.2f}", f"{costs:.2f}")
            table.add_row(*row)
            for (schedules, ms), model in zip(mine, found, strict=True):
                points.add_row(kind, str(D), f"{length:,}", schedules, f"{ms:.3f}", f"{model:.3f}", f"{model / ms:.2f}")
    if options.every:
        console.print(points)
    console.print(table)


if __name__ == "__main__":
    main()
