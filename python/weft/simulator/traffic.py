# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""What a launch moves between the multiprocessors, the L2 cache and memory, and how long that takes a GPU at least.

Multiprocessors ask the L2 cache for sectors of 32 bytes. Of those that a launch touches, memory gives each once and
takes each once, where the cache holds all of them: what is asked for again, the cache has. Where it does not hold them,
nothing is known of which it has still, and all that is asked for counts as memory's: a launch that reads a large tensor
in several passes is not told apart from one whose blocks run side by side where they share.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from weft.targets import Gpu

SECTOR_BYTES = 32
_ADDITION = 3.6  # reads of a sector that keep the L2 cache as busy as an atomic change of it: docs/Benchmarks.md, H100


@dataclass(frozen=True)
class Touched:
    """Sectors of one allocation, each counted once, however often it was asked for."""

    sectors: int
    """all of the allocation's"""
    read: int
    written: int


def touched_bytes(allocations: Iterable[Touched], times: float = 1.0) -> float:
    """Bytes that memory gives and takes where a cache holds them all. Of a launch of which some blocks ran, all are
    ``times`` as many: they touch so many times the sectors, or all that there are."""
    each = (min(count * times, one.sectors) for one in allocations for count in (one.read, one.written))
    return SECTOR_BYTES * sum(each)


def l2_seconds(sectors: float, added: float, gpu: Gpu) -> float:
    """Seconds that the L2 cache is busy with so many sectors, of which atomics and bulk reductions change ``added``."""
    return SECTOR_BYTES * (sectors + (_ADDITION - 1) * added) / (gpu.l2_bytes_per_clock * gpu.clock * 1e9)


@dataclass(frozen=True)
class Traffic:
    """What a launch asks for and what of memory it touches."""

    sectors: float
    """that multiprocessors ask the L2 cache for, each as often as it is asked for"""
    added: float
    """of them, those that atomics and bulk reductions change"""
    once: float
    """bytes of memory read, and bytes written, each once"""
    held: float
    """bytes that the cache must hold so that memory moves no more: of blocks that share nothing with others, theirs"""

    def l2_seconds(self, gpu: Gpu) -> float:
        """How long the L2 cache is busy."""
        return l2_seconds(self.sectors, self.added, gpu)

    def memory_bytes(self, gpu: Gpu) -> float:
        """Bytes between the L2 cache and memory, which gives what is changed in place, and takes it."""
        asked = SECTOR_BYTES * (self.sectors + self.added)
        return min(asked, self.once) if self.held <= gpu.l2_bytes else asked

    def memory_seconds(self, gpu: Gpu) -> float:
        """How long memory is busy."""
        return self.memory_bytes(gpu) / (gpu.memory_bandwidth * 1e9)
