// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Shared memory that engines read: whether they may, and who writes to it while they do.
#pragma once

#include "runtime/Simulator/Machine/State/Engines.h"

#include <span>

namespace weft::simulator::machine {

/// An engine begins to read for a lane: races, copies under way, and writes that no fence.proxy.async made visible are
/// reported; from now on a write there is one too. True where nothing wrote some of the bytes. `pieces` are of 16 bytes.
bool beginEngineRead(Warp &warp, unsigned lane, std::span<const SharedRange> ranges);
bool beginEngineRead(Warp &warp, unsigned lane, std::span<const uint32_t> pieces);

/// It has read: what is written there must be ordered after what the lane does now.
void endEngineRead(Warp &warp, unsigned lane, std::span<const SharedRange> ranges);
/// A product issued at `pc` has read, as of a clock of `reader`, which is an engine's.
void endEngineRead(Warp &warp, std::span<const uint32_t> pieces, uint32_t reader, uint32_t clock, uint32_t pc);

/// An engine of another block has read for a copy into that block's shared memory, as of its clock.
void endRemoteEngineRead(Block &block, const RemoteAccess &reader, std::span<const SharedRange> ranges);

/// Before a lane writes to shared memory of a block of its cluster where a granule says that an engine may be reading.
void checkEngineReads(Warp &warp, unsigned lane, const Block &target, uint32_t offset, unsigned bytes);

/// The same for a write, granule by granule: where the first one says so, all of its bytes are looked at, once.
class EngineReadsOfWrite {
public:
  explicit EngineReadsOfWrite(const Checks &checks) : open_(checks.async) {}
  void check(const Granule &g, Warp &warp, unsigned lane, const Block &target, uint32_t offset, unsigned bytes) {
    if (!open_ || !(g.flags & Granule::EngineReads))
      return;
    open_ = false;
    checkEngineReads(warp, lane, target, offset, bytes);
  }

private:
  bool open_;
};

/// fence.proxy.async by the lanes of `mask`.
void fenceProxy(Warp &warp, uint32_t mask);

/// An engine is to write for a lane where threads wrote without a fence between: an advisory, since widely used code
/// rests on barriers.
void adviseFence(Warp &warp, unsigned lane, const BulkRun &run);

/// Whether no engine may still read a range, as far as a warp knows.
bool areEnginesDone(const Warp &warp, const Block &block, SharedRange range);

} // namespace weft::simulator::machine
