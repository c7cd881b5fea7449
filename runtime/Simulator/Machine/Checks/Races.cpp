// Part of Weft. SPDX-License-Identifier: Apache-2.0
// The race detector: what each access to shared memory is compared with.
#include "runtime/Simulator/Machine/Checks/Access.h"
#include "runtime/Simulator/Machine/Checks/EngineReads.h"
#include "runtime/Simulator/Machine/Checks/Remote.h"
#include "runtime/Support/Format.h"

#include <algorithm>

namespace weft::simulator::machine {
namespace {

std::string otherSide(const Warp &warp, const char *did, uint16_t thread, uint32_t pc) {
  if (isEngine(*warp.block, thread))
    return format("{} {} it", engineName(warp, pc), did);
  return format("warp {}, lane {} {} it at {}", thread / laneCount, thread % laneCount, did, siteName(warp, pc));
}

/// The other side of a conflict with a granule's last write.
std::string writer(const Warp &warp, const char *did, const Granule &g) {
  return g.flags & Granule::RemoteWrite ? remoteSide(warp, did, g.writeRank, g.writeThread, g.writePc)
                                        : otherSide(warp, did, g.writeThread, g.writePc);
}

/// Whether the last writes of granules are ordered before what a lane does now; of neighbours that one access wrote,
/// the first is asked about.
class LastWrites {
public:
  LastWrites(const Warp &warp, unsigned lane)
      : warp_(warp), lane_(lane), clocks_(warp.block->shadow.clocksOf(warp.index)) {}
  [[gnu::always_inline]] bool ordered(const Granule &g) {
    if (g.flags & Granule::RemoteWrite)
      return writeOrdered(warp_, lane_, *warp_.block, g);
    return clocks_[g.writeThread / laneCount] >= g.writeClock || isKnown(g);
  }

private:
  /// By what the lanes of one warp, or blocks, know of one another.
  bool isKnown(const Granule &g) {
    if (g.writeThread == thread_ && g.writeClock == clock_)
      return true;
    if (!happenedBefore(warp_, lane_, g.writeThread / laneCount, g.writeThread % laneCount, g.writeClock))
      return false;
    thread_ = g.writeThread;
    clock_ = g.writeClock;
    return true;
  }

  const Warp &warp_;
  unsigned lane_;
  const uint32_t *clocks_; ///< of the block's warps that this one knows
  uint32_t thread_ = ~0u, clock_ = 0;
};

std::string place(uint32_t offset, unsigned bytes) {
  return format("{} bytes at byte {} of shared memory", bytes, offset);
}

std::string copyName(const Warp &warp, uint32_t pc) {
  const auto &modifiers = warp.kernel->sites[pc].instruction->modifiers;
  return std::find(modifiers.begin(), modifiers.end(), "bulk") != modifiers.end() ? "a bulk copy" : "a cp.async";
}

/// One of the readers of a granule, a warp of the block: the lane that is remembered, if it is of that warp and not the
/// one that complains.
std::string readerOf(const Warp &warp, const Granule &g, uint32_t reader, uint16_t me) {
  if (isEngine(*warp.block, reader * laneCount))
    return engineName(warp, g.read.pc) + " read it";
  if (g.read.thread / laneCount != reader)
    return format("warp {} read it too", reader);
  if (g.read.thread == me)
    return format("other lanes of warp {} read it too", reader);
  return otherSide(warp, "read", g.read.thread, g.read.pc);
}

/// Reports a write that is not ordered after reads by the block itself.
[[gnu::noinline]] void checkOwnReaders(Warp &warp, unsigned lane, uint32_t offset, unsigned bytes, const Granule &g) {
  const SharedShadow &shadow = warp.block->shadow;
  const uint32_t *known = shadow.clocksOf(warp.index);
  const auto me = uint16_t(warp.index * laneCount + lane);
  auto complain = [&](std::string other, bool met) {
    report(warp, FindingKind::SharedRace, lane,
           "writes " + place(offset, bytes) + ", and no barrier orders that after a read", std::move(other), met);
  };
  for (uint32_t rest = g.read.warps; rest; rest &= rest - 1) {
    const auto reader = uint32_t(__builtin_ctz(rest));
    const WarpReads reads = shadow.readsOf(g, reader);
    const bool another = reader != warp.index || (g.read.thread / laneCount == warp.index &&
                                                  (g.read.thread != me || (g.flags & Granule::ReadByLanes)));
    // The lanes have met since at a shuffle or a vote, which widely used code takes for the end of their reads.
    const bool met = reader == warp.index && g.read.meeting != warp.meetings;
    if (another && known[reader] < reads.first &&
        !happenedBefore(warp, lane, reader, g.read.thread % laneCount, reads.first))
      return complain(readerOf(warp, g, reader, me), met);
    if (reader != warp.index && known[reader] < reads.last && !happenedBefore(warp, reader, reads.last))
      return complain(format("warp {} read it again after the read that is ordered", reader), false);
  }
}

bool readersOrdered(const Warp &warp, const Granule &g) {
  for (uint32_t rest = g.read.warps; rest; rest &= rest - 1) {
    const auto reader = uint32_t(__builtin_ctz(rest));
    if (!happenedBefore(warp, reader, warp.block->shadow.readsOf(g, reader).last))
      return false;
  }
  return true;
}

/// A write comes after reads by other blocks of the cluster, or is reported.
void endRemoteReads(Warp &warp, unsigned lane, uint32_t offset, unsigned bytes, const Granule &g, bool atomic) {
  const RemoteAccess *read = unorderedRemoteRead(warp, *warp.block, g, atomic);
  if (read && warp.block->grid->options.checks.races)
    report(warp, FindingKind::SharedRace, lane,
           "writes " + place(offset, bytes) + ", and no barrier of the cluster orders that after a read",
           remoteSide(warp, "read", read->rank, read->warp * laneCount + read->lane, read->pc));
  warp.block->remoteReads.erase(warp.block->shadow.indexOf(g));
}

} // namespace

bool shadowRead(Warp &warp, unsigned lane, uint32_t offset, unsigned bytes, bool atomic) {
  if (offset >> rankShift) {
    Block &target = *blockAt(warp, offset);
    offset &= rankOffsetMask;
    if (&target != warp.block)
      return shadowReadRemote(warp, lane, target, offset, bytes, atomic);
  }
  SharedShadow &shadow = warp.block->shadow;
  const Checks &checks = warp.block->grid->options.checks;
  const auto me = uint16_t(warp.index * laneCount + lane);
  const uint32_t now = shadow.now(warp.index), pc = warp.here();
  bool unwritten = false;
  LastWrites lastWrites(warp, lane);
  Granule *g = &shadow.at(offset), *end = &shadow.at(offset + bytes - 1) + 1;
  for (; g != end; ++g) {
    unwritten |= (g->writeClock == 0 && !(g->flags & Granule::Pending)) || g->poisoned;
    if (g->flags & Granule::Pending) {
      if (checks.async)
        report(warp, FindingKind::AsyncUnwaited, lane,
               "reads " + place(offset, bytes) + ", which " + copyName(warp, g->writePc) + " may still write",
               writer(warp, "copies to", *g));
    } else if (checks.races && g->writeClock && (g->writeThread != me || (g->flags & Granule::RemoteWrite)) &&
               !(g->flags & (atomic ? Granule::Atomic : Granule::Swapped)) && !lastWrites.ordered(*g)) {
      const bool copied = !(g->flags & Granule::RemoteWrite) && isEngine(*warp.block, g->writeThread);
      report(warp, copied ? FindingKind::AsyncUnwaited : FindingKind::SharedRace, lane,
             "reads " + place(offset, bytes) +
                 (copied ? ", which a bulk copy writes whose mbarrier it has not waited for"
                         : ", and no barrier orders that after a write"),
             writer(warp, "wrote", *g));
    }
    g->read.meeting = warp.meetings;
    // Atomic reads are merged: whether one comes after another matters to nobody.
    const bool merged = atomic && (g->flags & Granule::AtomicReads);
    const bool first = g->read.warps == 0 || (g->read.clock != now && !merged && readersOrdered(warp, *g));
    if (!atomic)
      g->flags &= uint8_t(~Granule::AtomicReads);
    else if (first)
      g->flags |= Granule::AtomicReads;
    if (first) {
      g->read.warps = 1u << (warp.index & 31);
      g->read.thread = me;
      g->read.clock = now;
      g->read.pc = pc;
      g->later = 0;
      g->flags &= uint8_t(~Granule::ReadByLanes);
    } else {
      if (g->read.thread != me && g->read.thread / laneCount == warp.index)
        g->flags |= Granule::ReadByLanes;
      shadow.addReader(*g, warp.index, now);
    }
  }
  return unwritten && checks.uninitialised;
}

void shadowWrite(Warp &warp, unsigned lane, uint32_t offset, unsigned bytes, const std::byte *value, bool atomic) {
  if (offset >> rankShift) {
    Block &target = *blockAt(warp, offset);
    offset &= rankOffsetMask;
    if (&target != warp.block)
      return shadowWriteRemote(warp, lane, target, offset, bytes, value, atomic);
  }
  SharedShadow &shadow = warp.block->shadow;
  const Checks &checks = warp.block->grid->options.checks;
  const auto me = uint16_t(warp.index * laneCount + lane);
  const uint32_t now = shadow.now(warp.index), pc = warp.here();
  const bool swap = atomic && (warp.kernel->code[pc].order & orderSwap);
  LastWrites lastWrites(warp, lane);
  EngineReadsOfWrite engineReads(checks);
  Granule *g = &shadow.at(offset), *end = &shadow.at(offset + bytes - 1) + 1;
  for (; g != end; ++g) {
    engineReads.check(*g, warp, lane, *warp.block, offset, bytes);
    if ((g->flags & Granule::Pending) && !(atomic && (g->flags & Granule::Atomic)) && checks.async)
      report(warp, FindingKind::AsyncOverwrite, lane,
             "writes " + place(offset, bytes) + ", to which " + copyName(warp, g->writePc) + " is on its way",
             writer(warp, "copies to", *g));
    if (checks.races) {
      if (g->writeClock && (g->writeThread != me || (g->flags & Granule::RemoteWrite)) &&
          !(g->flags & Granule::Pending) && !(atomic && (g->flags & Granule::Atomic)) && !lastWrites.ordered(*g)) {
        bool same = value && std::memcmp(warp.block->shared.data() + offset, value, bytes) == 0;
        report(warp, FindingKind::SharedRace, lane,
               "writes " + place(offset, bytes) +
                   (same ? ", the same value as another thread that nothing orders it with"
                         : ", and no barrier orders that after another write"),
               writer(warp, "wrote", *g), same);
      }
      // A weak read before a compare-and-swap only guesses what it will find.
      const bool harmless = swap || (atomic && (g->flags & Granule::AtomicReads));
      if (g->read.warps && !harmless)
        checkOwnReaders(warp, lane, offset, bytes, *g);
    }
    if (g->flags & Granule::RemoteReads)
      endRemoteReads(warp, lane, offset, bytes, *g, atomic);
    g->writeClock = now;
    g->writePc = pc;
    g->writeThread = me;
    g->read.warps = 0;
    g->poisoned = 0;
    g->flags = uint8_t((atomic ? Granule::Atomic : 0) | (swap ? Granule::Swapped : 0));
  }
}

} // namespace weft::simulator::machine
