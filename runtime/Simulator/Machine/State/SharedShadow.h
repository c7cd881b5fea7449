// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Who touched shared memory last: what finds races, reads of what nothing wrote, and copies that were not awaited.
//
// Order is by vector clocks over warps: an access is stamped (warp, clock of that warp); it happened before an access
// by warp w where w's clock vector has reached the stamp. A barrier joins the vectors of all that took part, then every
// participant's own clock advances. Lanes of one warp are ordered among themselves by the same rule, the warp's own
// entry advancing at barriers and where all lanes are at bar.warp.sync; where only some are, each of them remembers the
// others' clocks. The same lane is always ordered. What goes by atomics and fences is
// in Order.h.
#pragma once

#include "runtime/Simulator/Machine/State/Readers/ReaderSets.h"

#include <bit>
#include <cstdint>
#include <vector>

namespace weft::simulator::machine {

/// The last accesses to one granule of shared memory.
struct Granule {
  uint32_t writeClock = 0; ///< 0: never written
  uint32_t writePc = 0;
  uint16_t writeThread = 0; ///< warp * 32 + lane
  uint16_t poisoned = 0;    ///< bytes written with a value that nothing wrote
  uint8_t flags = 0;
  uint8_t writeRank = 0; ///< with RemoteWrite: the block of the cluster that writeThread is of
  uint16_t later = 0;    ///< of a single warp's reads: how many clocks the last came after `read.clock`; of several
                         ///< warps': the number of their ReaderSets, 0 where all read at `read.clock`

  /// The reads since the last write that are remembered. Without warps the others mean nothing.
  struct Reads {
    uint32_t warps = 0; ///< whose reads are remembered, none of which is before those of all others
    uint32_t clock = 0; ///< of a single warp the earliest, of several the latest
    uint32_t pc = 0;
    uint16_t thread = 0;
    uint16_t meeting = 0; ///< Warp::meetings of the reader when it read
  };
  Reads read;
  bool hasOneReader() const { return std::has_single_bit(read.warps); }
  /// No reader read later.
  uint32_t readUntil() const { return hasOneReader() ? read.clock + later : read.clock; }

  enum : uint8_t {
    ReadByLanes = 1,   ///< several lanes read it
    RemoteReads = 2,   ///< other blocks of the cluster read it, see Block::remoteReads
    Pending = 4,       ///< a cp.async or a bulk copy by writeThread is on its way here
    Atomic = 8,        ///< the last write was an atomic
    EngineReads = 16,  ///< an engine may be reading it, see inFlight of EngineReads.h
    AtomicReads = 32,  ///< all reads since the last write were atomic
    Swapped = 64,      ///< the last write was a compare-and-swap
    RemoteWrite = 128, ///< the last write was by another block of the cluster
  };
};

/// Shadow of one block's shared memory, and the clocks of its warps.
class SharedShadow {
public:
  /// Forgets everything: `bytes` of memory in granules of 2^shift bytes, accessed by `warps` warps.
  void reset(uint32_t bytes, unsigned shift, uint32_t warps);

  unsigned shift() const { return shift_; }
  Granule &at(uint32_t byte) { return granules_[byte >> shift_]; }
  uint32_t indexOf(const Granule &granule) const { return uint32_t(&granule - granules_.data()); }

  /// What a reader of a granule did, by the number of its bit.
  WarpReads readsOf(const Granule &g, uint32_t reader) const {
    if (g.hasOneReader() || !g.later)
      return {g.read.clock, g.readUntil()};
    return sets_.of(g.later, reader);
  }
  /// How often the numbers of ReaderSets have changed.
  uint32_t renumbered() const { return renumbered_; }
  /// Remembers one more read of a granule that has readers.
  void addReader(Granule &g, uint32_t warp, uint32_t clock);

  uint32_t warps() const { return warps_; }
  /// The clock that accesses of a warp are stamped with now.
  uint32_t now(uint32_t warp) const { return own_[warp]; }
  /// Later accesses of a warp get another stamp, its lanes not being ordered by that.
  void advance(uint32_t warp) { ++own_[warp]; }
  /// Whether an access stamped (owner, clock) happened before everything `warp` does now.
  bool ordered(uint32_t warp, uint32_t owner, uint32_t clock) const { return clocks_[warp * warps_ + owner] >= clock; }
  const uint32_t *clocksOf(uint32_t warp) const { return &clocks_[warp * warps_]; }

  /// The stamp of what an engine does now for a warp, no earlier than the warp's own; the next is later.
  uint32_t stamp(uint32_t engine, uint32_t warp) {
    own_[engine] = own_[engine] < own_[warp] ? own_[warp] : own_[engine];
    return own_[engine]++;
  }
  /// What `owner` did up to its clock `clock` happened before what `warp` does from now on.
  void know(uint32_t warp, uint32_t owner, uint32_t clock) {
    uint32_t &known = clocks_[warp * warps_ + owner];
    known = known < clock ? clock : known;
  }

  /// All lanes of a warp met.
  void syncWarp(uint32_t warp) { clocks_[warp * warps_ + warp] = own_[warp]++; }
  /// Some of them did.
  void syncLanes(uint32_t warp, uint32_t mask);
  /// Whether an access of lane `other`, stamped with a clock of the warp, happened before what `lane` does now. Of a
  /// lane with itself: whether it has met any lanes since.
  bool lanesOrdered(uint32_t warp, unsigned lane, unsigned other, uint32_t clock) const {
    return ordered(warp, warp, clock) || (!lanes_[warp].empty() && lanes_[warp][lane * 32 + other] >= clock);
  }
  /// What `warp` has done so far is handed to `joined`, a clock per warp (empty at first).
  void release(uint32_t warp, std::vector<uint32_t> &joined);
  /// All that was handed to `joined` happened before what `warp` does from now on. `stamp` is its own new clock, at
  /// least now(warp): participants of one barrier take one stamp, so that reads by several of them share it.
  void acquire(uint32_t warp, const std::vector<uint32_t> &joined, uint32_t stamp);

private:
  void addToSet(Granule &g, uint32_t reader, uint32_t clock);
  uint16_t setOf(const Granule &g);
  void keepUsedSets();

  unsigned shift_ = 2;
  uint32_t warps_ = 0;
  std::vector<Granule> granules_;
  ReaderSets sets_; ///< that granules have
  uint32_t renumbered_ = 0;
  std::vector<uint32_t> clocks_;             ///< warps x warps
  std::vector<uint32_t> own_;                ///< each warp's stamp
  std::vector<std::vector<uint32_t>> lanes_; ///< per warp, what each lane knows of each; empty until some meet
};

} // namespace weft::simulator::machine
