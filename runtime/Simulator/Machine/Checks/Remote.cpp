// Part of Weft. SPDX-License-Identifier: Apache-2.0
#include "runtime/Simulator/Machine/Checks/Remote.h"
#include "runtime/Simulator/Machine/Checks/Access.h"
#include "runtime/Simulator/Machine/Checks/EngineReads.h"
#include "runtime/Support/Format.h"

#include <algorithm>

namespace weft::simulator::machine {
namespace {

const Block &blockOf(const Warp &warp, uint32_t rank) { return *warp.block->cluster->blocks[rank]; }

std::string place(uint32_t offset, unsigned bytes, const Block &target) {
  return format("{} bytes at byte {} of the shared memory of block rank {} of its cluster", bytes, offset, target.rank);
}

uint16_t threadOf(const Warp &warp, unsigned lane) { return uint16_t(warp.index * laneCount + lane); }

bool ordered(const Warp &warp, const RemoteAccess &access) {
  return (access.rank == warp.block->rank && access.warp == warp.index) ||
         happenedBefore(warp, uint32_t(blockOf(warp, access.rank).index), access.warp, access.clock);
}

template <typename Visit> void eachGranule(Block &target, uint32_t offset, unsigned bytes, Visit visit) {
  for (Granule *g = &target.shadow.at(offset), *end = &target.shadow.at(offset + bytes - 1) + 1; g != end; ++g)
    visit(*g);
}

/// The other side of a conflict with a granule's last write.
std::string writer(const Warp &warp, const Block &target, const Granule &g) {
  const uint32_t rank = g.flags & Granule::RemoteWrite ? g.writeRank : target.rank;
  return remoteSide(warp, "wrote", rank, g.writeThread, g.writePc);
}

void reportWriteConflict(Warp &warp, unsigned lane, Block &target, uint32_t offset, unsigned bytes, const Granule &g,
                         const std::byte *value) {
  const bool same = value && std::memcmp(target.shared.data() + offset, value, bytes) == 0;
  report(warp, FindingKind::SharedRace, lane,
         "writes " + place(offset, bytes, target) +
             (same ? ", the same value as another thread that nothing orders it with"
                   : ", and no barrier of the cluster orders that after another write"),
         writer(warp, target, g), same);
}

/// Reads that a write is not ordered after: those of the block itself, and of others.
void checkReaders(Warp &warp, unsigned lane, Block &target, uint32_t offset, unsigned bytes, const Granule &g,
                  bool atomic) {
  if (atomic && (g.flags & Granule::AtomicReads))
    return;
  auto complain = [&](std::string other) {
    report(warp, FindingKind::SharedRace, lane,
           "writes " + place(offset, bytes, target) + ", and no barrier of the cluster orders that after a read",
           std::move(other));
  };
  for (uint32_t rest = g.read.warps; rest; rest &= rest - 1) {
    const auto reader = uint32_t(__builtin_ctz(rest));
    if (!happenedBefore(warp, uint32_t(target.index), reader, target.shadow.readsOf(g, reader).last))
      return complain(remoteSide(warp, "read", target.rank, g.read.thread, g.read.pc));
  }
  if (const RemoteAccess *read = unorderedRemoteRead(warp, target, g, atomic))
    complain(remoteSide(warp, "read", read->rank, read->warp * laneCount + read->lane, read->pc));
}

} // namespace

std::string remoteSide(const Warp &warp, const char *did, uint32_t rank, uint32_t thread, uint32_t pc) {
  if (const Block &block = blockOf(warp, rank); isEngine(block, thread))
    return format("{} {} it", engineName(warp, pc), did);
  return format("warp {}, lane {} of block rank {} {} it at {}", thread / laneCount, thread % laneCount, rank, did,
                siteName(warp, pc));
}

bool mayReach(Warp &warp, unsigned lane, Block *target, uint32_t address, const char *what, bool copies) {
  if (!target) {
    report(warp, FindingKind::OutOfBounds, lane,
           format("{} shared memory of block rank {} of a cluster of {} blocks", what, (address >> rankShift) - 1,
                  warp.block->cluster->blocks.size()));
    return false;
  }
  if (target == warp.block)
    return true;
  const Checks &checks = warp.block->grid->options.checks;
  if (!target->liveWarps) {
    report(warp, FindingKind::SharedRace, lane,
           format("{} shared memory of block rank {} of its cluster, which has ended (dsmem-after-exit)", what,
                  target->rank));
    return false;
  }
  if (!checks.races)
    return true;
  if (!(warp.metRanks >> target->rank & 1)) {
    if (warp.block->grid->order.meets(warp.order.known, uint32_t(target->index)))
      warp.metRanks |= 1u << target->rank;
    else
      report(warp, FindingKind::SharedRace, lane,
             format("{} shared memory of block rank {} of its cluster, which may not have begun: no barrier.cluster "
                    "lies before that",
                    what, target->rank));
  }
  if (!copies)
    target->lastRemote[warp.block->rank << 8 | warp.index] = {warp.block->rank, warp.index, lane,
                                                              warp.block->shadow.now(warp.index), warp.here()};
  return true;
}

bool writeOrdered(const Warp &warp, unsigned lane, const Block &block, const Granule &g) {
  const Block &writer = g.flags & Granule::RemoteWrite ? blockOf(warp, g.writeRank) : block;
  if (&writer == warp.block)
    return g.writeThread == threadOf(warp, lane) ||
           happenedBefore(warp, lane, g.writeThread / laneCount, g.writeThread % laneCount, g.writeClock);
  return happenedBefore(warp, uint32_t(writer.index), g.writeThread / laneCount, g.writeClock);
}

const RemoteAccess *unorderedRemoteRead(const Warp &warp, const Block &block, const Granule &g, bool atomic) {
  if (!(g.flags & Granule::RemoteReads))
    return nullptr;
  auto found = block.remoteReads.find(block.shadow.indexOf(g));
  if (found != block.remoteReads.end())
    for (const RemoteAccess &read : found->second)
      if (!(atomic && read.atomic) && !ordered(warp, read))
        return &read;
  return nullptr;
}

bool shadowReadRemote(Warp &warp, unsigned lane, Block &target, uint32_t offset, unsigned bytes, bool atomic) {
  const Checks &checks = warp.block->grid->options.checks;
  bool unwritten = false;
  eachGranule(target, offset, bytes, [&](Granule &g) {
    unwritten |= (g.writeClock == 0 && !(g.flags & Granule::Pending)) || g.poisoned;
    if (g.flags & Granule::Pending) {
      if (checks.async)
        report(warp, FindingKind::AsyncUnwaited, lane,
               "reads " + place(offset, bytes, target) + ", which a copy may still write", writer(warp, target, g));
    } else if (checks.races && g.writeClock && !(g.flags & (atomic ? Granule::Atomic : Granule::Swapped)) &&
               !writeOrdered(warp, lane, target, g)) {
      report(warp, FindingKind::SharedRace, lane,
             "reads " + place(offset, bytes, target) + ", and no barrier of the cluster orders that after a write",
             writer(warp, target, g));
    }
    auto &reads = target.remoteReads[target.shadow.indexOf(g)];
    const RemoteAccess now{warp.block->rank, warp.index, lane, warp.block->shadow.now(warp.index), warp.here(), atomic};
    auto mine = std::find_if(reads.begin(), reads.end(), [&](const RemoteAccess &read) {
      return read.rank == now.rank && read.warp == now.warp && read.atomic == atomic;
    });
    if (mine == reads.end())
      reads.push_back(now);
    else
      *mine = now;
    g.flags |= Granule::RemoteReads;
  });
  return unwritten && checks.uninitialised;
}

void shadowWriteRemote(Warp &warp, unsigned lane, Block &target, uint32_t offset, unsigned bytes,
                       const std::byte *value, bool atomic) {
  const Checks &checks = warp.block->grid->options.checks;
  const bool swap = atomic && (warp.kernel->code[warp.here()].order & orderSwap);
  EngineReadsOfWrite engineReads(checks);
  eachGranule(target, offset, bytes, [&](Granule &g) {
    engineReads.check(g, warp, lane, target, offset, bytes);
    const bool bothAtomic = atomic && (g.flags & Granule::Atomic);
    if ((g.flags & Granule::Pending) && !bothAtomic && checks.async)
      report(warp, FindingKind::AsyncOverwrite, lane,
             "writes " + place(offset, bytes, target) + ", to which a copy is on its way", writer(warp, target, g));
    if (checks.races) {
      if (g.writeClock && !(g.flags & Granule::Pending) && !bothAtomic && !writeOrdered(warp, lane, target, g))
        reportWriteConflict(warp, lane, target, offset, bytes, g, value);
      if (!swap)
        checkReaders(warp, lane, target, offset, bytes, g, atomic);
    }
    if (g.flags & Granule::RemoteReads)
      target.remoteReads.erase(target.shadow.indexOf(g));
    g.writeClock = warp.block->shadow.now(warp.index);
    g.writePc = warp.here();
    g.writeThread = threadOf(warp, lane);
    g.writeRank = uint8_t(warp.block->rank);
    g.read.warps = 0;
    g.poisoned = 0;
    g.flags = uint8_t(Granule::RemoteWrite | (atomic ? Granule::Atomic : 0) | (swap ? Granule::Swapped : 0));
  });
}

void checkLastAccesses(Warp &warp) {
  Block &block = *warp.block;
  if (!block.grid->options.checks.races)
    return;
  for (const auto &[key, access] : block.lastRemote) {
    const auto index = uint32_t(blockOf(warp, access.rank).index);
    // Shared memory stays until the last thread ends: one that knows of the access will do.
    const bool known = std::any_of(block.warps.begin(), block.warps.end(), [&](const Warp &any) {
      return happenedBefore(any, index, access.warp, access.clock);
    });
    if (known)
      continue;
    report(
        warp, FindingKind::SharedRace, firstLane(warp.mask ? warp.mask : 1u),
        format("ends the block while block rank {} of its cluster may still access its shared memory "
               "(dsmem-after-exit): no barrier.cluster and no arrival at an mbarrier of this block orders that before",
               access.rank),
        remoteSide(warp, "accesses", access.rank, access.warp * laneCount + access.lane, access.pc));
    return;
  }
}

} // namespace weft::simulator::machine
