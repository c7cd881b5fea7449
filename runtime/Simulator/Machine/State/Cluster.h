// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Blocks that run together and reach into each other's shared memory (PTX ISA 2.2.3, "Cooperative Thread Arrays in
// Clusters"). An address of shared memory names its block by its rank:
//
//   bits 24-31  0: the block of the thread that uses it; else the rank of a block in the cluster, plus 1: what mapa gives
//   bits  0-23  the byte of that block's shared memory
#pragma once

#include "runtime/Simulator/Machine/State/Warp.h"

namespace weft::simulator::machine {

inline constexpr unsigned rankShift = 24;
inline constexpr uint32_t rankOffsetMask = (1u << rankShift) - 1;
/// Blocks of a cluster at most, where the launch asks for more than are portable.
inline constexpr uint32_t mostRanks = 16;

/// The address of a byte of a block's shared memory in its cluster.
inline uint32_t clusterAddress(const Block &block, uint32_t offset) { return (block.rank + 1) << rankShift | offset; }

struct Cluster {
  std::vector<std::unique_ptr<Block>> blocks; ///< by rank
  uint32_t arrived = 0;                       ///< threads at barrier.cluster, in this phase
  uint32_t firstPc = 0;                       ///< where the first of them is
  std::vector<Moment> joined;                 ///< what they released, by rank
  Moment released = 0;                        ///< what those of the last complete phase did

  /// The rank of a block of the grid, or -1 where it is of another cluster.
  int rankOf(uint64_t index) const {
    for (const auto &block : blocks)
      if (block->index == index)
        return int(block->rank);
    return -1;
  }
};

/// The block that a shared address means; null where the cluster has none of that rank.
inline Block *blockAt(const Warp &warp, uint32_t address) {
  const uint32_t rank = address >> rankShift;
  if (!rank)
    return warp.block;
  const auto &blocks = warp.block->cluster->blocks;
  return rank <= blocks.size() ? blocks[rank - 1].get() : nullptr;
}

} // namespace weft::simulator::machine
