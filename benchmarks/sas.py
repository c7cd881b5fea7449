# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""What SAS costs beside multi-head attention, counted by the simulator.

    python benchmarks/sas.py [--json] [--taps 3] [--sample 48] [--lengths 512,1024] [--gpu A100] [--launches]

Two tables. The expansion kernels: multiply-adds by matrix instructions over the algorithm's; bytes between
multiprocessors and memory (global sectors) over input + weights + output, as counted, where every program reads the
weights anew, and with the weights' repeated reads taken off, which L2 serves; and registers and spills as ptxas reports
them. Limit: 1.15. All programs of an expansion do the same: they are counted over 128 tokens.

Then SAS, forward and backward (the expansions of q, k and v, and causal attention over 36 heads of 96 and 64), against
multi-head attention (12 heads of 64) at the paper's 125M sizes, one sequence; projections, which both have, are left
out. Of each launch at most `--sample` blocks run, spread over its grid, and what they cost is scaled to all of them.
`--launches` leaves out the first table, and prints every launch of SAS under the second one's rows, with what bounds
it; and multiply-adds of the expansions over the algorithm's (backward: of gradients of inputs and weights, and of the
activations that they need computed once more).
"""

from __future__ import annotations

import argparse
import json
from typing import Any

import numpy as np
import torch
import weft
from weft.attention.sas import _sas
from weft.compiler import ptxas
from weft.testing.expansion import Expansion, compiled
from weft.testing.plans import Launched, counted, run_plan
from weft.testing.sas import expansion_shapes

SECTOR_BYTES = 32
COUNTED_TOKENS = 128
LENGTHS = [512, 1024, 2048, 4096]
#: heads, expanded heads, head size, expanded head size
SMALL, MEDIUM = (12, 36, 64, 96), (16, 48, 64, 96)


@weft.program
def causal(q, k, v):
    return weft.softmax(q, k, weft.causal()) @ v


def operand(sizes: tuple[int, int, int, int], taps: int, values: bool) -> Expansion:
    heads, wide, d, e = sizes
    return Expansion(heads, wide, d, 0 if values else e, taps)


def cost(launches: list[Launched], gpu: str) -> dict[str, float]:
    """Of launches together; of all their blocks, where only some ran."""

    def total(counter: str) -> float:
        return sum(launched.report.counters[counter] * launched.scale for launched in launches)

    seconds = sum(launched.report.profile.roofline(gpu, launched.scale).limit.seconds for launched in launches)
    return {
        "multiply-adds": total("mma_macs"),
        "bytes": SECTOR_BYTES * (total("global_sectors_read") + total("global_sectors_written")),
        "instructions": total("warp_instructions"),
        "seconds": seconds,
        "launches": len(launches),
    }


def needed(tokens: int, taps: int) -> dict[str, int]:
    """The multiply-adds of q's, k's and v's expansions. Their backward computes again what activations need: the first
    of an operand's convolutions, and the first of its linear maps."""
    operands = [operand(SMALL, taps, values) for values in (False, False, True)]
    forward = sum(each.multiply_adds(1, tokens) for each in operands)
    again = sum(tokens * each.wide * each.d * (taps * each.heads + each.e) for each in operands)
    return {"forward": forward, "backward": 2 * forward + again}


def count_expansion(expansion: Expansion, gpu: str) -> dict[str, Any]:
    """Cost of ``COUNTED_TOKENS``, and how that compares."""
    ptx, info = compiled(expansion.text())
    inputs = expansion.inputs(torch.Generator().manual_seed(0), 1, COUNTED_TOKENS)
    run = run_plan(ptx, info, "f", [x.numpy() for x in inputs], checks="none")
    found = cost(run.launches, gpu)
    moved, weights = expansion.bytes(1, COUNTED_TOKENS)
    programs = int(np.prod(run.launches[0].grid))
    resources = ptxas.assemble(ptx, "sm_80", run.launches[0].kernel)
    return {
        **found,
        "products": found["multiply-adds"] / expansion.multiply_adds(1, COUNTED_TOKENS),
        "all sectors": found["bytes"] / (moved + weights),
        "weights once": (found["bytes"] - (programs - 1) * weights) / (moved + weights),
        "programs": programs,
        "registers": resources.registers if resources else None,
        "spilled": resources.spilled_bytes if resources else None,
        "shared": info["kernels"][0]["shared_bytes"],
    }


def weights(sizes: tuple[int, int, int, int], taps: int, values: bool) -> dict[str, torch.Tensor]:
    """Of one operand, as weft.attention.sas takes them."""
    heads, wide, d, e = sizes
    shapes = expansion_shapes(heads, wide, d, None if values else e, taps)
    return {name: torch.randn(shape).half() for name, shape in shapes.items()}


def against_attention(
    tokens: int, taps: int, sample: int, gpu: str, launches: bool
) -> dict[str, dict[str, dict[str, float]]]:
    """Forward and backward: of multi-head attention, of SAS, and of SAS what is not attention; and each launch."""
    heads, _, d, _ = SMALL
    q, k, v = (torch.randn(1, heads, tokens, d).half() for _ in range(3))
    plain = counted(causal, q, k, v, sample=sample)
    expanded = [weights(SMALL, taps, values) for values in (False, False, True)]
    runs = counted(_sas, q, k, v, *expanded, sample=sample, causal=True, scale=None)
    return {
        part: {
            "attention": cost(plain[part].launches, gpu),
            "SAS": cost(run.launches, gpu),
            "of it expansions": cost([each for each in run.launches if "attend" not in each.kernel], gpu),
            **({name_of(each): cost([each], gpu) | bound(each, gpu) for each in run.launches} if launches else {}),
        }
        for part, run in runs.items()
    }


def name_of(launched: Launched) -> str:
    return f"{launched.kernel.split('_batch')[0]} {'x'.join(map(str, launched.grid))}"


def bound(launched: Launched, gpu: str) -> dict[str, Any]:
    return {"bound": launched.report.profile.roofline(gpu, launched.scale).limit.resource}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--taps", type=int, default=3, help="taps of the convolutions in the second table")
    parser.add_argument("--sample", type=int, default=48, help="blocks of each launch that run in the second table")
    parser.add_argument("--lengths", default=",".join(map(str, LENGTHS)), help="tokens of the second table")
    parser.add_argument("--gpu", default="A100", help="whose roofline")
    parser.add_argument("--launches", action="store_true", help="the second table alone, with every launch of SAS")
    options = parser.parse_args()
    kernels = {
        f"H {sizes[0]} to {sizes[1]}, {taps} taps, {'v' if values else 'q and k'}": count_expansion(
            operand(sizes, taps, values), options.gpu
        )
        for sizes in (SMALL, MEDIUM)
        for taps in (1, 3, 5, 7)
        for values in (False, True)
        if not options.launches
    }
    if not options.json:
        if kernels:
            show_kernels(kernels)
        print(
            f"\nSAS and multi-head attention at the 125M sizes, {options.taps} taps, at most {options.sample} blocks of"
            f" each launch counted; least time on {options.gpu}"
        )
        columns = f"{'multiply-adds':>16} {'bytes':>16} {'instructions':>14} {'roofline':>11}"
        print(f"  {'tokens':>6} {'':9} {'':17} {'launches':>8} {columns}")
    table = {}
    for tokens in map(int, options.lengths.split(",")):
        table[tokens] = against_attention(tokens, options.taps, options.sample, options.gpu, options.launches)
        if options.json:
            continue
        show_costs(tokens, table[tokens])
        for part, least in needed(tokens, options.taps).items():
            over = table[tokens][part]["of it expansions"]["multiply-adds"] / least
            print(f"  {tokens:6} {part:9} multiply-adds of the expansions over the algorithm's: {over:.3f}", flush=True)
    if options.json:
        print(json.dumps({"kernels": kernels, "against attention": table}, indent=2))


def show_kernels(kernels: dict[str, dict[str, Any]]) -> None:
    print(f"expansion kernels over {COUNTED_TOKENS} tokens, over the algorithm's (limit 1.15)")
    columns = ("launches", "products", "all sectors", "weights once", "registers", "spilled", "shared")
    print(f"  {'':32}" + "".join(f"{name:>14}" for name in columns))
    for name, found in kernels.items():
        cells = (f"{found[c]:14.3f}" if isinstance(found[c], float) else f"{found[c]!s:>14}" for c in columns)
        print(f"  {name:32}" + "".join(cells), flush=True)


def show_costs(tokens: int, parts: dict[str, dict[str, dict[str, float]]]) -> None:
    for part, rows in parts.items():
        for name, found in rows.items():
            print(
                f"  {tokens:6} {part:9} {name:32} {found['launches']:8} {found['multiply-adds']:16,.0f}"
                f" {found['bytes']:16,.0f} {found['instructions']:14,.0f} {found['seconds'] * 1e6:8.1f} us"
                f" {found.get('bound', '')}",
                flush=True,
            )


if __name__ == "__main__":
    main()
