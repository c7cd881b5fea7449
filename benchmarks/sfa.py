# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""What semantic foundation attention costs beside dense causal attention, counted by the simulator.

    python benchmarks/sfa.py [--lengths 1024,4096] [--ratios 0,0.5,0.9] [--gains] [--forward] [--json]

One head of 128 in float16; all blocks are simulated. A share p of the tokens equals the token before, so that the
decisions themselves merge it. Instructions of SFA, normalising included, over those of causal attention of queries and
keys as they are, forward and backward; the share of all but the attention itself in the forward, that is deciding,
units and merging; multiply-adds of the forward's matrix instructions over those of the blocks of units that some row
of a tile sees and of the rows' own products, with their keys and with themselves. Before each length's rows, "norm" is
causal attention of normalised queries and keys, which SFA is where it merges nothing. With --gains the norms have
gains, which have gradients.
"""

from __future__ import annotations

import argparse
import json
from typing import Any

import torch
import weft
from weft.attention.sfa import _sfa
from weft.testing.plans import Run, counted, instructions
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
def normalised(q, k, v):
    """What SFA is where it merges nothing."""
    return weft.softmax(weft.rms_norm(q), weft.rms_norm(k), weft.causal()) @ v


@weft.program
def sfa(q, k, v, q_gain=None, k_gain=None):
    options = {"eps": 1e-6, "heads": 1, "thresholds": (2e-4, 0.0175), "max_joins": 20, "values": ("sum", 0)}
    return _sfa(q, k, v, q_gain, k_gain, None, None, rope=False, scale=None, loss=None, **options)


def operands(tokens: int, ratio: float, gains: bool = False) -> list[torch.Tensor]:
    q, k, v = (torch.randn(1, 1, tokens, HEAD).half() for _ in range(3))
    for i in range(1, tokens):
        if torch.rand(()) < ratio:
            k[0, 0, i] = k[0, 0, i - 1]
    return [q, k, v, *([torch.rand(1, HEAD) + 0.5 for _ in range(2)] if gains else [])]


def rectangle(k: torch.Tensor) -> int:
    """Multiply-adds of the forward over the blocks of units that some row of a tile sees, and of each row with its own
    key and with itself, in either case with 16 rows of which it is one."""
    joins, _ = decide(k.double())
    units = units_of(joins[0, 0].tolist(), 20)
    begun, blocks = torch.tensor([unit.end for unit in units]), 0
    tiles = range(0, k.shape[2], TILE[0])
    for first in tiles:
        last = min(first + TILE[0], k.shape[2]) - 1
        blocks += -(-int((begun <= last).sum()) // TILE[1])
    return blocks * TILE[0] * TILE[1] * 2 * HEAD + len(tiles) * TILE[0] * 2 * 16 * HEAD


def total(run: Run) -> int:
    return sum(instructions(run).values())


def cost(
    tokens: int, ratio: float, dense: dict[str, Run], parts: tuple[str, ...], gains: bool = False
) -> dict[str, Any]:
    arrays = operands(tokens, ratio, gains)
    runs = counted(sfa, *arrays, backward="backward" in parts)
    least = rectangle(arrays[1])
    result: dict[str, Any] = {"products": runs["forward"].total("mma_macs") / least}
    for part in parts:
        mine, whole = instructions(runs[part]), total(dense[part])
        result[part] = sum(mine.values()) / whole
        result[f"{part} launches"] = len(runs[part].launches)
        if part == "forward":
            result["decisions and units"] = sum(n for name, n in mine.items() if "attend" not in name) / whole
        result[f"{part} kernels"] = {name: n / whole for name, n in mine.items()}
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--gains", action="store_true", help="norms with gains")
    parser.add_argument("--forward", action="store_true", help="the forward only is shown")
    parser.add_argument("--lengths", default=",".join(map(str, LENGTHS)))
    parser.add_argument("--ratios", default=",".join(map(str, RATIOS)))
    options = parser.parse_args()
    parts = ("forward",) if options.forward else ("forward", "backward")
    table: dict[str, Any] = {}
    if not options.json:
        print("SFA over causal attention, one head of 128, warp instructions; 'deciding': decide, units, merge")
        print(f"{'tokens':>8} {'p':>5} {'forward':>9} {'deciding':>9} {'backward':>9} {'products':>9}   launches")
    for tokens in map(int, options.lengths.split(",")):
        arrays = operands(tokens, 0.0)
        dense = counted(causal, *arrays, backward=not options.forward)
        equal = counted(normalised, *arrays, backward=not options.forward)
        over = {part: total(equal[part]) / total(dense[part]) for part in parts}
        table[f"{tokens}, normalised"] = over
        if not options.json:
            print(f"{tokens:8}  norm {over['forward']:9.3f} {'':9} {over.get('backward', 0.0):9.3f}", flush=True)
        for ratio in map(float, options.ratios.split(",")):
            found = table[f"{tokens}, {ratio}"] = cost(tokens, ratio, dense, parts, options.gains)
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
