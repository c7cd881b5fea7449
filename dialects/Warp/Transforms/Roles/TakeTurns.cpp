// Part of Weft. SPDX-License-Identifier: Apache-2.0
// warp-take-turns: one warpgroup's products run beside what another computes from its own.
//
//                                         warp.turn_pass {last}      the first one's turn
//   scf.for {                             scf.for {
//     warp.mbarrier_wait                    warp.mbarrier_wait
//                                           warp.turn_wait
//     %d = warp.wgmma %q, %k, %zero         %d = warp.wgmma %q, %k, %zero
//     %e = warp.wgmma %p, %v, %acc    ─▶    %e = warp.wgmma %p, %v, %acc
//                                           warp.turn_pass
//     %s = warp.wgmma_wait %d               %s = warp.wgmma_wait %d
//     use(%s)                               use(%s)
//   }                                     }
//                                         warp.turn_wait {first}     the turn that the last one passed on
//
// Of loops that follow one another the turn goes on from one to the next: to begin anew, the last warpgroup could pass the
// first one a turn before that has taken the one before it.
//
// Warpgroups that are free to, as those of a block with a producer are, may also compute at the same time, and leave the
// matrix units idle then. Turns start a warpgroup's products together, and behind those of the one before.
#include "compiler/Support/Remarks.h"
#include "compiler/Target/TargetInfo.h"
#include "dialects/Tile/IR/TileOps.h"
#include "dialects/Warp/IR/WarpOps.h"
#include "dialects/Warp/Transforms/Arithmetic/LoopClocks.h"
#include "dialects/Warp/Transforms/Passes.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

namespace weft::warp {
#define GEN_PASS_DEF_WARPTAKETURNS
#include "dialects/Warp/Transforms/Passes.h.inc"
} // namespace weft::warp

using namespace mlir;
using namespace weft;
using namespace weft::warp;

namespace {
struct TakeTurns : weft::warp::impl::WarpTakeTurnsBase<TakeTurns> {
  void runOnOperation() override;
};

/// What a warpgroup starts in an iteration, from its first product to its last.
struct Section {
  Operation *first = nullptr, *last = nullptr;
};
} // namespace

/// The products of a loop's body, if what one gives is waited for while another is under way.
static std::optional<Section> findSection(scf::ForOp loop) {
  Section section;
  for (auto product : loop.getBody()->getOps<WgmmaOp>()) {
    section.first = section.first ? section.first : product;
    section.last = product;
  }
  if (!section.first)
    return std::nullopt;
  for (Operation *op = section.first; op != section.last; op = op->getNextNode())
    if (isa<WgmmaWaitOp>(op))
      return std::nullopt;
  bool beside = llvm::any_of(loop.getBody()->getOps<WgmmaWaitOp>(), [&](WgmmaWaitOp wait) {
    return wait.getPending() > 0 && !wait.getValues().empty() && section.last->isBeforeInBlock(wait);
  });
  return beside ? std::optional(section) : std::nullopt;
}

/// Whether all warps of the schedule meet in an iteration.
static bool warpsMeet(scf::ForOp loop) {
  return loop
      .walk([](Operation *op) {
        bool meet = isa<BarrierOp, tile::BarrierOp>(op) || op->hasAttr(scratchAttrName);
        return meet ? WalkResult::interrupt() : WalkResult::advance();
      })
      .wasInterrupted();
}

/// Why turns would not pay; empty where they do. Beside products that take longer, two warpgroups that compute at once
/// share nothing that they have to wait for.
static StringRef whyNoTurns(scf::ForOp loop, int warps, const TargetInfo &target) {
  if (warpsMeet(loop))
    return "all meet in an iteration";
  if (clocksOfSpecials(loop, warps, target) < clocksOfProducts(loop, target))
    return "products take longer than exponentials";
  return "";
}

/// Whether a loop follows another without anything between them where warps meet or take turns.
static bool follows(scf::ForOp loop, scf::ForOp before) {
  if (loop->getBlock() != before->getBlock())
    return false;
  Operation *op = before->getNextNode();
  while (op && op != loop && (isMemoryEffectFree(op) || isa<scf::ForOp>(op)))
    op = op->getNextNode();
  return op == loop;
}

static void takeTurns(scf::ForOp loop, Section section) {
  OpBuilder b(section.first);
  TurnWaitOp::create(b, loop.getLoc(), /*first=*/false);
  b.setInsertionPointAfter(section.last);
  TurnPassOp::create(b, loop.getLoc(), /*last=*/false);
}

/// The first turn of loops that follow one another, and the wait for the last one.
static void enclose(scf::ForOp first, scf::ForOp last) {
  OpBuilder b(first);
  TurnPassOp::create(b, first.getLoc(), /*last=*/true);
  b.setInsertionPointAfter(last);
  TurnWaitOp::create(b, last.getLoc(), /*first=*/true);
}

void TakeTurns::runOnOperation() {
  func::FuncOp kernel = getOperation();
  const TargetInfo &target = TargetInfo::ofOrDefault(kernel);
  // Of products in tensor memory no thread waits while another's run: warpgroups come to alternate by themselves.
  if (target.warpgroups.tensorColumns)
    return;
  auto schedule = kernel->getAttrOfType<tile::ScheduleAttr>(tile::scheduleAttrName);
  const int warpgroups = schedule ? schedule.getWarps() / target.warpgroups.warps : 1;
  constexpr int barriersOfRoles = 2;
  bool produces = kernel.walk([](ProduceOp) { return WalkResult::interrupt(); }).wasInterrupted();
  if (!produces || warpgroups < 2 || barriersOfRoles + warpgroups > target.namedBarriers)
    return;
  SmallVector<std::pair<scf::ForOp, scf::ForOp>> runs;
  kernel.walk([&](scf::ForOp loop) {
    std::optional<Section> section = findSection(loop);
    if (!section)
      return;
    if (StringRef hindrance = whyNoTurns(loop, schedule.getWarps(), target); !hindrance.empty()) {
      remarks::missed(remarks::warpgroupTurns, loop)
          << remark::reason("warpgroups do not take turns in starting products: {0}", hindrance);
      return;
    }
    if (!runs.empty() && follows(loop, runs.back().second))
      runs.back().second = loop;
    else
      runs.push_back({loop, loop});
    takeTurns(loop, *section);
  });
  for (auto [first, last] : runs)
    enclose(first, last);
}
