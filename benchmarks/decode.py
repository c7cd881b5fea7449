# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""What decoding costs, by the plan and counted on the simulator for sm_80: blocks of the grid, multiply-adds over
16-row tiles, sectors of keys and values over the least, and instructions over those of a contiguous cache, of pages
and of caches of 8-bit floats.

    python benchmarks/decode.py [--batch B] [--heads H] [--key-heads Hkv] [--keys M] [--head D] [--sample BLOCKS]
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
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


@weft.program
def of_scaled_pages(q, k, v, table, lengths, k_scale, v_scale):
    return decode(q, k, v, block_table=table, seqused_k=lengths, k_scale=k_scale, v_scale=v_scale)


@dataclass(frozen=True)
class Step:
    """One new token of each of ``batch`` sequences of ``keys`` tokens."""

    heads: int
    kv: int
    keys: int
    size: int = 128
    batch: int = 1

    def run(self, program: weft.Program, *cache: torch.Tensor, **options: object) -> Run:
        q = torch.zeros(self.batch, self.heads, 1, self.size, dtype=torch.float16)
        return counted(program, q, *cache, target="sm_80", backward=False, **options)["forward"]

    @property
    def lengths(self) -> torch.Tensor:
        return torch.full((self.batch,), self.keys, dtype=torch.int32)

    def contiguous(self, dtype: torch.dtype = torch.float16, **options: object) -> Run:
        k = torch.zeros(self.batch, self.kv, self.keys, self.size).to(dtype)
        return self.run(contiguous, k, k, self.lengths, **options)

    def pages(self, page: int, dtype: torch.dtype = torch.float16) -> tuple[torch.Tensor, ...]:
        count = -(-self.keys // page)
        pages = torch.zeros(self.batch * count, page, self.kv, self.size).to(dtype)
        table = torch.randperm(self.batch * count).reshape(self.batch, count).to(torch.int32)
        return pages, pages, table, self.lengths

    def in_pages(self, page: int, dtype: torch.dtype = torch.float16, **options: object) -> Run:
        return self.run(in_pages, *self.pages(page, dtype), **options)

    def of_scaled_pages(self, page: int, by_page: bool, **options: object) -> Run:
        pages = self.pages(page, torch.float8_e4m3fn)
        scale = torch.ones(pages[0].shape[0], self.kv) if by_page else torch.ones(self.kv)
        return self.run(of_scaled_pages, *pages, scale, scale, **options)

    def least_sectors(self, bytes_of_an_element: int = 2) -> int:
        """Sectors of all keys and values, each read once."""
        return self.batch * self.kv * self.keys * 2 * self.size * bytes_of_an_element // SECTOR_BYTES

    def least_products(self) -> int:
        """Multiply-adds where queries that share a key head fill rows of 16."""
        return self.batch * self.kv * -(-self.heads // self.kv // 16) * 16 * self.keys * 2 * self.size

    def cost(self, run: Run, bytes_of_an_element: int = 2) -> tuple[int, float, float]:
        """Blocks; multiply-adds and sectors of the cache over the least. Each block reads its queries."""
        attend = run.launches[0]
        queries = self.batch * self.heads * self.size * 2 // SECTOR_BYTES * attend.grid[0]
        macs, sectors = (attend.scale * attend.report.counters[name] for name in ("mma_macs", "global_sectors_read"))
        return (
            prod(attend.grid),
            macs / self.least_products(),
            (sectors - queries) / self.least_sectors(bytes_of_an_element),
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, value in (("batch", 1), ("heads", 32), ("key-heads", 8), ("keys", 4096), ("head", 128), ("sample", 16)):
        parser.add_argument(f"--{name}", type=int, default=value)
    given = parser.parse_args()
    step = Step(given.heads, given.key_heads, given.keys, given.head, given.batch)
    options = {"sample": given.sample, "counts_only": True}
    plain = step.contiguous(**options)
    blocks, macs, sectors = step.cost(plain)
    print(f"batch {step.batch}, heads {step.heads}/{step.kv}, keys {step.keys}, head {step.size}: {blocks} blocks")
    print(f"multiply-adds over 16-row tiles: {macs:.3f}")
    print(f"sectors of keys and values over the least: {sectors:.3f}")

    def line(what: str, run: Run) -> None:
        print(f"{what}: {run.scaled('warp_instructions') / plain.scaled('warp_instructions'):.3f} instructions")

    for page in PAGES:
        line(f"pages of {page}", step.in_pages(page, **options))
    line("contiguous, 8-bit floats", step.contiguous(torch.float8_e4m3fn, **options))
    line("pages of 16, 8-bit floats", step.in_pages(16, torch.float8_e4m3fn, **options))
    for by_page in (False, True):
        scales = "each page and head" if by_page else "each head"
        line(f"pages of 16, 8-bit floats with a scale of {scales}", step.of_scaled_pages(16, by_page, **options))


if __name__ == "__main__":
    main()
