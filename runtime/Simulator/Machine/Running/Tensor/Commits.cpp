// Part of Weft. SPDX-License-Identifier: Apache-2.0
#include "runtime/Simulator/Machine/Running/Tensor/Commits.h"
#include "runtime/Simulator/Machine/Checks/Access.h"
#include "runtime/Simulator/Machine/Checks/EngineReads.h"
#include "runtime/Simulator/Machine/Checks/Tensor/TensorAccess.h"
#include "runtime/Simulator/Machine/Running/BulkCopies.h"
#include "runtime/Simulator/Machine/Running/Mbarriers.h"
#include "runtime/Simulator/Machine/Running/Tensor/TensorProducts.h"
#include "runtime/Support/Format.h"

#include <algorithm>
#include <utility>

namespace weft::simulator::machine {
namespace {

/// A granule has a bit for each of 32 readers: of other engines, the thread that issued the operation reads.
constexpr uint32_t mostReaders = 32;

/// An operation is over, as of the clock of an engine of its block.
void endOperation(Block &block, const TensorOperation &op, uint32_t engine) {
  const uint32_t now = block.shadow.now(engine);
  const TensorStamp stamp{
      now, engine, op.pc, uint32_t(block.index), false, op.warp * laneCount + op.lane + 1, op.clock, pipelineOf(op)};
  Warp &warp = block.warps[op.warp];
  for (Block *each : blocksOf(block, *op.form)) {
    for (const TensorRange &range : op.reads)
      if (range.columns)
        endTensorAccess(*each, range, false, stamp);
    endTensorAccess(*each, op.write, true, stamp);
    for (const auto &pieces : {op.aPieces, op.bPieces}) {
      if (!pieces)
        continue;
      if (each != &block) {
        std::vector<SharedRange> ranges;
        for (const uint32_t piece : pieces->begins)
          ranges.push_back({piece, 16});
        endRemoteEngineRead(*each, {block.rank, engine, 0, now, op.pc}, ranges);
      } else if (engine < mostReaders) {
        endEngineRead(warp, pieces->begins, engine, now, op.pc);
      } else {
        endEngineRead(warp, pieces->begins, op.warp, op.clock, op.pc);
      }
    }
  }
}

/// The operations of a commit are over: those of its thread that no commit before it had.
Moment finish(Block &block, TensorCommit &commit, Moment before) {
  computeTensor(block, commit.end);
  const uint32_t engine = engineOf(block, commit.object);
  const bool tracks = tracksShared(block.warps[0]);
  std::erase_if(tensorOf(block).operations, [&](const TensorOperation &op) {
    if (op.number >= commit.end || op.warp != commit.warp || op.lane != commit.lane)
      return false;
    if (tracks)
      endOperation(block, op, engine);
    return true;
  });
  if (!block.grid->options.checks.races)
    return 0;
  Warp &port = block.engines->port;
  port.index = engine;
  port.order = {};
  port.order.known = block.grid->order.join(commit.caused, before);
  return snapshot(port);
}

/// All commits of a thread up to one have what they wait for.
Moment finishUpTo(Block &block, const TensorCommit &last) {
  TensorMemory &memory = tensorOf(block);
  Moment &done = memory.done[last.warp * laneCount + last.lane];
  for (TensorCommit &commit : memory.commits) {
    if (commit.warp == last.warp && commit.lane == last.lane && !commit.finished) {
      commit.done = done = finish(block, commit, done);
      commit.finished = true;
    }
    if (&commit == &last)
      break;
  }
  return last.done;
}

/// Findings in a scope are those of the record of a commit.
struct AtCommit {
  Warp &warp;
  uint32_t after;
  AtCommit(Block &issuer, const TensorCommit &commit)
      : warp(issuer.warps[commit.warp]), after(std::exchange(warp.pc, commit.pc + 1)) {}
  ~AtCommit() { warp.pc = after; }
  void misuse(const TensorCommit &commit, const std::string &what) const {
    report(warp, FindingKind::MbarrierMisuse, commit.lane, what);
  }
};

/// A commit, whose operations are over, arrives at its mbarrier. False where it ended no phase.
bool arrive(Block &issuer, const TensorCommit &commit, Moment done) {
  using namespace mbarrier;
  Block &target = *commit.target;
  std::byte *at = target.shared.data() + commit.object;
  uint64_t before;
  std::memcpy(&before, at, 8);
  AtCommit record(issuer, commit);
  auto known = target.mbarriers.find(commit.object);
  if ((before & markMask) != mark || known == target.mbarriers.end()) {
    record.misuse(commit, format("arrives at what is no mbarrier any more at byte {} of shared memory", commit.object));
    return false;
  }
  if (pending(before) == 0) {
    record.misuse(commit, "arrives at an mbarrier that waits for no arrival in this phase");
    return false;
  }
  const uint32_t engine = engineOf(target, commit.object);
  const uint64_t after = settled(arrivals(before, 1, false), known->second.transactions);
  rememberObject(target, {target.rank, engine, 0, target.shadow.warps() ? target.shadow.now(engine) : 0, commit.pc},
                 commit.object, before, after);
  Warp &port = target.engines->port;
  port.index = engine;
  port.order = {};
  port.order.known = done;
  StrongAccess access(port, orderStrong | orderRelease | orderCluster, sharedKey(target, commit.object));
  std::memcpy(at, &after, 8);
  access.done(false, true, true);
  if (phase(after) != phase(before))
    access.copyTo(phaseKey(target, commit.object, phase(before)));
  record.warp.worker->changed = true;
  return phase(after) != phase(before);
}

/// The first commit of a block that goes to an mbarrier arrives.
bool landFirst(Block &issuer, std::vector<TensorCommit>::iterator commit) {
  const Moment done = finishUpTo(issuer, *commit);
  const TensorCommit landing = *commit;
  tensorOf(issuer).commits.erase(commit);
  return arrive(issuer, landing, done);
}

} // namespace

void commitTensor(Warp &warp, unsigned lane, Block &target, uint32_t object) {
  Block &block = *warp.block;
  uint64_t bits = 0;
  std::memcpy(&bits, target.shared.data() + object, 8);
  if ((bits & mbarrier::markMask) != mbarrier::mark)
    return report(warp, FindingKind::MbarrierMisuse, lane, "arrives at an mbarrier that was not initialised");
  checkArrival(warp, target, lane, object, bits);
  TensorMemory &memory = tensorOf(block);
  TensorCommit commit{warp.here(), warp.index, lane, memory.issued, &target, object, 0, 0, false};
  if (block.grid->options.checks.races)
    commit.caused = snapshot(warp);
  memory.commits.push_back(commit);
  warp.worker->changed = true;
  if (block.engines->early())
    landFirst(block, memory.commits.end() - 1);
}

bool landCommits(Block &block, uint32_t object) {
  bool any = false;
  for (const auto &issuer : block.cluster->blocks) {
    if (!issuer->engines || !issuer->engines->tensor)
      continue;
    std::vector<TensorCommit> &commits = tensorOf(*issuer).commits;
    for (;;) {
      auto commit = std::ranges::find_if(
          commits, [&](const TensorCommit &each) { return each.target == &block && each.object == object; });
      if (commit == commits.end())
        break;
      // Not yet: whoever asks only once goes on too early.
      if (!any && block.engines->early()) {
        block.warps[0].worker->changed = true;
        return false;
      }
      any = true;
      if (landFirst(*issuer, commit))
        return true;
    }
  }
  return any;
}

void checkCommits(Warp &warp, Block &block, unsigned lane, uint32_t object) {
  for (const auto &issuer : block.cluster->blocks) {
    if (!issuer->engines || !issuer->engines->tensor)
      continue;
    for (const TensorCommit &commit : tensorOf(*issuer).commits)
      if (commit.target == &block && commit.object == object)
        return report(warp, FindingKind::MbarrierMisuse, lane,
                      "ends an mbarrier at which a commit of tensor cores has still to arrive",
                      format("it was issued at {}", siteName(warp, commit.pc)), true);
  }
}

} // namespace weft::simulator::machine
