// Part of Weft. SPDX-License-Identifier: Apache-2.0
// warp-copy-with-ring: what a kernel copies once, for a loop to read in each iteration, comes with the first tiles of the
// loop's ring.
//
//   warp.async_copy %q to %tile                warp.mbarrier_init %ring
//   warp.async_commit                          warp.barrier
//   warp.async_wait                            warp.mbarrier_expect %first {bytes = bytes of %k and %q}
//   warp.mbarrier_init %ring           ─▶      warp.box_copy %q to %tile on %first
//   warp.barrier                               warp.box_copy %k to %ring[0] on %first
//   warp.mbarrier_expect %first                ...
//   warp.box_copy %k to %ring[0] on %first     warp.mbarrier_wait %first
//
// One thread asks for all of it as boxes, where every thread would compute addresses of pieces, and wait for its own and
// then for the others'. Whoever reads the tile has waited for the ring's first tiles.
#include "compiler/Target/TargetInfo.h"
#include "dialects/Tile/IR/Schedule.h"
#include "dialects/Warp/IR/WarpOps.h"
#include "dialects/Warp/Transforms/Copies/BoxRing.h"
#include "dialects/Warp/Transforms/LoopCarried.h"
#include "dialects/Warp/Transforms/Passes.h"
#include "dialects/Warp/Transforms/Scratch.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Dominance.h"
#include "mlir/IR/Matchers.h"

namespace weft::warp {
#define GEN_PASS_DEF_WARPCOPYWITHRING
#include "dialects/Warp/Transforms/Passes.h.inc"
} // namespace weft::warp

using namespace mlir;
using namespace weft;
using namespace weft::warp;

namespace {
struct CopyWithRing : weft::warp::impl::WarpCopyWithRingBase<CopyWithRing> {
  void runOnOperation() override;
};

/// The first ring of a kernel that bulk copies fill.
struct FirstRing {
  Operation *outer = nullptr;        ///< the op of the kernel's block that it begins in
  MbarrierExpectOp expect = nullptr; ///< of its first tiles
  MbarrierWaitOp wait = nullptr;     ///< for these, of the warps that read them
  scf::ForOp loop = nullptr;
};
} // namespace

static bool isFirstStage(Value barrier) {
  auto stage = barrier.getDefiningOp<StageOp>();
  return stage && matchPattern(stage.getIndex(), m_Zero());
}

/// Whether an op does to shared memory what a copy to bytes of it would have to wait for.
static bool usesShared(Operation *op) {
  if (isa<AllocOp, DeallocOp, StageOp, AsyncCopyOp, MbarrierInitOp>(op))
    return false;
  return scratchBytes(op) > 0 || llvm::any_of(op->getOperandTypes(), llvm::IsaPred<SharedType>);
}

/// The ring, where no shared memory has been used before; nothing else.
static FirstRing firstRing(func::FuncOp kernel) {
  FirstRing ring;
  MbarrierInitOp init;
  kernel.walk<WalkOrder::PreOrder>([&](Operation *op) {
    if (auto made = dyn_cast<MbarrierInitOp>(op); made && !init)
      init = made;
    ring.expect = dyn_cast<MbarrierExpectOp>(op);
    return ring.expect || usesShared(op) ? WalkResult::interrupt() : WalkResult::advance();
  });
  if (!init || !ring.expect || !isFirstStage(ring.expect.getBarrier()) ||
      ring.expect.getBarrier().getDefiningOp<StageOp>().getRing() != init.getRing())
    return {};
  ring.outer = kernel.getBody().front().findAncestorOpInBlock(*init);
  auto branch = dyn_cast<scf::IfOp>(ring.outer);
  if (ring.outer != init && (!branch || init->getParentOp() != branch))
    return {};
  kernel.walk<WalkOrder::PreOrder>([&](MbarrierWaitOp wait) {
    auto stage = wait.getBarrier().getDefiningOp<StageOp>();
    bool is = stage && stage.getRing() == init.getRing() && wait.getIndex() == 0 && !wait->getParentOfType<ProduceOp>();
    ring.wait = is ? wait : ring.wait;
    return is ? WalkResult::interrupt() : WalkResult::advance();
  });
  kernel.walk([&](scf::ForOp loop) { ring.loop = loop; });
  return ring.wait && ring.loop ? ring : FirstRing();
}

/// The copies that may come with the ring, whose readers have all waited for it, and their boxes.
static std::vector<std::pair<AsyncCopyOp, Box>> copiesBefore(const FirstRing &ring, const TargetInfo &target) {
  std::vector<std::pair<AsyncCopyOp, Box>> found;
  DominanceInfo dominance;
  for (auto copy : ring.outer->getBlock()->getOps<AsyncCopyOp>()) {
    auto tile = copy.getShared().getDefiningOp<AllocOp>();
    bool isOnly = tile && copy->isBeforeInBlock(ring.outer) && tile.getResult().getType().getStages() == 1;
    if (!isOnly || !llvm::all_of(tile->getUsers(), [&](Operation *user) {
          return user == copy || isa<DeallocOp>(user) || dominance.properlyDominates(ring.wait, user);
        }))
      continue;
    if (FoundBox box = findBox(copy, ring.loop, target); box.box)
      found.emplace_back(copy, std::move(*box.box));
  }
  return found;
}

static void copyWithRing(AsyncCopyOp copy, const Box &box, FirstRing &ring) {
  MappedBox mapped = mapBox(box, copy);
  OpBuilder b(ring.expect->getContext());
  b.setInsertionPointAfter(ring.expect);
  for (const BoxPart &part : box.parts)
    BoxCopyOp::create(b, copy.getLoc(), mapped.map, coordinatesOf(b, copy.getLoc(), mapped.coordinates, part),
                      copy.getShared(), ring.expect.getBarrier(), /*where=*/Value(), b.getI64IntegerAttr(part.offset),
                      /*by=*/IntegerAttr());
  ring.expect.setBytes(ring.expect.getBytes() + copy.getShared().getType().getTileBytes());
  copy.erase();
}

/// Erases commits of what is no longer copied, and waits for it, before the ring.
static void eraseEmptyGroups(const FirstRing &ring) {
  Block &block = *ring.outer->getBlock();
  SmallVector<Operation *> empty;
  for (Operation &op : llvm::make_range(block.begin(), ring.outer->getIterator())) {
    if (op.walk([](AsyncCopyOp) { return WalkResult::interrupt(); }).wasInterrupted())
      return; // of other groups, which are waited for with those that are empty
    if (isa<AsyncCommitOp, AsyncWaitOp>(op))
      empty.push_back(&op);
  }
  for (Operation *op : empty)
    op->erase();
}

void CopyWithRing::runOnOperation() {
  func::FuncOp kernel = getOperation();
  const TargetInfo &target = TargetInfo::ofOrDefault(kernel);
  if (target.boxCopies.mostRank == 0 || tile::scheduleOf(kernel).cluster > 1)
    return;
  FirstRing ring = firstRing(kernel);
  if (!ring.outer)
    return;
  auto copies = copiesBefore(ring, target);
  for (auto &[copy, box] : copies)
    copyWithRing(copy, box, ring);
  if (copies.empty())
    return;
  eraseEmptyGroups(ring);
  eraseDeadOps(kernel);
}
