// Part of Weft. SPDX-License-Identifier: Apache-2.0
#include "runtime/Simulator/Machine/Checks/Access.h"
#include "runtime/Simulator/Machine/Checks/GlobalRaces.h"
#include "runtime/Simulator/Machine/Checks/Remote.h"
#include "runtime/Simulator/Machine/Checks/SharedAccesses.h"
#include "runtime/Support/Format.h"

#include <algorithm>

namespace weft::simulator::machine {
namespace {

const char *verb(AccessKind kind) {
  return kind == AccessKind::Read ? "reads" : kind == AccessKind::Write ? "writes" : "atomically changes";
}

/// Lanes whose address is no multiple of `bytes` are reported and left out.
uint32_t checkAlignment(Warp &warp, uint32_t mask, const uint64_t *addresses, unsigned bytes, AccessKind kind) {
  uint32_t wrong = 0;
  for (unsigned i = 0; i < laneCount; ++i)
    wrong |= uint32_t((addresses[i] & (bytes - 1)) != 0) << i;
  wrong &= mask;
  if (wrong) {
    unsigned lane = firstLane(wrong);
    report(warp, FindingKind::Misaligned, lane,
           format("{} {} bytes at {:#x}, which is no multiple of {}", verb(kind), bytes,
                  addresses[lane] & windowOffsetMask, bytes));
  }
  return mask & ~wrong;
}

/// The same, and what the addresses of the lanes that are left have in common.
AddressPattern checkAligned(Warp &warp, uint32_t &mask, const uint64_t *addresses, unsigned bytes, AccessKind kind) {
  if (!mask)
    return {};
  AddressPattern pattern = patternOf(addresses, mask, bytes);
  if (pattern.bits & (bytes - 1)) {
    mask = checkAlignment(warp, mask, addresses, bytes, kind);
    if (mask)
      pattern = patternOf(addresses, mask, bytes);
  }
  return pattern;
}

/// How the accesses of a warp's record lay before, and the place to keep how they lie now.
class Shapes {
public:
  Shapes(const Warp &warp, std::vector<std::unique_ptr<AccessShape[]>> &ofRecords, unsigned count)
      : ofRecord_(ofRecords[warp.here()]), number_(warp.index % count), count_(count) {}

  /// The shape that all lanes' accesses have again, or null. Such accesses are aligned, and go to `places` in host
  /// memory, where the first lane's place is `first`.
  const AccessShape *again(uint32_t mask, const uint64_t *addresses, unsigned bytes, uintptr_t first,
                           std::byte **places) const {
    return ofRecord_ && mask == ~0u && ofRecord_[number_].fits(addresses, bytes, first, places) ? &ofRecord_[number_]
                                                                                                : nullptr;
  }
  AccessShape &measured(const uint64_t *addresses, unsigned bytes, const AddressPattern &pattern) {
    if (!ofRecord_)
      ofRecord_ = std::make_unique<AccessShape[]>(count_);
    ofRecord_[number_].measure(addresses, bytes, pattern);
    return ofRecord_[number_];
  }

private:
  std::unique_ptr<AccessShape[]> &ofRecord_;
  unsigned number_, count_;
};

void reportGlobal(Warp &warp, unsigned lane, uint64_t address, unsigned bytes, AccessKind kind) {
  const Allocation *near = warp.block->grid->view->nearest(address);
  std::string what = format("{} {} bytes at {:#x}", verb(kind), bytes, address);
  if (!near)
    return report(warp, FindingKind::OutOfBounds, lane, what + ", and nothing is allocated");
  std::string buffer = format("'{}' ({} bytes at {:#x})", near->name, near->size, near->base);
  if (!near->live && address >= near->base && address < near->end())
    return report(warp, FindingKind::UseAfterFree, lane, format("{}, inside {}, which was freed", what, buffer));
  if (address >= near->end())
    what += format(", {} bytes past the end of {}", address - near->end(), buffer);
  else if (address < near->base)
    what += format(", {} bytes before {}", near->base - address, buffer);
  else
    what += format(", of which only {} bytes are inside {}", near->end() - address, buffer);
  report(warp, FindingKind::OutOfBounds, lane, what);
}

/// An access to the heap of malloc: inside a block that is live, or reported.
bool checkHeap(Warp &warp, unsigned lane, uint64_t address, unsigned bytes, AccessKind kind) {
  const DeviceHeap *heap = warp.block->grid->heap.get();
  if (!heap || !heap->contains(address))
    return true;
  switch (heap->rangeAt(address, bytes)) {
  case DeviceHeap::Range::Live:
    return true;
  case DeviceHeap::Range::Freed:
    report(warp, FindingKind::UseAfterFree, lane,
           format("{} {} bytes at {:#x}, which malloc gave and free took back", verb(kind), bytes, address));
    return false;
  case DeviceHeap::Range::Wild:
    report(warp, FindingKind::OutOfBounds, lane,
           format("{} {} bytes at {:#x}, of the heap but in no allocation of malloc", verb(kind), bytes, address));
    return false;
  }
  return true;
}

void markGlobal(const Allocation &allocation, uint64_t address, unsigned bytes) {
  std::memset(allocation.written->data() + (address - allocation.base), 1, bytes);
}

bool isUnwritten(const uint8_t *marks, unsigned bytes) {
  for (unsigned i = 0; i < bytes; ++i)
    if (!marks[i])
      return true;
  return false;
}

} // namespace

namespace {

/// Why an access to the stack is to what it does not hold any more, or null.
const char *goneFromStack(const Warp &warp, unsigned lane, uint64_t offset, unsigned bytes) {
  if (!warp.kernel->usesStack || offset < warp.kernel->stackStart || offset + bytes <= warp.stackTop[lane])
    return nullptr;
  return offset + bytes <= warp.stackMost[lane] ? "which the stack has taken back" : "beyond what the stack holds";
}

/// The function whose variable lies at a byte of local memory, where there is only one.
std::string frameName(const Kernel &kernel, uint64_t offset) {
  std::string name;
  for (const FrameName &frame : kernel.frameNames)
    if (offset >= frame.begin && offset < frame.end) {
      if (!name.empty() && name != "'" + frame.name + "'")
        return "a function";
      name = "'" + frame.name + "'";
    }
  return name.empty() ? "a function" : name;
}

} // namespace

LaneAddresses::LaneAddresses(const Warp &warp, const Record &record, Ref base, bool wide) {
  if (wide)
    addAddresses(warp.reg<const uint64_t>(base), uint64_t(record.imm), at);
  else
    addAddresses(warp.reg<const uint32_t>(base), uint32_t(record.imm), at);
}

namespace {

/// Checks one lane's access against its allocation, null where there is none, and notes what it writes. False, with a
/// finding, where it may not be made.
bool checkLane(Warp &warp, unsigned lane, const Allocation *allocation, uint64_t address, unsigned bytes,
               AccessKind kind, Resolved &result) {
  if (!allocation) {
    reportGlobal(warp, lane, address, bytes, kind);
    return false;
  }
  if (allocation->constant && kind != AccessKind::Read) {
    report(warp, FindingKind::OutOfBounds, lane, format("writes to the constant '{}'", allocation->name));
    return false;
  }
  if (!checkHeap(warp, lane, address, bytes, kind))
    return false;
  if (!allocation->written)
    return true;
  const bool tracks = warp.worker->grid->options.checks.uninitialised;
  if (kind != AccessKind::Write && tracks &&
      isUnwritten(allocation->written->data() + (address - allocation->base), bytes))
    result.poison |= 1u << lane;
  if (kind == AccessKind::Write || (kind == AccessKind::Atomic && !tracks))
    markGlobal(*allocation, address, bytes);
  return true;
}

/// Counts the sectors and bytes of an access, for the launch and for its line.
void countGlobal(Warp &warp, unsigned sectors, uint32_t mask, unsigned bytes, AccessKind kind) {
  Worker &worker = *warp.worker;
  const bool reads = kind == AccessKind::Read;
  const unsigned lanes = mask == ~0u ? laneCount : unsigned(__builtin_popcount(mask));
  const unsigned ideal = std::min((lanes * bytes + 31) / 32, sectors);
  (reads ? worker.counters.globalSectorsRead : worker.counters.globalSectorsWritten) += sectors;
  worker.counters.globalSectorsIdeal += ideal;
  RecordCost &cost = worker.costs[warp.here()];
  (reads ? cost.sectorsRead : cost.sectorsWritten) += sectors;
  cost.sectorsIdeal += ideal;
  cost.bytes += uint64_t(lanes) * bytes;
}

/// Marks the sectors of an access that was counted; atomics read what they change. `one` is the allocation of all lanes,
/// or null.
void touchGlobal(Warp &warp, const Allocation *one, const AddressPattern &pattern, const Resolved &result,
                 unsigned sectors, const uint64_t *addresses, unsigned bytes, AccessKind kind) {
  Worker &worker = *warp.worker;
  TouchedSectors &touched = worker.grid->touchedSectors;
  const bool reads = kind != AccessKind::Write, writes = kind != AccessKind::Read;
  const uint64_t last = (pattern.high + bytes - 1) >> TouchedSectors::shift;
  if (one && result.mask == ~0u && sectors == last - (pattern.low >> TouchedSectors::shift) + 1) {
    touched.mark(*one, pattern.low, pattern.high + bytes - pattern.low, reads, writes, worker.touched);
    return;
  }
  if (one)
    return touched.markEach(*one, result.mask, addresses, bytes, reads, writes, worker.touched);
  eachLane(result.mask, [&](unsigned lane) {
    const Allocation &allocation = *worker.grid->view->find(addresses[lane], bytes);
    touched.mark(allocation, addresses[lane], bytes, reads, writes, worker.touched);
  });
}

} // namespace

Resolved resolveGlobal(Warp &warp, const Record &record, uint32_t mask, const uint64_t *addresses, unsigned bytes,
                       AccessKind kind) {
  Resolved result;
  Shapes shapes(warp, warp.worker->globalShapes, Worker::globalShapesOfRecord);
  const AccessShape *again = shapes.again(mask, addresses, bytes, addresses[0], result.at);
  const AddressPattern pattern =
      again ? again->pattern(addresses[0]) : checkAligned(warp, mask, addresses, bytes, kind);
  if (!mask)
    return result;
  const Grid &grid = *warp.worker->grid;
  const Allocation *&known = warp.worker->lastAllocation[warp.here()];
  if (!known || !known->contains(pattern.low, bytes))
    known = grid.view->find(pattern.low, bytes);
  const bool one = known && known->contains(pattern.high, bytes);
  for (unsigned i = 0; i < laneCount && !again; ++i)
    result.at[i] = reinterpret_cast<std::byte *>(addresses[i]);
  result.mask = mask;
  // Nothing is to be checked where all is in one allocation that was born initialised: the common case.
  if (!one || known->written || (known->constant && kind != AccessKind::Read))
    eachLane(mask, [&](unsigned lane) {
      const Allocation *allocation = one ? known : grid.view->find(addresses[lane], bytes);
      if (!checkLane(warp, lane, allocation, addresses[lane], bytes, kind, result))
        result.mask &= ~(1u << lane);
    });
  if (!result.mask)
    return result;
  const bool all = result.mask == ~0u;
  result.contiguous = pattern.contiguous && all;
  const unsigned sectors =
      again && all ? again->sectors : globalSectors(addresses, result.mask, bytes, result.contiguous);
  countGlobal(warp, sectors, result.mask, bytes, kind);
  if (grid.touchedSectors.counts())
    touchGlobal(warp, one ? known : nullptr, pattern, result, sectors, addresses, bytes, kind);
  if (all && !again)
    shapes.measured(addresses, bytes, pattern).sectors = sectors;
  if (kind == AccessKind::Write || !grid.globalShadow.tracks())
    return result;
  if (GlobalAccesses accesses(warp, record); accesses.tracks()) {
    if (pattern.low == pattern.high && (mask & (mask - 1)))
      accesses.setUniform();
    if (kind == AccessKind::Read && result.contiguous)
      accesses.readAll(pattern.low, bytes);
    else
      eachLane(result.mask, [&](unsigned lane) {
        if (kind == AccessKind::Read)
          accesses.read(lane, addresses[lane], bytes);
        else
          accesses.write(lane, addresses[lane], bytes, nullptr);
      });
  }
  return result;
}

namespace {

void reportShared(Warp &warp, unsigned lane, uint32_t offset, unsigned bytes, AccessKind kind, uint64_t size) {
  report(warp, FindingKind::OutOfBounds, lane,
         format("{} {} bytes at byte {} of shared memory, of which the block has {}", verb(kind), bytes, offset, size));
}

/// Resolves a lane's access to shared memory by an address of the cluster; null, with a finding, where it may not.
std::byte *resolveInCluster(Warp &warp, const Record &record, unsigned lane, uint32_t address, unsigned bytes,
                            AccessKind kind) {
  const uint64_t size = warp.block->shared.size();
  const uint32_t offset = address & rankOffsetMask;
  Block *target = blockAt(warp, address);
  if (!record.inCluster && target != warp.block) {
    report(warp, FindingKind::OutOfBounds, lane,
           format("{} {} bytes at byte {} of the shared memory of block rank {} of the cluster, which only "
                  "'.shared::cluster' and generic addresses reach",
                  verb(kind), bytes, offset, (address >> rankShift) - 1));
    return nullptr;
  }
  if (!mayReach(warp, lane, target, address, verb(kind)))
    return nullptr;
  if (uint64_t(offset) + bytes > size) {
    reportShared(warp, lane, offset, bytes, kind, size);
    return nullptr;
  }
  if (target != warp.block) {
    Counters &counters = warp.worker->counters;
    if (record.cls == InstructionClass::Barrier)
      ++counters.clusterArrivals;
    else
      (kind == AccessKind::Read ? counters.clusterBytesRead : counters.clusterBytesWritten) += bytes;
    warp.worker->changed |= kind != AccessKind::Read;
  }
  return target->shared.data() + offset;
}

/// The shape of all lanes' accesses that lie as those did that were measured, inside of the block's memory, or null.
const AccessShape *resolveSharedAgain(Warp &warp, const Shapes &shapes, uint32_t mask, const uint64_t *addresses,
                                      unsigned bytes, Resolved &result) {
  Block &block = *warp.block;
  const uint64_t first = addresses[0] & windowOffsetMask;
  const AccessShape *shape =
      shapes.again(mask, addresses, bytes, reinterpret_cast<uintptr_t>(block.shared.data()) + first, result.at);
  if (!shape)
    return nullptr;
  const AddressPattern pattern = shape->pattern(first);
  if (pattern.low > first || pattern.high < first || pattern.high + bytes > block.shared.size())
    return nullptr;
  result.mask = ~0u;
  result.contiguous = pattern.contiguous;
  return shape;
}

/// Lanes' accesses to the block's memory, or by addresses of the cluster. Reports those that are to neither.
AddressPattern resolveSharedAnew(Warp &warp, const Record &record, uint32_t mask, const uint64_t *addresses,
                                 unsigned bytes, AccessKind kind, Resolved &result) {
  uint64_t offsets[laneCount];
  maskAddresses(addresses, windowOffsetMask, offsets);
  const AddressPattern pattern = checkAligned(warp, mask, offsets, bytes, kind);
  Block &block = *warp.block;
  const uint64_t size = block.shared.size();
  uint32_t outside = 0;
  if (mask && pattern.high + bytes > size) {
    for (unsigned i = 0; i < laneCount; ++i)
      outside |= uint32_t(offsets[i] + bytes > size) << i;
    outside &= mask;
    mask &= ~outside;
  }
  for (unsigned i = 0; i < laneCount; ++i)
    result.at[i] = block.shared.data() + ((mask >> i & 1) ? offsets[i] : 0);
  eachLane(outside, [&](unsigned lane) {
    const auto address = uint32_t(offsets[lane]);
    if (!(address >> rankShift))
      return reportShared(warp, lane, address, bytes, kind, size);
    if (std::byte *at = resolveInCluster(warp, record, lane, address, bytes, kind)) {
      result.at[lane] = at;
      mask |= 1u << lane;
    }
  });
  result.mask = mask;
  return pattern;
}

} // namespace

Resolved resolveShared(Warp &warp, const Record &record, uint32_t mask, const uint64_t *addresses, unsigned bytes,
                       AccessKind kind) {
  Resolved result;
  Shapes shapes(warp, warp.worker->sharedShapes, Worker::sharedShapesOfRecord);
  const AccessShape *again = resolveSharedAgain(warp, shapes, mask, addresses, bytes, result);
  AddressPattern pattern;
  if (!again)
    pattern = resolveSharedAnew(warp, record, mask, addresses, bytes, kind, result);
  if (!result.mask)
    return result;
  if (kind != AccessKind::Write && tracksShared(warp)) {
    SharedReads reads(warp, record.order != 0);
    auto offset = [&](unsigned lane) { return uint32_t(addresses[lane] & windowOffsetMask); };
    if (again)
      pattern = again->pattern(offset(0));
    if (pattern.low == pattern.high && record.order)
      result.poison = reads.readAlike(result.mask, offset(firstLane(result.mask)), bytes);
    else
      eachLane(result.mask, [&](unsigned lane) {
        if (reads.read(lane, offset(lane), bytes))
          result.poison |= 1u << lane;
      });
  }
  const bool all = result.mask == ~0u;
  const Wavefronts cost =
      again ? again->wavefronts : sharedWavefronts(addresses, result.mask, bytes, pattern.contiguous && all);
  if (all && !again)
    shapes.measured(addresses, bytes, pattern).wavefronts = cost;
  warp.worker->counters.sharedWavefronts += cost.taken;
  warp.worker->counters.sharedWavefrontsIdeal += cost.ideal;
  warp.worker->costs[warp.here()].wavefronts += cost.taken;
  warp.worker->costs[warp.here()].wavefrontsIdeal += cost.ideal;
  return result;
}

Resolved resolveLocal(Warp &warp, const Record &record, uint32_t mask, const uint64_t *addresses, unsigned bytes,
                      AccessKind kind) {
  Resolved result;
  uint64_t size = warp.kernel->localBytes;
  mask = checkAlignment(warp, mask, addresses, bytes, kind);
  eachLane(mask, [&](unsigned lane) {
    uint64_t offset = addresses[lane] & windowOffsetMask;
    if (offset + bytes > size) {
      report(
          warp, FindingKind::OutOfBounds, lane,
          format("{} {} bytes at byte {} of local memory, of which a thread has {}", verb(kind), bytes, offset, size));
      return;
    }
    result.mask |= 1u << lane;
    result.at[lane] = warp.local.data() + lane * size + offset;
    if (const char *gone = goneFromStack(warp, lane, offset, bytes)) {
      result.mask &= ~(1u << lane);
      return report(warp, FindingKind::UseAfterFree, lane,
                    format("{} {} bytes at byte {} of local memory, {}", verb(kind), bytes, offset, gone));
    }
    if (warp.localWritten.empty())
      return;
    uint8_t *marks = warp.localWritten.data() + lane * size + offset;
    // Other functions' variables take the place of those that are gone; they are reached by name first.
    if (!record.named && std::find(marks, marks + bytes, uint8_t(localReturned)) != marks + bytes) {
      result.mask &= ~(1u << lane);
      return report(warp, FindingKind::UseAfterFree, lane,
                    format("{} {} bytes at byte {} of local memory, a variable of {}, which has returned", verb(kind),
                           bytes, offset, frameName(*warp.kernel, offset)));
    }
    if (kind != AccessKind::Write && isUnwritten(marks, bytes))
      result.poison |= 1u << lane;
    if (kind != AccessKind::Read)
      std::memset(marks, 1, bytes);
  });
  return result;
}

Resolved resolveParam(Warp &warp, const Record &, uint32_t mask, const uint64_t *addresses, unsigned bytes,
                      AccessKind kind) {
  Resolved result;
  const auto &parameters = warp.block->grid->parameters;
  mask = checkAlignment(warp, mask, addresses, bytes, kind);
  eachLane(mask, [&](unsigned lane) {
    uint64_t offset = addresses[lane] & windowOffsetMask;
    if (kind != AccessKind::Read || offset + bytes > parameters.size()) {
      report(warp, FindingKind::OutOfBounds, lane,
             format("{} {} bytes at byte {} of the parameters, of which there are {}", verb(kind), bytes, offset,
                    parameters.size()));
      return;
    }
    result.mask |= 1u << lane;
    result.at[lane] = const_cast<std::byte *>(parameters.data()) + offset;
  });
  return result;
}

Resolved resolveGeneric(Warp &warp, const Record &record, uint32_t mask, const uint64_t *addresses, unsigned bytes,
                        AccessKind kind) {
  Resolved result;
  while (mask) {
    uint64_t window = addresses[firstLane(mask)] >> windowShift << windowShift;
    uint32_t same = 0;
    for (unsigned i = 0; i < laneCount; ++i)
      same |= uint32_t((addresses[i] >> windowShift << windowShift) == window) << i;
    same &= mask;
    Resolved part = window == sharedWindow  ? resolveShared(warp, record, same, addresses, bytes, kind)
                    : window == localWindow ? resolveLocal(warp, record, same, addresses, bytes, kind)
                    : window == paramWindow ? resolveParam(warp, record, same, addresses, bytes, kind)
                                            : resolveGlobal(warp, record, same, addresses, bytes, kind);
    if (same == mask && !result.mask)
      return part;
    eachLane(part.mask, [&](unsigned lane) { result.at[lane] = part.at[lane]; });
    result.mask |= part.mask;
    result.poison |= part.poison;
    mask &= ~same;
  }
  return result;
}

} // namespace weft::simulator::machine
