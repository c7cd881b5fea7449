// Part of Weft. SPDX-License-Identifier: Apache-2.0
#include "runtime/Simulator/Machine/Running/BulkCopies.h"
#include "runtime/Simulator/Machine/Checks/Access.h"
#include "runtime/Simulator/Machine/Checks/EngineReads.h"
#include "runtime/Simulator/Machine/Checks/EngineWrites.h"
#include "runtime/Simulator/Machine/Checks/GlobalProxy.h"
#include "runtime/Simulator/Machine/Checks/GlobalRaces.h"
#include "runtime/Simulator/Machine/Checks/Remote.h"
#include "runtime/Simulator/Machine/Running/Mbarriers.h"
#include "runtime/Simulator/Machine/State/Tensor/TensorMemory.h"
#include "runtime/Support/Format.h"

#include <algorithm>
#include <bit>
#include <mutex>
#include <utility>

namespace weft::simulator::machine {
namespace {

constexpr int64_t mostTransactions = (1 << 20) - 1;

/// The clock of an engine, where clocks are kept.
uint32_t clockOf(const Block &block, uint32_t engine) { return block.shadow.warps() ? block.shadow.now(engine) : 0; }

/// Findings and accesses in a scope are those of the record at `pc`.
struct AtRecord {
  Warp &warp;
  uint32_t after;
  AtRecord(Warp &warp, uint32_t pc) : warp(warp), after(std::exchange(warp.pc, pc + 1)) {}
  ~AtRecord() { warp.pc = after; }
};

std::vector<SharedRange> rangesOf(const BulkCopy &copy) {
  std::vector<SharedRange> ranges;
  for (const BulkRun &run : copy.runs)
    ranges.push_back({run.shared, run.bytes});
  return ranges;
}

/// Of a store or reduction, what goes to memory, or what lies out of the tensor's bounds and does not.
std::vector<SharedRange> rangesOf(const BulkCopy &copy, bool inBounds) {
  std::vector<SharedRange> ranges;
  for (const BulkRun &run : copy.runs)
    if ((run.global != 0) == inBounds)
      ranges.push_back({run.shared, run.bytes});
  return ranges;
}

/// Calls `visit(address, bytes, each)` for what runs have in global memory, in order: runs of one size whose bytes
/// follow one another there, as those of a swizzled row do, at once where that is a power of two.
template <typename Visit> void eachStretch(const std::vector<BulkRun> &runs, Visit visit) {
  constexpr uint32_t granule = 16; // of which smaller runs may share one
  for (size_t i = 0; i < runs.size();) {
    const auto [shared, each, address] = runs[i++];
    if (!address)
      continue;
    uint32_t bytes = each;
    for (; (address | each) % granule == 0 && std::has_single_bit(each) && i < runs.size(); ++i, bytes += each)
      if (runs[i].bytes != each || runs[i].global != address + bytes)
        break;
    visit(address, bytes, each);
  }
}

/// What was sent from shared memory or registers, byte for byte.
void moveSent(Block &block, const BulkCopy &copy) {
  const std::byte *from = copy.source.bytes ? copy.issuer->shared.data() + copy.source.begin : copy.contents.data();
  for (const BulkRun &run : copy.runs) {
    std::byte *to = block.shared.data() + run.shared;
    if (copy.reduce)
      copy.reduce(to, from, run.bytes);
    else
      std::memcpy(to, from, run.bytes);
    from += run.bytes;
  }
}

/// What a load brings, byte for byte, and which of it nothing wrote.
void moveIn(Warp &warp, Block &block, const BulkCopy &copy) {
  std::byte *shared = block.shared.data();
  if (copy.sent())
    return moveSent(block, copy);
  for (const BulkRun &run : copy.runs) {
    const auto *global = reinterpret_cast<const std::byte *>(run.global);
    if (global && run.bytes == 16) // of a swizzled box, nearly all
      std::memcpy(shared + run.shared, global, 16);
    else if (global)
      std::memcpy(shared + run.shared, global, run.bytes);
    else
      for (uint32_t i = 0; i < run.bytes; ++i)
        shared[run.shared + i] = copy.fill[(run.shared + i) % copy.fill.size()];
  }
  GlobalAccesses accesses(warp, warp.kernel->code[copy.pc]);
  if (accesses.tracks())
    eachStretch(copy.runs,
                [&](Address address, uint32_t bytes, uint32_t) { accesses.land(copy.lane, address, bytes); });
}

/// Marks what a load brought of memory that nothing wrote.
void markMoved(Warp &warp, Block &block, const BulkCopy &copy) {
  if (!warp.block->grid->options.checks.uninitialised)
    return;
  const MemoryView &view = *warp.block->grid->view;
  const Allocation *born = nullptr; // written, as all that is in it
  for (const BulkRun &run : copy.runs) {
    if (born && born->contains(run.global, run.bytes))
      continue;
    if (const Allocation *whole = view.find(run.global, run.bytes); whole && !whole->written)
      born = whole;
    if (born && born->contains(run.global, run.bytes))
      continue;
    for (uint32_t at = 0; run.global && at < run.bytes; at += 16) {
      const unsigned bytes = std::min(16u, run.bytes - at);
      if (uint32_t unwritten = unwrittenBytes(warp, reinterpret_cast<const std::byte *>(run.global) + at, bytes))
        markUnwritten(warp, block.shared.data() + run.shared + at, bytes, unwritten);
    }
  }
}

/// Counts the bytes of a load at its mbarrier, and ends the phase that they complete. Who sees that knows `landed` too.
void completeTransaction(Block &block, const BulkCopy &copy, uint32_t engine, Moment landed) {
  using namespace mbarrier;
  Warp &warp = copy.issuer->warps[copy.warp];
  std::byte *at = block.shared.data() + copy.object;
  uint64_t before;
  std::memcpy(&before, at, 8);
  auto known = block.mbarriers.find(copy.object);
  if ((before & markMask) != mark || known == block.mbarriers.end()) {
    AtRecord record(warp, copy.pc);
    return report(warp, FindingKind::MbarrierMisuse, copy.lane,
                  format("completes on what is no mbarrier any more at byte {} of shared memory", copy.object));
  }
  if (phase(before) != copy.phase) {
    AtRecord record(warp, copy.pc);
    report(
        warp, FindingKind::MbarrierMisuse, copy.lane,
        format("completes in phase {} of an mbarrier, issued in phase {}: fewer bytes were expected than were copied",
               phase(before), copy.phase));
  }
  known->second.transactions -= copy.bytes;
  known->second.caused = block.grid->order.join(known->second.caused, copy.caused);
  const uint64_t after = settled(before, known->second.transactions);
  rememberObject(block, {block.rank, engine, 0, clockOf(block, engine), copy.pc}, copy.object, before, after);
  Warp &port = block.engines->port;
  port.index = engine;
  port.order = {};
  port.order.known = landed;
  StrongAccess access(port, orderStrong | orderRelease | orderCluster, sharedKey(block, copy.object));
  std::memcpy(at, &after, 8);
  access.done(false, true, true);
  if (phase(after) != phase(before))
    access.copyTo(phaseKey(block, copy.object, phase(before)));
}

/// That a load has landed in a block, for those who learn of it at another block's mbarrier.
Moment landedIn(Block &block, uint32_t engine) {
  if (!block.grid->options.checks.races)
    return 0;
  Warp &port = block.engines->port;
  port.index = engine;
  port.order = {};
  return snapshot(port);
}

/// A load arrives, and completes on an mbarrier of `block`.
void land(Block &block, const BulkCopy &copy) {
  Warp &warp = copy.issuer->warps[copy.warp];
  Block &target = *copy.target;
  const uint32_t engine = engineOf(target, copy.object);
  {
    AtRecord record(warp, copy.pc);
    moveIn(warp, target, copy);
    endEngineWrite(target, engine, copy.pc, copy.runs, copy.reduce != nullptr);
    markMoved(warp, target, copy);
    if (copy.source.bytes)
      endRemoteEngineRead(*copy.issuer, {target.rank, engine, 0, clockOf(target, engine), copy.pc}, {{copy.source}});
  }
  completeTransaction(block, copy, engine, &target == &block ? 0 : landedIn(target, engine));
  if (tracksShared(warp))
    target.shadow.advance(engine);
  warp.worker->changed = true;
}

/// A store reads its source.
void take(Warp &warp, BulkCopy &copy) {
  copy.contents.resize(copy.bytes);
  std::byte *to = copy.contents.data();
  for (const BulkRun &run : copy.runs) {
    std::memcpy(to, warp.block->shared.data() + run.shared, run.bytes);
    to += run.bytes;
  }
  copy.taken = true;
  AtRecord record(warp, copy.pc);
  endEngineRead(warp, copy.lane, rangesOf(copy));
}

/// A store writes its destination.
void put(Warp &warp, const BulkCopy &copy) {
  static std::mutex reductions;
  AtRecord record(warp, copy.pc);
  GlobalAccesses accesses(warp, warp.kernel->code[copy.pc]);
  std::unique_lock<std::mutex> lock(reductions, std::defer_lock);
  if (copy.reduce)
    lock.lock();
  const std::byte *from = copy.contents.data();
  for (const BulkRun &run : copy.runs) {
    if (run.global) {
      auto *to = reinterpret_cast<std::byte *>(run.global);
      if (accesses.tracks())
        accesses.write(copy.lane, run.global, run.bytes, from);
      if (copy.reduce)
        copy.reduce(to, from, run.bytes);
      else
        std::memcpy(to, from, run.bytes);
      markWritten(warp, to, run.bytes);
    }
    from += run.bytes;
  }
  warp.worker->changed = true;
}

void finish(Warp &warp, BulkCopy &copy) {
  if (!copy.taken)
    take(warp, copy);
  put(warp, copy);
}

/// Whether a global range may be accessed as a whole; reports it where not.
bool checkGlobal(Warp &warp, const BulkCopy &copy, const BulkRun &run) {
  const Grid &grid = *warp.block->grid;
  const Allocation *&known = warp.worker->lastAllocation[copy.pc];
  if (!known || !known->contains(run.global, run.bytes))
    known = grid.view->find(run.global, run.bytes);
  const bool reads = copy.kind == BulkKind::Load;
  if (known && (reads || !known->constant))
    return true;
  uint64_t addresses[laneCount];
  std::fill_n(addresses, laneCount, run.global);
  // The byte that is outside: the first, or the last.
  const AccessKind kind = reads ? AccessKind::Read : AccessKind::Write;
  if (!known && resolveGlobal(warp, warp.kernel->code[copy.pc], 1u << copy.lane, addresses, 1, kind).mask) {
    std::fill_n(addresses, laneCount, run.global + run.bytes - 1);
    resolveGlobal(warp, warp.kernel->code[copy.pc], 1u << copy.lane, addresses, 1, kind);
  }
  return false;
}

/// Divides a run at the end of its first byte's allocation, where another one follows: arrays of the host may lie side
/// by side.
void divideAtBorder(Warp &warp, BulkCopy &copy, size_t index) {
  const BulkRun run = copy.runs[index];
  const MemoryView &view = *warp.block->grid->view;
  const Allocation *known = warp.worker->lastAllocation[copy.pc];
  if (!run.global || (known && known->contains(run.global, run.bytes)))
    return;
  const Allocation *first = view.find(run.global, 1);
  if (!first || first->contains(run.global, run.bytes) || !view.find(first->end(), 1))
    return;
  const auto bytes = uint32_t(first->end() - run.global);
  copy.runs[index].bytes = bytes;
  copy.runs.insert(copy.runs.begin() + long(index) + 1, {run.shared + bytes, run.bytes - bytes, first->end()});
}

/// Checks what a copy moves at both ends; false where it may not.
bool checkRuns(Warp &warp, BulkCopy &copy) {
  const uint64_t size = warp.block->shared.size();
  if (copy.kind == BulkKind::Load && uint64_t(copy.object) + 8 > size) {
    report(
        warp, FindingKind::OutOfBounds, copy.lane,
        format("completes on an mbarrier at byte {} of shared memory, of which the block has {}", copy.object, size));
    return false;
  }
  if (uint64_t(copy.source.begin) + copy.source.bytes > size) {
    report(warp, FindingKind::OutOfBounds, copy.lane,
           format("reads {} bytes at byte {} of shared memory, of which the block has {}", copy.source.bytes,
                  copy.source.begin, size));
    return false;
  }
  for (size_t i = 0; i < copy.runs.size(); ++i) {
    divideAtBorder(warp, copy, i);
    const BulkRun &run = copy.runs[i];
    if (uint64_t(run.shared) + run.bytes > size) {
      report(warp, FindingKind::OutOfBounds, copy.lane,
             format("{} {} bytes at byte {} of shared memory, of which the block has {}",
                    copy.kind == BulkKind::Load ? "writes" : "reads", run.bytes, run.shared, size));
      return false;
    }
    if (run.global && !checkGlobal(warp, copy, run))
      return false;
  }
  return true;
}

/// Marks the sectors of a stretch of runs that were checked, each by itself: allocations may lie side by side.
/// Reductions read what they change.
void touch(Warp &warp, const BulkCopy &copy, Address address, uint32_t bytes, uint32_t each) {
  Worker &worker = *warp.worker;
  if (!worker.grid->touchedSectors.counts())
    return;
  const Allocation *&known = worker.lastAllocation[copy.pc];
  const bool loads = copy.kind == BulkKind::Load;
  const uint32_t step = known && known->contains(address, bytes) ? bytes : each;
  for (const Address end = address + bytes; address < end; address += step) {
    if (!known || !known->contains(address, step))
      known = worker.grid->view->find(address, step);
    worker.grid->touchedSectors.mark(*known, address, step, loads || copy.reduce, !loads, worker.touched);
  }
}

/// Counts the sectors and bytes that a copy moves in global memory, and what it brings to other blocks.
void count(Warp &warp, const BulkCopy &copy) {
  Counters &counters = warp.worker->counters;
  const auto blocks = uint64_t(__builtin_popcount(copy.destinations));
  if (copy.sent()) {
    counters.clusterBytesCopied += copy.bytes;
    return;
  }
  if (copy.destinations) {
    ++counters.multicastCopies;
    counters.multicastBytes += copy.bytes * blocks;
    counters.clusterBytesCopied += copy.bytes * (blocks - (copy.destinations >> warp.block->rank & 1));
  }
  uint64_t sectors = 0, bytes = 0, last = ~uint64_t{0};
  eachStretch(copy.runs, [&](Address address, uint32_t size, uint32_t each) {
    const uint64_t first = address >> 5, end = (address + size - 1) >> 5;
    sectors += end - first + (first != last);
    last = end;
    bytes += size;
    touch(warp, copy, address, size, each);
  });
  RecordCost &cost = warp.worker->costs[copy.pc];
  const bool reads = copy.kind == BulkKind::Load;
  (reads ? counters.globalSectorsRead : counters.globalSectorsWritten) += sectors;
  (reads ? cost.sectorsRead : cost.sectorsWritten) += sectors;
  counters.globalSectorsIdeal += (bytes + 31) / 32;
  cost.sectorsIdeal += (bytes + 31) / 32;
  cost.bytes += bytes;
  ++counters.bulkCopies;
  (reads ? counters.bulkBytesRead : counters.bulkBytesWritten) += bytes;
  counters.bulkBytesFilled += copy.bytes - bytes;
}

/// Reports a load to another block whose mbarrier's initialisation is not known to be done.
void checkInitialised(Warp &warp, const BulkCopy &copy, Block &target) {
  auto known = target.mbarriers.find(copy.object);
  if (known == target.mbarriers.end() || !warp.block->grid->options.checks.async)
    return;
  const MbarrierHistory &history = known->second;
  // What threads send completes in their own proxy.
  const bool fenced = history.initFenced || (copy.sent() && !copy.source.bytes);
  if (!fenced || !happenedBefore(warp, uint32_t(target.index), history.initWarp, history.initClock))
    report(warp, FindingKind::MissingProxyFence, copy.lane,
           format("completes on an mbarrier of block rank {} of the cluster, and no fence.mbarrier_init and "
                  "barrier.cluster lie between that and mbarrier.init",
                  target.rank),
           siteName(warp, history.initPc));
}

/// A load to copy.target begins, which completes on an mbarrier of `block`.
void beginLoad(Warp &warp, BulkCopy &copy, Block &block) {
  Block &target = *copy.target;
  uint64_t object = 0;
  std::memcpy(&object, block.shared.data() + copy.object, 8);
  if ((object & mbarrier::markMask) != mbarrier::mark)
    report(warp, FindingKind::MbarrierMisuse, copy.lane, "completes on an mbarrier that was not initialised");
  copy.phase = mbarrier::phase(object);
  if (auto known = block.mbarriers.find(copy.object); known != block.mbarriers.end())
    known->second.usedByCopies = true;
  if (&block != warp.block)
    checkInitialised(warp, copy, block);
  if (copy.source.bytes && beginEngineRead(warp, copy.lane, {{copy.source}}))
    report(warp, FindingKind::Uninitialised, copy.lane, "sends a value that nothing wrote");
  beginEngineWrite(warp, copy.lane, target, copy.runs, copy.reduce != nullptr);
  if (copy.sent())
    return;
  GlobalAccesses accesses(warp, warp.kernel->code[copy.pc]);
  bool written = false;
  if (accesses.tracks())
    eachStretch(copy.runs, [&](Address address, uint32_t bytes, uint32_t each) {
      written |=
          bytes == each ? accesses.read(copy.lane, address, bytes) : accesses.read(copy.lane, address, bytes, each);
    });
  accesses.unlock();
  for (const BulkRun &run : copy.runs)
    if (written && run.global)
      checkBulkRead(warp, copy.lane, run.global, run.bytes);
}

} // namespace

std::shared_ptr<Engines> makeEngines(const Block &block, uint64_t seed) {
  auto engines = std::make_shared<Engines>();
  engines->committed.resize(block.warps.size() * laneCount);
  engines->fences.resize(block.warps.size());
  engines->visible.resize(block.warps.size());
  engines->registers.assign(block.warps.size(), block.grid->kernel->launchRegisters);
  engines->groups.resize((block.warps.size() + 3) / 4);
  if (block.grid->kernel->usesTensor)
    engines->tensor = std::make_shared<TensorMemory>(block.warps.size());
  engines->random = seed ? (seed ^ (block.index + 1) * 0x9E3779B97F4A7C15u) | 1 : 0;
  return engines;
}

namespace {

/// The block on whose mbarrier a load to a block completes: itself, or one of its pair.
Block *signalled(const BulkCopy &copy, Block &target) {
  const auto &blocks = target.cluster->blocks;
  const uint32_t rank = copy.parity ? (target.rank & ~1u) | (copy.parity - 1u) : target.rank;
  return rank < blocks.size() ? blocks[rank].get() : nullptr;
}

/// Issues a load to one block of the cluster.
void issueTo(Warp &warp, BulkCopy copy, Block &target) {
  Block *block = signalled(copy, target);
  if (block != warp.block && block != &target &&
      !mayReach(warp, copy.lane, block, block ? clusterAddress(*block, 0) : ~0u, "completes in", true))
    return;
  copy.target = &target;
  beginLoad(warp, copy, *block);
  if (target.engines->early())
    return land(*block, copy);
  block->engines->copies.push_back(std::move(copy));
}

} // namespace

void issueBulk(Warp &warp, BulkCopy copy) {
  copy.issuer = warp.block;
  if (copy.runs.empty() || !checkRuns(warp, copy))
    return;
  Engines &engines = *warp.block->engines;
  count(warp, copy);
  if (copy.kind == BulkKind::Load && copy.destinations) {
    if (warp.block->grid->options.checks.races)
      copy.caused = snapshot(warp);
    for (const auto &block : warp.block->cluster->blocks)
      if ((copy.destinations >> block->rank & 1) &&
          mayReach(warp, copy.lane, block.get(), clusterAddress(*block, 0), "copies to", true))
        issueTo(warp, copy, *block);
    warp.worker->changed = true;
    return;
  }
  if (copy.kind == BulkKind::Load) {
    if (signalled(copy, *warp.block) != warp.block && warp.block->grid->options.checks.races)
      copy.caused = snapshot(warp);
    return issueTo(warp, std::move(copy), *warp.block);
  }
  const bool early = engines.early();
  copy.group = engines.committed[warp.index * laneCount + copy.lane];
  if (beginEngineRead(warp, copy.lane, rangesOf(copy, /*inBounds=*/true)))
    report(warp, FindingKind::Uninitialised, copy.lane, "writes to memory a value that nothing wrote");
  beginEngineRead(warp, copy.lane, rangesOf(copy, /*inBounds=*/false));
  if (early)
    take(warp, copy);
  engines.copies.push_back(std::move(copy));
}

bool landAtMbarrier(Block &block, uint32_t object) {
  if (!block.engines)
    return false;
  std::vector<BulkCopy> &copies = block.engines->copies;
  bool any = false;
  for (size_t i = 0; i < copies.size();) {
    if (copies[i].kind != BulkKind::Load || copies[i].object != object) {
      ++i;
      continue;
    }
    // Not yet: whoever asks only once goes on too early.
    if (!any && block.engines->early()) {
      block.warps[0].worker->changed = true;
      return false;
    }
    const BulkCopy copy = std::move(copies[i]);
    copies.erase(copies.begin() + long(i));
    land(block, copy);
    any = true;
  }
  return any;
}

void expectBytes(Warp &warp, Block &block, unsigned lane, uint32_t object, int64_t bytes) {
  auto known = block.mbarriers.find(object);
  if (known == block.mbarriers.end())
    return;
  int64_t &transactions = known->second.transactions;
  transactions += bytes;
  if (std::abs(transactions) > mostTransactions)
    report(warp, FindingKind::MbarrierMisuse, lane,
           format("expected a count of at most {} bytes in a phase, but got {}", mostTransactions, transactions));
}

void checkUnexpected(Warp &warp, Block &block, unsigned lane, uint32_t object) {
  if (!block.engines)
    return;
  uint64_t bytes = 0;
  uint32_t pc = 0;
  for (const BulkCopy &copy : block.engines->copies)
    if (copy.kind == BulkKind::Load && copy.object == object) {
      bytes += copy.bytes;
      pc = copy.pc;
    }
  if (bytes)
    report(warp, FindingKind::MbarrierMisuse, lane,
           format("ends a phase of an mbarrier on which copies of {} bytes complete that nothing expects in it", bytes),
           format("one was issued at {}", siteName(warp, pc)));
}

namespace {

/// Whether all copies were issued that the current phase of an mbarrier waits for, and all arrivals made.
bool isFull(const Block &block, uint32_t object, const MbarrierHistory &history) {
  if (mbarrier::pending(history.object) || history.transactions <= 0)
    return false;
  int64_t coming = 0;
  for (const BulkCopy &copy : block.engines->copies)
    coming += copy.kind == BulkKind::Load && copy.object == object ? copy.bytes : 0;
  return coming >= history.transactions;
}

} // namespace

void countWait(Warp &warp, uint32_t object, uint64_t phase) {
  Block &block = *warp.block;
  auto known = block.mbarriers.find(object);
  if (known == block.mbarriers.end())
    return;
  // Once for each phase and warp, the first time that it asks.
  uint64_t &counted = known->second.counted[warp.index];
  if (counted > phase)
    return;
  const bool ring = block.engines && known->second.usedByCopies, over = phase < mbarrier::phase(known->second.object);
  if (ring || over)
    counted = phase + 1;
  if (!ring)
    return;
  auto holds = [&](uint32_t at, MbarrierHistory &history) {
    return history.usedByCopies &&
           (history.counted[warp.index] < mbarrier::phase(history.object) || isFull(block, at, history) ||
            (at == object && phase < mbarrier::phase(history.object)));
  };
  Counters &counters = warp.worker->counters;
  ++counters.ringWaits;
  counters.ringWaitsFull += holds(object, known->second);
  for (auto &[other, history] : block.mbarriers)
    counters.ringStagesFull += holds(other, history);
}

void commitBulk(Warp &warp, uint32_t mask) {
  eachLane(mask, [&](unsigned lane) { ++warp.block->engines->committed[warp.index * laneCount + lane]; });
}

void awaitBulk(Warp &warp, uint32_t mask, uint32_t left, bool reads) {
  Engines &engines = *warp.block->engines;
  std::erase_if(engines.copies, [&](BulkCopy &copy) {
    if (copy.kind == BulkKind::Load || copy.warp != warp.index || !(mask >> copy.lane & 1) ||
        uint64_t(copy.group) + left >= engines.committed[warp.index * laneCount + copy.lane])
      return false;
    if (!reads) {
      finish(warp, copy);
      return true;
    }
    if (!copy.taken)
      take(warp, copy);
    return false;
  });
}

bool endsBlock(const Warp &warp, uint32_t mask) {
  const Block &block = *warp.block;
  return std::all_of(block.warps.begin(), block.warps.end(),
                     [&](const Warp &other) { return other.index == warp.index ? !(warp.live & ~mask) : !other.live; });
}

void endBulk(Warp &warp, uint32_t mask) {
  Block &block = *warp.block;
  const bool checks = block.grid->options.checks.async;
  const bool last = endsBlock(warp, mask);
  for (const auto &peer : block.cluster->blocks)
    for (const BulkCopy &copy : peer->engines->copies)
      if (last && checks && copy.issuer == &block && copy.source.bytes)
        report(warp, FindingKind::ExitWithAsync, firstLane(mask),
               "ends the block while a bulk copy to another block of the cluster may still read its shared memory",
               siteName(warp, copy.pc));
      else if (last && checks && copy.target == &block && peer.get() != &block)
        report(warp, FindingKind::ExitWithAsync, firstLane(mask),
               "ends the block while a bulk copy into its shared memory is in flight", siteName(warp, copy.pc));
  std::erase_if(block.engines->copies, [&](BulkCopy &copy) {
    const bool mine = copy.warp == warp.index && (mask >> copy.lane & 1);
    if (copy.kind == BulkKind::Load) {
      if (last && checks)
        report(warp, FindingKind::ExitWithAsync, firstLane(mask),
               "ends the block while a bulk copy into its shared memory is in flight", siteName(warp, copy.pc));
      return last;
    }
    if (!mine)
      return false;
    if (!copy.taken && checks)
      report(warp, FindingKind::ExitWithAsync, copy.lane,
             "ends while a bulk copy that it issued may still read shared memory", siteName(warp, copy.pc));
    finish(warp, copy);
    return true;
  });
}

} // namespace weft::simulator::machine
