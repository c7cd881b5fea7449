# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""What semantic foundation attention costs beside dense causal attention, counted by the simulator.

    python benchmarks/sfa.py [--lengths 1024,4096] [--ratios 0,0.5,0.9] [--forward] [--json]

One head of 128 in float16. A share p of the tokens equals the token before (times a factor), so that the decisions
themselves merge it. Instructions of SFA over those of causal attention, forward and backward; the share of all but the
attention itself in the forward, that is normalising, deciding, units and merging; multiply-adds of the forward's
matrix products over those of the blocks of units that some row of a tile sees.
"""

from __future__ import annotations

import argparse
import json
from typing import Any

import torch
import weft
from weft.attention.sfa import _sfa
from weft.testing import mixers
from weft.testing.plans import Run, counted
from weft.testing.sfa import decide, units_of

HEAD = 128
#: the attention's tile at that head: rows, and columns of a block
TILE = (128, 64)
LENGTHS = [1024, 4096, 8192]
RATIOS = [0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9]


@weft.program
def causal(q, k, v):
    return weft.softmax(q, k, weft.causal()) @ v


@weft.program
def sfa(q, k, v):
    options = {"eps": 1e-6, "heads": 1, "thresholds": (2e-4, 0.0175), "max_joins": 20, "values": ("sum", 0)}
    return _sfa(q, k, v, None, None, None, None, rope=False, scale=None, loss=None, **options)


def operands(tokens: int, ratio: float) -> list[torch.Tensor]:
    q, k, v = (torch.randn(1, 1, tokens, HEAD).half() for _ in range(3))
    for i in range(1, tokens):
        if torch.rand(()) < ratio:
            k[0, 0, i] = k[0, 0, i - 1]
    return [q, k, v]


def rectangle(k: torch.Tensor) -> int:
    """Multiply-adds of the forward over the blocks of units that some row of a tile sees."""
    joins, _ = decide(mixers.rms_norm(k.double()))
    units = units_of(joins[0, 0].tolist(), 20)
    begun, blocks = torch.tensor([unit.end for unit in units]), 0
    for first in range(0, k.shape[2], TILE[0]):
        last = min(first + TILE[0], k.shape[2]) - 1
        blocks += -(-int((begun <= last).sum()) // TILE[1])
    return blocks * TILE[0] * TILE[1] * 2 * HEAD


def instructions(run: Run) -> dict[str, int]:
    """By kernel."""
    found: dict[str, int] = {}
    for launched in run.launches:
        found[launched.kernel] = found.get(launched.kernel, 0) + launched.report.counters["warp_instructions"]
    return found


def cost(tokens: int, ratio: float, dense: dict[str, Run], parts: tuple[str, ...]) -> dict[str, Any]:
    arrays = operands(tokens, ratio)
    runs = counted(sfa, *arrays)
    least = rectangle(arrays[1])
    result: dict[str, Any] = {"products": runs["forward"].total("mma_macs") / least if least else 1.0}
    for part in parts:
        mine, whole = instructions(runs[part]), sum(instructions(dense[part]).values())
        result[part] = sum(mine.values()) / whole
        result[f"{part} launches"] = len(runs[part].launches)
        if part == "forward":
            result["decisions and units"] = sum(n for name, n in mine.items() if "attend" not in name) / whole
        result[f"{part} kernels"] = {name: n / whole for name, n in mine.items()}
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--forward", action="store_true", help="the forward only is shown")
    parser.add_argument("--lengths", default=",".join(map(str, LENGTHS)))
    parser.add_argument("--ratios", default=",".join(map(str, RATIOS)))
    options = parser.parse_args()
    parts = ("forward",) if options.forward else ("forward", "backward")
    table: dict[str, Any] = {}
    if not options.json:
        print(
            "SFA over causal attention, one head of 128, warp instructions; 'deciding': normalise, decide, units, merge"
        )
        print(f"{'tokens':>8} {'p':>5} {'forward':>9} {'deciding':>9} {'backward':>9} {'products':>9}   launches")
    for tokens in map(int, options.lengths.split(",")):
        dense = counted(causal, *operands(tokens, 0.0))
        for ratio in map(float, options.ratios.split(",")):
            found = table[f"{tokens}, {ratio}"] = cost(tokens, ratio, dense, parts)
            if options.json:
                continue
            backward = f"{found['backward']:9.3f}" if "backward" in found else ""
            launches = " and ".join(str(found[f"{part} launches"]) for part in parts)
            print(
                f"{tokens:8} {ratio:5.1f} {found['forward']:9.3f} {found['decisions and units']:9.3f} {backward:>9}"
                f" {found['products']:9.3f}   {launches}",
                flush=True,
            )
    if options.json:
        print(json.dumps(table, indent=2))


if __name__ == "__main__":
    main()
