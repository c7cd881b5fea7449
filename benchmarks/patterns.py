# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""What a pattern costs: warp instructions of attention's kernels, and of those that find its blocks, by the simulator.

    python benchmarks/patterns.py [--target sm_90a] [--tokens 512] [--only REGEX]

For each pattern the share of its pairs, and the instructions of forward and generated backward over those of full
attention on the same tensors (fp16, B 1, 4 heads of 64): all kernels, and what finding blocks is of that. Cost should
follow the share, but for blocks that are cut.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable

import torch
import weft
from weft.tables import console_class, table_class
from weft.targets import targets
from weft.testing.plans import counted, instructions

HEADS, D, BLOCK = 4, 64, 64


@weft.program
def attention(q, k, v, *, pattern):
    return weft.softmax(q, k, pattern) @ v


def tables(tokens: int) -> weft.Pattern:
    """Every second block."""
    side = tokens // BLOCK
    index = torch.arange(0, side, 2, dtype=torch.int32).repeat(1, HEADS, side, 1)
    return weft.blocks(index, torch.full((1, HEADS, side), index.shape[-1], dtype=torch.int32), block=(BLOCK, BLOCK))


def bitmap(tokens: int) -> weft.Pattern:
    side = tokens // BLOCK
    bits = (torch.arange(side)[:, None] + torch.arange(side)) % 2 == 0
    return weft.block_bitmap(bits.expand(1, HEADS, side, side).contiguous(), block=(BLOCK, BLOCK))


def documents(tokens: int) -> weft.Pattern:
    ids = torch.arange(tokens, dtype=torch.int32) // 100
    return weft.document(ids, ids) & weft.causal()


def mask_tensor(tokens: int) -> weft.Pattern:
    mask = torch.rand(tokens, tokens, generator=torch.Generator().manual_seed(1)) < 0.5
    return weft.mask(lambda b, h, n, m: mask[n, m])


PATTERNS: dict[str, Callable[[int], weft.Pattern]] = {
    "full": lambda tokens: weft.full(),
    "causal": lambda tokens: weft.causal(),
    "window": lambda tokens: weft.window(tokens // 8, 0),
    "prefix": lambda tokens: weft.prefix(100) | weft.causal(),
    "longformer": lambda tokens: weft.window(tokens // 8, tokens // 8) | weft.global_tokens(8),
    "strided": lambda tokens: weft.strided(4) & weft.causal(),
    "dilated": lambda tokens: weft.dilated(4, 16),
    "neighbourhood": lambda tokens: weft.neighbourhood((tokens,), (65,)),
    "neighbourhood of a grid": lambda tokens: weft.neighbourhood((16, tokens // 16), (7, 7)),
    "windows of a grid": lambda tokens: weft.block_window((8, 8), grid=(16, tokens // 16)),
    "random blocks": lambda tokens: weft.random_blocks(1, 3, BLOCK) | weft.window(64, 64),
    "documents": documents,
    "blocks": tables,
    "blocks, causal": lambda tokens: tables(tokens) & weft.causal(),
    "bitmap": bitmap,
    "mask tensor": mask_tensor,
    "by chance": lambda tokens: weft.mask(lambda b, h, n, m: (n * 1103515245 + m * 12345) % 7 > 0, scattered=True),
}


def counts(pattern: weft.Pattern, tokens: int, target: str) -> dict[str, int]:
    """Warp instructions of each kernel, forward and backward."""
    torch.manual_seed(0)
    runs = counted(attention, *torch.randn(3, 1, HEADS, tokens, D).half(), target=target, pattern=pattern)
    return instructions(runs["forward"]) | instructions(runs["backward"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--target", choices=sorted(targets()), default="sm_80")
    parser.add_argument("--tokens", type=int, default=512, help="a multiple of 128")
    parser.add_argument("--only", default="", metavar="REGEX", help="patterns by name")
    options = parser.parse_args()
    dense = sum(counts(weft.full(), options.tokens, options.target).values())
    shown = table_class()()
    for heading in ("pattern", "pairs", "instructions over full", "of which finding blocks"):
        shown.add_column(heading)
    for name, make in PATTERNS.items():
        if not re.search(options.only, name):
            continue
        pattern = make(options.tokens)
        found = counts(pattern, options.tokens, options.target)
        total = sum(found.values())
        finding = sum(count for kernel, count in found.items() if "blocks_of" in kernel)
        share = pattern.matrix(options.tokens, heads=HEADS).mean()
        shown.add_row(name, f"{share:.3f}", f"{total / dense:.2f}", f"{finding / total:.2f}")
    console_class()().print(shown)


if __name__ == "__main__":
    main()
