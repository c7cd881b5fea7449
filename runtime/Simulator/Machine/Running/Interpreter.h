// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Running blocks: turns of warps, barriers, deadlock. A block of two warps that meet at bar.sync:
//
//   warp 0's turn     runs to the barrier; its fragment waits, and the turn ends
//   warp 1's turn     runs to the barrier, which is complete: both fragments are ready, and warp 1 goes on
//   warp 0's turn     goes on behind the barrier
#pragma once

#include "runtime/Simulator/Machine/Running/Divergence.h"
#include "runtime/Simulator/Machine/State/Cluster.h"

namespace weft::simulator::machine {

/// Prepares the blocks of a cluster to run as cluster `index` of the grid on a worker.
void startCluster(Cluster &cluster, Worker &worker, uint64_t index);

enum class BlockState : uint8_t { Done, Running };

/// Gives every warp turns until the block is done, is stuck (reported, then aborted), has used up `turns` turns, or
/// does nothing but wait for other blocks.
BlockState runBlock(Block &block, uint64_t turns);

/// The same for each block of a cluster that has not ended.
BlockState runCluster(Cluster &cluster, uint64_t turns);

/// Reports lanes that spin for ever: nothing that they wait for can happen any more.
void reportSpinning(Block &block);

/// Stops a block at once.
void abortBlock(Block &block);

} // namespace weft::simulator::machine
