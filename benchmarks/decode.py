# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""What decoding costs, by the plan and counted on the simulator for sm_80: blocks of the grid, multiply-adds over
16-row tiles, sectors of keys and values over the least, and what pages add to a contiguous cache's instructions.

    python benchmarks/decode.py [--batch B] [--heads H] [--key-heads Hkv] [--keys M] [--head D] [--sample BLOCKS]
"""

from __future__ import annotations

import argparse
from math import prod

import torch
import weft
from weft.attention import decode
from weft.testing.plans import Run, counted

SECTOR_BYTES = 32
PAGES = (1, 16, 64, 256)


@weft.program
def contiguous(q, k, v, lengths):
    return decode(q, k, v, seqused_k=lengths)


@weft.program
def in_pages(q, k, v, table, lengths):
    return decode(q, k, v, block_table=table, seqused_k=lengths)


def run(program, *arrays, sample: int) -> Run:
    return counted(program, *arrays, target="sm_80", backward=False, sample=sample, counts_only=True)["forward"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, value in (("batch", 1), ("heads", 32), ("key-heads", 8), ("keys", 4096), ("head", 128), ("sample", 16)):
        parser.add_argument(f"--{name}", type=int, default=value)
    options = parser.parse_args()
    batch, kv, keys, head, sample = options.batch, options.key_heads, options.keys, options.head, options.sample
    q = torch.zeros(batch, options.heads, 1, head, dtype=torch.float16)
    k = torch.zeros(batch, kv, keys, head, dtype=torch.float16)
    lengths = torch.full((batch,), keys, dtype=torch.int32)
    plain = run(contiguous, q, k, k, lengths, sample=sample)
    attend = plain.launches[0]
    macs = attend.scale * attend.report.counters["mma_macs"]
    sectors = attend.scale * attend.report.counters["global_sectors_read"]
    tiles = batch * kv * -(-options.heads // kv // 16) * 16 * keys * 2 * head
    queries = q.numel() * 2 // SECTOR_BYTES * attend.grid[0]
    least = 2 * k.numel() * 2 // SECTOR_BYTES
    print(f"batch {batch}, heads {options.heads}/{kv}, keys {keys}, head {head}: {prod(attend.grid)} blocks")
    print(f"multiply-adds over 16-row tiles: {macs / tiles:.3f}")
    print(f"sectors of keys and values over the least: {(sectors - queries) / least:.3f}")
    for page in PAGES:
        count = -(-keys // page)
        pages = torch.zeros(batch * count, page, kv, head, dtype=torch.float16)
        table = torch.randperm(batch * count).reshape(batch, count).to(torch.int32)
        paged = run(in_pages, q, pages, pages, table, lengths, sample=sample)
        print(
            f"pages of {page}: {paged.scaled('warp_instructions') / plain.scaled('warp_instructions'):.3f} instructions"
        )


if __name__ == "__main__":
    main()
