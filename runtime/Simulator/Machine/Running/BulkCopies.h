// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Bulk copies (cp.async.bulk, PTX ISA 9.7.9.25.4) from their issue to their end. A load arrives when somebody waits for
// its mbarrier, a store reads when its group is awaited and writes when that is complete: the latest moments that a
// program can tell, or, where the seed has it so, at once.
#pragma once

#include "runtime/Simulator/Machine/State/Engines.h"

namespace weft::simulator::machine {

/// Engines of a block of `warps` warps, with nothing to do.
std::shared_ptr<Engines> makeEngines(const Block &block, uint64_t seed);

/// Starts a copy for a lane of the warp whose record runs, after checking what it moves.
void issueBulk(Warp &warp, BulkCopy copy);

/// Lets the loads arrive that complete on an mbarrier, now that somebody waits for it; true where any did.
bool landAtMbarrier(Block &block, uint32_t object);

/// Adds to what the current phase of an mbarrier of a block expects; misuse is reported for the lane.
void expectBytes(Warp &warp, Block &block, unsigned lane, uint32_t object, int64_t bytes);

/// A phase ends by arrivals while copies that none of them expects are on their way: reported.
void checkUnexpected(Warp &warp, Block &block, unsigned lane, uint32_t object);

/// A warp waits for a phase of an mbarrier that lasts, or that is over: counts how full the ring is then that copies
/// complete on.
void countWait(Warp &warp, uint32_t object, uint64_t phase);

/// cp.async.bulk.commit_group.
void commitBulk(Warp &warp, uint32_t mask);
/// cp.async.bulk.wait_group: all groups but the last `left`; with `reads` until they have read shared memory.
void awaitBulk(Warp &warp, uint32_t mask, uint32_t left, bool reads);

/// Whether the block has no other lanes.
bool endsBlock(const Warp &warp, uint32_t mask);

/// Lanes end: their stores end too, and what still reads the block's shared memory is reported.
void endBulk(Warp &warp, uint32_t mask);

} // namespace weft::simulator::machine
