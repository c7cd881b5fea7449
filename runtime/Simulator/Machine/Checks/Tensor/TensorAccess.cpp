// Part of Weft. SPDX-License-Identifier: Apache-2.0
#include "runtime/Simulator/Machine/Checks/Tensor/TensorAccess.h"
#include "runtime/Simulator/Machine/Checks/Access.h"
#include "runtime/Simulator/Machine/State/Tensor/Tensor.h"
#include "runtime/Support/Format.h"

#include <algorithm>
#include <bit>

namespace weft::simulator::machine {
namespace {

/// Fences that a warp's list keeps.
constexpr size_t keptTensorFences = 256;

/// Ranges that are looked through by each access.
constexpr size_t mostUnsettled = 16;

std::string reaches(const TensorAccess &access) {
  return format("{} {} of tensor memory", access.what, describeRange(access.range));
}

bool isOwn(const Warp &warp, const TensorStamp &stamp) {
  return stamp.owner == warp.index && stamp.block == uint32_t(warp.block->index);
}

/// Whether a warp knows that an access is over.
bool knows(const Warp &warp, const TensorStamp &stamp) {
  return isOwn(warp, stamp) || happenedBefore(warp, stamp.block, stamp.owner, stamp.clock);
}

/// The block of a stamp: a warp's own, or the other of its pair.
Block &blockOf(const Warp &warp, const TensorStamp &stamp) {
  return stamp.block == uint32_t(warp.block->index) ? *warp.block : *peerOf(*warp.block);
}

/// Whether it knew that at its last tcgen05.fence::after_thread_sync, and, of an access that a warp awaited, whether that
/// warp had a tcgen05.fence::before_thread_sync behind it.
bool isFenced(const Warp &warp, const TensorStamp &stamp) {
  if (isOwn(warp, stamp))
    return true;
  const Block &block = blockOf(warp, stamp);
  const TensorFences &mine = tensorOf(*warp.block).fences[warp.index];
  auto knew = [&](uint32_t clock) {
    return (&block == warp.block && !mine.known.empty() && mine.known[stamp.owner] >= clock) ||
           block.grid->order.knows(mine.moment, stamp.block, stamp.owner, clock);
  };
  if (isEngine(block, stamp.owner * laneCount))
    return knew(stamp.clock); // a commit has the other fence in it
  const std::vector<uint32_t> &before = tensorOf(block).fences[stamp.owner].before;
  auto fence = std::ranges::lower_bound(before, stamp.clock);
  return fence != before.end() && knew(*fence);
}

/// Whether the thread of an operation has issued another before, or knows by fences that another thread has.
bool isIssuedBefore(const Warp &warp, uint32_t block, uint32_t thread, uint32_t clock, const TensorOperation &second) {
  if (block == uint32_t(warp.block->index) && thread / laneCount == warp.index)
    return thread == second.warp * laneCount + second.lane;
  return isFenced(warp, {clock, thread / laneCount, 0, block});
}

/// What is asked of the regions of a range, whose neighbours mostly have the same answer.
class RegionChecks {
public:
  RegionChecks(Warp &warp, const TensorAccess &access) : warp_(warp), access_(access) {}

  /// Of regions that were written, and not read since.
  void check(const TensorStamp &write) { ask(write, false, asked_[0]); }
  void check(const TensorRegion &region) {
    check(region.write);
    for (size_t i = 0; access_.writes && i < 2; ++i)
      ask(region.reads[i], true, asked_[1 + i]);
  }

private:
  void ask(const TensorStamp &stamp, bool isRead, TensorStamp &asked) {
    if (!stamp.clock || stamp == asked)
      return;
    asked = stamp;
    const char *what = isRead ? "a read" : "a write";
    const TensorOperation *mine = access_.operation;
    const bool behind =
        mine && stamp.thread && isIssuedBefore(warp_, stamp.block, stamp.thread - 1, stamp.issued, *mine);
    const bool copied = stamp.pipeline == copyPipeline;
    if (behind && !isRead &&
        (copied ? pipelineOf(*mine) != copyPipeline : access_.writes && stamp.pipeline == pipelineOf(*mine)))
      return;
    // Tensor cores take a thread's products in order, on which compiled code rests where one reads what the next writes.
    if (!knows(warp_, stamp))
      return report(warp_, FindingKind::TensorRace, access_.lane,
                    format("{}, and nothing orders that after {}", reaches(access_), what), other(stamp),
                    behind && (isRead || copied));
    if (stamp.used)
      return report(warp_, FindingKind::TensorRace, access_.lane,
                    format("{} after a load whose registers were read, and no tcgen05.wait::ld", reaches(access_)),
                    other(stamp), true);
    if (!isFenced(warp_, stamp))
      report(warp_, FindingKind::TensorRace, access_.lane,
             format("{} after {} by other threads, and no tcgen05.fence lies on both sides of what orders the two",
                    reaches(access_), what),
             other(stamp), true);
  }

  std::string other(const TensorStamp &stamp) const {
    const bool engine = isEngine(access_.block, stamp.owner * laneCount);
    return format("{} at {}", engine ? std::string("tensor cores, issued") : format("warp {}", stamp.owner),
                  siteName(warp_, stamp.pc));
  }

  Warp &warp_;
  const TensorAccess &access_;
  TensorStamp asked_[3];
};

/// Whether the second of two operations of a thread finds what the first does to its cells (PTX ISA 9.7.16.6.2): a product
/// of the same D and shape, or one behind a copy.
bool areInOrder(const TensorOperation &first, const TensorOperation &second, bool writes) {
  const uint64_t before = pipelineOf(first), after = pipelineOf(second);
  return before == copyPipeline ? after != copyPipeline : writes && before == after;
}

/// Reports an access while a tensor core may still make another that does not go with it.
void checkOperation(Warp &warp, const TensorAccess &access, Block &issuer, const TensorOperation &other) {
  const bool overWrite = access.range.overlaps(other.write);
  const bool overRead = access.writes && std::ranges::any_of(other.reads, [&](const TensorRange &range) {
                          return access.range.overlaps(range);
                        });
  if (!overWrite && !overRead)
    return;
  const bool mine =
      access.operation &&
      isIssuedBefore(warp, uint32_t(issuer.index), other.warp * laneCount + other.lane, other.clock, *access.operation);
  if (mine && areInOrder(other, *access.operation, access.writes))
    return;
  // Tensor cores take what one thread issues in order, on which compiled code rests.
  const bool copies = other.form->copy != TensorCopyShape::None;
  const bool advisory = mine && (!overWrite || copies);
  report(
      warp, FindingKind::TensorRace, access.lane,
      format("{}, which a {} may still {}", reaches(access), other.name(), overWrite ? "write" : "read"),
      format("it was issued at {}, and no tcgen05.commit behind it is known to be complete", siteName(warp, other.pc)),
      advisory);
}

void checkTransfer(Warp &warp, const TensorAccess &access, const TensorTransfer &other) {
  if ((!access.writes && !other.stores) || other.used)
    return;
  if (std::ranges::none_of(other.ranges, [&](const TensorRange &range) { return access.range.overlaps(range); }))
    return;
  report(warp, FindingKind::TensorRace, access.lane,
         format("{}, which a tcgen05.{} may still {}", reaches(access), other.stores ? "st" : "ld",
                other.stores ? "write" : "read"),
         format("warp {} issued it at {}, and has not executed tcgen05.wait::{}", other.warp, siteName(warp, other.pc),
                other.stores ? "st" : "ld"));
}

void checkInFlight(Warp &warp, const TensorAccess &access) {
  TensorMemory &memory = tensorOf(access.block);
  for (const TensorTransfer &transfer : memory.transfers)
    checkTransfer(warp, access, transfer);
  for (Block *peer : pairOf(access.block))
    for (const TensorOperation &operation : tensorOf(*peer).operations)
      if (peer == &access.block || operation.form->pair)
        checkOperation(warp, access, *peer, operation);
}

} // namespace

std::string describeRange(const TensorRange &range) {
  std::string lanes;
  for (uint32_t group = 0; group < tensorGroups; ++group) {
    if (!(range.groups >> group & 1))
      continue;
    uint32_t last = group;
    while (last + 1 < tensorGroups && (range.groups >> (last + 1) & 1))
      ++last;
    lanes += format("{}{} to {}", lanes.empty() ? "" : ", ", group * tensorGroupLanes,
                    last * tensorGroupLanes + tensorGroupLanes - 1);
    group = last;
  }
  return format("lanes {} of columns {} to {}", lanes, range.column, range.column + range.columns - 1);
}

bool checkTensorAccess(Warp &warp, const TensorAccess &access) {
  TensorMemory &memory = tensorOf(access.block);
  if (access.range.column + access.range.columns > tensorColumns || !memory.allocationOf(access.range)) {
    report(warp, FindingKind::TensorAllocation, access.lane, format("{}, which are of no allocation", reaches(access)));
    return false;
  }
  const Checks &checks = warp.block->grid->options.checks;
  if (checks.async)
    checkInFlight(warp, access);
  if (!checks.races)
    return true;
  RegionChecks regions(warp, access);
  if (const TensorMemory::Written *written = memory.unsettledIn(access.range)) {
    regions.check(written->write);
    return true;
  }
  memory.settle(access.range);
  memory.eachRegion(access.range, [&](const TensorRegion &region, uint32_t, uint32_t) { regions.check(region); });
  return true;
}

void checkTensorFree(Warp &warp, Block &block, const TensorRange &range) {
  const TensorAccess access{block, 0, range, true, nullptr, "gives back"};
  const Checks &checks = warp.block->grid->options.checks;
  if (checks.async)
    checkInFlight(warp, access);
  RegionChecks regions(warp, access);
  tensorOf(block).settle(range);
  tensorOf(block).eachRegion(range, [&](TensorRegion &region, uint32_t, uint32_t) {
    if (checks.races)
      regions.check(region);
    region = {};
  });
}

void endTensorAccess(Block &block, const TensorRange &range, bool writes, const TensorStamp &stamp) {
  TensorMemory &memory = tensorOf(block);
  if (writes) {
    if (TensorMemory::Written *written = memory.unsettledIn(range)) {
      written->write = stamp;
      return;
    }
    memory.settle(memory.unsettled.size() < mostUnsettled ? range : tensorWhole);
    memory.unsettled.push_back({range, stamp});
    return;
  }
  memory.settle(range);
  memory.eachRegion(range, [&](TensorRegion &region, uint32_t, uint32_t) {
    // A reader's later read stands for its earlier one.
    const bool same = !region.reads[0].clock || region.reads[0].owner == stamp.owner;
    region.reads[same ? 0 : 1] = stamp;
  });
}

void fenceTensorBefore(Warp &warp) {
  std::vector<uint32_t> &before = tensorOf(*warp.block).fences[warp.index].before;
  if (!tracksShared(warp))
    return;
  before.push_back(warp.block->shadow.now(warp.index));
  if (before.size() > 2 * keptTensorFences)
    before.erase(before.begin(), before.end() - keptTensorFences);
  warp.block->shadow.advance(warp.index);
}

void fenceTensorAfter(Warp &warp) {
  if (!tracksShared(warp))
    return;
  const SharedShadow &shadow = warp.block->shadow;
  TensorFences &fences = tensorOf(*warp.block).fences[warp.index];
  const uint32_t *known = shadow.clocksOf(warp.index);
  fences.known.assign(known, known + shadow.warps());
  fences.moment = warp.order.known;
}

} // namespace weft::simulator::machine
