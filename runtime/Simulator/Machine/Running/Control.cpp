// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Executors of control flow (PTX ISA 9.7.12), and of records that the decoder makes.
#include "runtime/Simulator/Machine/Checks/Remote.h"
#include "runtime/Simulator/Machine/Running/AsyncCopies.h"
#include "runtime/Simulator/Machine/Running/Barriers.h"
#include "runtime/Simulator/Machine/Running/BulkCopies.h"
#include "runtime/Simulator/Machine/Running/Clusters.h"
#include "runtime/Simulator/Machine/Running/Divergence.h"
#include "runtime/Simulator/Machine/Running/Interpreter.h"
#include "runtime/Simulator/Machine/Running/Spinning.h"
#include "runtime/Simulator/Machine/Running/Tensor/Allocations.h"
#include "runtime/Simulator/Machine/Running/Warpgroups.h"
#include "runtime/Simulator/Machine/State/Executors.h"
#include "runtime/Simulator/Machine/State/Lanes.h"
#include "runtime/Support/Format.h"

namespace weft::simulator::machine {

void runJoin(Warp &warp, const Record &, uint32_t) { arrive(warp, warp.here()); }

void runBranch(Warp &warp, const Record &record, uint32_t mask) {
  if (mask == warp.mask) {
    warp.pc = record.target;
    return;
  }
  ++warp.worker->counters.divergentBranches;
  ++warp.worker->costs[warp.here()].divergent;
  divide(warp, mask, record.target, record.join);
}

void runBranchTable(Warp &warp, const Record &record, uint32_t mask) {
  const auto &targets = static_cast<const BranchTable *>(record.aux)->targets;
  const uint32_t *index = warp.reg<uint32_t>(record.op[0]);
  unsigned first = firstLane(mask);
  if (index[first] >= targets.size()) {
    report(warp, FindingKind::Trap, first,
           format("expected an index below {}, but got {}", targets.size(), index[first]));
    return abortBlock(*warp.block);
  }
  uint32_t same = 0;
  eachLane(mask, [&](unsigned lane) { same |= uint32_t(index[lane] == index[first]) << lane; });
  uint32_t target = targets[index[first]];
  if (same == warp.mask) {
    warp.pc = target;
    return;
  }
  // One target after the other: the rest comes back to this record.
  ++warp.worker->counters.divergentBranches;
  ++warp.worker->costs[warp.here()].divergent;
  if (uint32_t rest = mask & ~same; rest) {
    uint32_t here = warp.here();
    warp.pc = here;
    divide(warp, same, target, record.join);
  } else {
    divide(warp, same, target, record.join);
  }
}

void runExit(Warp &warp, const Record &, uint32_t mask) {
  completeAnnounced(warp, mask);
  if (warp.block->grid->options.checks.async)
    for (const AsyncCopy &copy : warp.async.copies)
      if (copy.mask & mask) {
        report(warp, FindingKind::ExitWithAsync, firstLane(copy.mask & mask),
               "ends while a cp.async that it issued is in flight", siteName(warp, copy.pc));
        break;
      }
  for (AsyncCopy &copy : warp.async.copies)
    copy.mask &= ~mask;
  if (warp.block->engines)
    endBulk(warp, mask);
  if (warp.block->engines && warp.block->engines->tensor)
    endTensor(warp, mask);
  if (warp.products && !(warp.live & ~mask))
    endProducts(warp);
  if (!warp.block->lastRemote.empty() && endsBlock(warp, mask))
    checkLastAccesses(warp);
  warp.worker->changed = true;
  exitLanes(warp, mask);
  if (!warp.live)
    return;
  recheckBarriers(*warp.block);
  recheckCluster(*warp.block->cluster);
}

void runTrap(Warp &warp, const Record &, uint32_t mask) {
  report(warp, FindingKind::Trap, firstLane(mask), "traps, or calls what is no function");
  abortBlock(*warp.block);
}

void runCallTest(Warp &warp, const Record &record, uint32_t mask) {
  const uint64_t *address = warp.reg<const uint64_t>(record.op[1]);
  uint32_t same = 0;
  for (unsigned lane = 0; lane < laneCount; ++lane)
    same |= uint32_t(address[lane] == uint64_t(record.imm)) << lane;
  commitPredicate(warp.predicate(record.op[0]), same, mask);
}

void runNarrow(Warp &warp, const Record &record, uint32_t mask) {
  lanes<[](uint64_t a) { return uint32_t(a); }, uint32_t, uint64_t>(warp, record, mask);
}
void runWidenUnsigned(Warp &warp, const Record &record, uint32_t mask) {
  lanes<[](uint32_t a) { return uint64_t(a); }, uint64_t, uint32_t>(warp, record, mask);
}
void runWidenSigned(Warp &warp, const Record &record, uint32_t mask) {
  lanes<[](int32_t a) { return int64_t(a); }, int64_t, int32_t>(warp, record, mask);
}

void runNonZero(Warp &warp, const Record &record, uint32_t mask) {
  const auto *values = warp.reg<const uint32_t>(record.op[1]);
  uint32_t bits = 0;
  for (unsigned lane = 0; lane < laneCount; ++lane)
    bits |= uint32_t(values[lane] != 0) << lane;
  commitPredicate(warp.predicate(record.op[0]), bits, mask);
}

void runOpposite(Warp &warp, const Record &record, uint32_t mask) {
  commitPredicate(warp.predicate(record.op[0]), ~warp.predicate(record.op[1]), mask);
}

/// %clock and %globaltimer.
void runDynamicSpecial(Warp &warp, const Record &record, uint32_t mask) {
  uint64_t now = clockOf(warp);
  warp.spun = true;
  if (record.imm & 2)
    now >>= 32;
  if (record.imm & 1) {
    uint64_t values[laneCount];
    std::fill_n(values, laneCount, now);
    commit(warp.reg<uint64_t>(record.op[0]), values, mask);
  } else {
    uint32_t values[laneCount];
    std::fill_n(values, laneCount, uint32_t(now));
    commit(warp.reg<uint32_t>(record.op[0]), values, mask);
  }
}

} // namespace weft::simulator::machine
