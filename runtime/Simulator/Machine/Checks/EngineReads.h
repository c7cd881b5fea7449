// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Shared memory that engines read: whether they may, and who writes to it while they do.
#pragma once

#include "runtime/Simulator/Machine/State/Engines.h"

#include <span>

namespace weft::simulator::machine {

/// Bytes of shared memory.
struct SharedRange {
  uint32_t begin = 0, bytes = 0;
};

/// An engine begins to read for a lane: races, copies under way, and writes that no fence.proxy.async made visible are
/// reported; from now on a write there is one too. True where nothing wrote some of the bytes.
bool beginEngineRead(Warp &warp, unsigned lane, std::span<const SharedRange> ranges);

/// It has read: what is written there must be ordered after what the lane does now.
void endEngineRead(Warp &warp, unsigned lane, std::span<const SharedRange> ranges);

/// Before a lane writes where a granule says that an engine may be reading.
void checkEngineReads(Warp &warp, unsigned lane, uint32_t offset, unsigned bytes);

/// fence.proxy.async by the lanes of `mask`.
void fenceProxy(Warp &warp, uint32_t mask);

/// A bulk copy into shared memory is issued: like a write, which is on its way from now on.
void beginEngineWrite(Warp &warp, unsigned lane, std::span<const BulkRun> runs);
/// It has arrived, as of the clock of an engine.
void endEngineWrite(Block &block, uint32_t engine, uint32_t pc, std::span<const BulkRun> runs);

} // namespace weft::simulator::machine
