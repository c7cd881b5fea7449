// Part of Weft. SPDX-License-Identifier: Apache-2.0
// A block's tensor memory, and its pair's.
#pragma once

#include "runtime/Simulator/Machine/State/Cluster.h"
#include "runtime/Simulator/Machine/State/Engines.h"
#include "runtime/Simulator/Machine/State/Tensor/TensorMemory.h"

namespace weft::simulator::machine {

/// Of a block whose kernel has tcgen05.
inline TensorMemory &tensorOf(const Block &block) { return *block.engines->tensor; }

/// The other block of a pair: its rank in the cluster differs in the last bit (PTX ISA 9.7.16.5.1). Null without one.
inline Block *peerOf(const Block &block) {
  const auto &blocks = block.cluster->blocks;
  const uint32_t rank = block.rank ^ 1;
  return rank < blocks.size() ? blocks[rank].get() : nullptr;
}

/// The blocks of a pair, the even one first; or the one block that has no other.
class PairOf {
public:
  explicit PairOf(const Block &block) {
    Block *own = block.cluster->blocks[block.rank].get(), *peer = peerOf(block);
    count_ = peer ? 2 : 1;
    blocks_[0] = block.rank % 2 && peer ? peer : own;
    blocks_[1] = block.rank % 2 ? own : peer;
  }
  Block *const *begin() const { return blocks_; }
  Block *const *end() const { return blocks_ + count_; }

private:
  Block *blocks_[2] = {};
  size_t count_ = 1;
};
inline PairOf pairOf(const Block &block) { return PairOf(block); }

} // namespace weft::simulator::machine
