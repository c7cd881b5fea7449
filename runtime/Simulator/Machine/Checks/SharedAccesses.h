// Part of Weft. SPDX-License-Identifier: Apache-2.0
// The race detector's short way: the accesses of one instruction, lane by lane, to what was written and read in order.
// Anything else goes the long way (Races.cpp), which knows what to report.
#pragma once

#include "runtime/Simulator/Machine/Checks/Access.h"

#include <algorithm>

namespace weft::simulator::machine {

/// What all lanes of an instruction share.
class SharedAccesses {
public:
  explicit SharedAccesses(Warp &warp)
      : warp_(warp), shadow_(warp.block->shadow), known_(shadow_.clocksOf(warp.index)),
        knownOfAll_(*std::min_element(known_, known_ + shadow_.warps())), now_(shadow_.now(warp.index)),
        pc_(warp.here()), first_(warp.index * laneCount) {}

protected:
  /// Whether a thread's access, stamped with a clock, is ordered before this instruction by what the warp knows; all
  /// that any warp did up to knownOfAll_ is.
  [[gnu::always_inline]] bool ordered(uint16_t thread, uint32_t clock) const {
    return clock <= knownOfAll_ || clock <= known_[thread / laneCount];
  }
  [[gnu::always_inline]] Granule *begin(uint32_t offset) const { return &shadow_.at(offset); }
  [[gnu::always_inline]] Granule *end(uint32_t offset, unsigned bytes) const {
    return &shadow_.at(offset + bytes - 1) + 1;
  }

  Warp &warp_;
  SharedShadow &shadow_;
  const uint32_t *known_; ///< a clock of each warp: what it did until then happened before
  const uint32_t knownOfAll_, now_, pc_, first_;
};

class SharedReads : SharedAccesses {
public:
  SharedReads(Warp &warp, bool atomic)
      : SharedAccesses(warp), atomic_(atomic), warpBit_(1u << (warp.index & 31)), meeting_(warp.meetings) {}

  /// True where the lane reads what nothing wrote.
  [[gnu::always_inline]] bool read(unsigned lane, uint32_t offset, unsigned bytes) {
    if (atomic_ || offset >> rankShift)
      return shadowRead(warp_, lane, offset, bytes, atomic_);
    const auto me = uint16_t(first_ + lane);
    for (Granule *g = begin(offset), *last = end(offset, bytes); g != last; ++g)
      if (!remember(*g, me)) // what is remembered already is no harm to remember again
        return shadowRead(warp_, lane, offset, bytes, false);
    return false;
  }

  /// The same of lanes that read one place: those that do.
  uint32_t readAlike(uint32_t mask, uint32_t offset, unsigned bytes) {
    uint32_t unwritten = 0, rest = mask;
    for (unsigned lanes = 0; rest; rest &= rest - 1, ++lanes) {
      // The third lane and those after it leave what the second left: that several lanes of the warp read.
      if (lanes == 2 && atomic_ && !(offset >> rankShift) && isOrdered(offset, bytes))
        return unwritten | (unwritten ? rest : 0);
      unwritten |= uint32_t(read(firstLane(rest), offset, bytes)) << firstLane(rest);
    }
    return unwritten;
  }

private:
  /// Whether no lane's atomic read is one to report.
  bool isOrdered(uint32_t offset, unsigned bytes) const {
    return std::all_of(begin(offset), end(offset, bytes), [&](const Granule &g) {
      return !(g.flags & (Granule::Pending | Granule::RemoteWrite)) &&
             (!g.writeClock || (g.flags & Granule::Atomic) || ordered(g.writeThread, g.writeClock));
    });
  }

  /// False, with nothing changed, where the long way is to be taken.
  [[gnu::always_inline]] bool remember(Granule &g, uint16_t me) {
    if (g.flags & (Granule::Pending | Granule::RemoteWrite | Granule::AtomicReads) || g.poisoned || !g.writeClock)
      return false;
    if (!ordered(g.writeThread, g.writeClock) && g.writeThread != me)
      return false;
    if (!g.read.warps || g.readUntil() <= knownOfAll_) { // all earlier reads happened before this one
      g.read.warps = warpBit_;
      g.read.clock = now_;
      g.read.pc = pc_;
      g.later = 0;
      g.read.thread = me;
      g.read.meeting = meeting_;
      if (g.flags & Granule::ReadByLanes)
        g.flags &= uint8_t(~Granule::ReadByLanes);
      return true;
    }
    if (g.read.clock != now_ || g.later)
      return false;
    g.read.meeting = meeting_;
    g.read.warps |= warpBit_;
    if (g.read.thread != me && g.read.thread / laneCount == warp_.index)
      g.flags |= Granule::ReadByLanes;
    return true;
  }

  const bool atomic_;
  const uint32_t warpBit_; ///< in Granule::Reads::warps
  const uint16_t meeting_;
};

/// Stores that are no atomics.
class SharedWrites : SharedAccesses {
public:
  using SharedAccesses::SharedAccesses;

  /// Before the bytes are written, lane by lane: those that come before the first which is to take the long way.
  uint32_t writeInOrder(uint32_t mask, const uint64_t *addresses, unsigned bytes) {
    uint32_t rest = mask;
    for (; rest; rest &= rest - 1) {
      const unsigned lane = firstLane(rest);
      const auto offset = uint32_t(addresses[lane] & windowOffsetMask);
      if (offset >> rankShift || !replace(uint16_t(first_ + lane), begin(offset), end(offset, bytes)))
        break;
    }
    return mask & ~rest;
  }

private:
  /// False where the long way is to be taken, which begins anew.
  [[gnu::always_inline]] bool replace(uint16_t me, Granule *first, Granule *last) {
    for (Granule *g = first; g != last; ++g)
      if (!mayReplace(*g, me))
        return false;
    // Member by member: a copy of a whole granule would wait for its parts to be written first.
    for (Granule *g = first; g != last; ++g) {
      g->writeClock = now_;
      g->writePc = pc_;
      g->writeThread = me;
      g->poisoned = 0;
      g->flags = 0;
      g->read.warps = 0;
    }
    return true;
  }

  /// Whether whatever was done to a granule is over.
  [[gnu::always_inline]] bool mayReplace(const Granule &g, uint16_t me) const {
    if (g.flags & ~Granule::ReadByLanes)
      return false;
    if (!ordered(g.writeThread, g.writeClock) && g.writeThread != me)
      return false;
    if (!g.read.warps || g.readUntil() <= knownOfAll_)
      return true;
    const bool own = g.read.thread == me && !(g.flags & Granule::ReadByLanes);
    for (uint32_t rest = g.read.warps; rest; rest &= rest - 1) {
      const auto reader = unsigned(__builtin_ctz(rest));
      if (known_[reader] < shadow_.readsOf(g, reader).last && !(own && reader == me / laneCount))
        return false;
    }
    return true;
  }
};

} // namespace weft::simulator::machine
