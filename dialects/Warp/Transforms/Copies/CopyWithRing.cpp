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
// then for the others'. Whoever reads the tile has waited for the ring's first tiles. Where there are several loops, of
// which the first may have no iteration, and one role, the tile has a barrier of its own, and who reads it waits there.
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
  return ring.wait ? ring : FirstRing();
}

namespace {
/// A copy that is a box.
struct BoxedCopy {
  AsyncCopyOp copy;
  Box box;
  MappedBox mapped = {};
  int64_t bytes() { return copy.getShared().getType().getTileBytes(); }
};
} // namespace

/// The ops that read a tile.
static SmallVector<Operation *> readersOf(AsyncCopyOp copy) {
  return llvm::filter_to_vector(copy.getShared().getUsers(),
                                [&](Operation *user) { return user != copy && !isa<DeallocOp>(user); });
}

/// The copies of a kernel's block before the first op that uses shared memory, for a loop, that are boxes.
static std::vector<BoxedCopy> boxedCopies(func::FuncOp kernel, const TargetInfo &target) {
  std::vector<BoxedCopy> found;
  scf::ForOp loop;
  kernel.walk([&](scf::ForOp each) { loop = each; });
  for (Operation &op : kernel.getBody().front()) {
    auto copy = dyn_cast<AsyncCopyOp>(op);
    auto tile = copy ? copy.getShared().getDefiningOp<AllocOp>() : AllocOp();
    if (loop && tile && tile.getResult().getType().getStages() == 1 && tile->getBlock() == op.getBlock())
      if (FoundBox box = findBox(copy, loop, target); box.box)
        found.push_back({copy, std::move(*box.box)});
    if (op.walk([](Operation *each) {
            return usesShared(each) ? WalkResult::interrupt() : WalkResult::advance();
          }).wasInterrupted())
      break;
  }
  return found;
}

/// Starts the copy where an op has expected its bytes.
static void copyBehind(BoxedCopy &each, MbarrierExpectOp expect) {
  OpBuilder b(expect->getContext());
  b.setInsertionPointAfter(expect);
  copyParts(b, each.copy.getLoc(), each.box, each.mapped.map, each.mapped.coordinates, each.copy.getShared(),
            expect.getBarrier());
  each.copy.erase();
}

static void copyWithRing(std::vector<BoxedCopy> &copies, FirstRing &ring) {
  for (BoxedCopy &each : copies) {
    ring.expect.setBytes(ring.expect.getBytes() + each.bytes());
    copyBehind(each, ring.expect);
  }
}

/// Lets some ops wait at a barrier whose first phase ends when all has come: before the first of them in a block, or, in a
/// branch, there. Whoever has waited, waits for nothing.
static void waitBefore(const llvm::SmallPtrSetImpl<Operation *> &ops, Block &block, Value barrier) {
  for (Operation &op : llvm::make_early_inc_range(block)) {
    auto isOne = [&](Operation *each) { return ops.contains(each) ? WalkResult::interrupt() : WalkResult::advance(); };
    if (!op.walk(isOne).wasInterrupted())
      continue;
    if (isa<scf::IfOp>(op)) {
      for (Region &branch : op.getRegions())
        for (Block &inner : branch)
          waitBefore(ops, inner, barrier);
      continue;
    }
    OpBuilder b(&op);
    Value first = arith::ConstantOp::create(b, op.getLoc(), b.getI32IntegerAttr(0));
    MbarrierWaitOp::create(b, op.getLoc(), barrier, first);
    return;
  }
}

/// The copies have a barrier of their own, which lives as long as the kernel.
static void copyOnOwnBarrier(std::vector<BoxedCopy> &copies) {
  Operation *at = copies.front().copy;
  Location loc = at->getLoc();
  Block &block = *at->getBlock();
  // Where nobody reads a tile, its bytes are others', and the block ends, when it has come all the same.
  llvm::SmallPtrSet<Operation *, 8> waits{block.getTerminator()};
  int64_t bytes = 0;
  for (BoxedCopy &each : copies) {
    for (Operation *user : each.copy.getShared().getUsers())
      if (user != each.copy)
        waits.insert(user);
    bytes += each.bytes();
    at = each.copy; // behind what all of them are computed from
  }
  OpBuilder b(at);
  SharedType one = BoxRing::typeOf(b.getContext(), /*stages=*/1);
  Value barrier = AllocOp::create(b, loc, one, IntegerAttr(), IntegerAttr());
  MbarrierInitOp::create(b, loc, barrier);
  BarrierOp::create(b, loc);
  auto branch = scf::IfOp::create(b, loc, IsFirstThreadOp::create(b, loc), /*withElseRegion=*/false);
  b.setInsertionPointToStart(branch.thenBlock());
  auto expect = MbarrierExpectOp::create(b, loc, barrier, b.getI64IntegerAttr(bytes));
  for (BoxedCopy &each : copies)
    copyBehind(each, expect);
  waitBefore(waits, block, barrier);
}

/// Whether as many blocks are resident with a barrier of some copies' own, of whose place no more may be taken than what
/// tiles begin at multiples of.
static bool hasRoom(func::FuncOp kernel, const TargetInfo &target) {
  const int64_t least = leastSharedBytes(kernel);
  return least + tileAlignment(kernel) <= mostSharedBytes(kernel, least, target);
}

/// Erases commits of what is no longer copied, and waits for it.
static void eraseEmptyGroups(func::FuncOp kernel) {
  SmallVector<Operation *> empty;
  for (Operation &op : kernel.getBody().front()) {
    if (op.walk([](AsyncCopyOp) { return WalkResult::interrupt(); }).wasInterrupted())
      break; // of other groups, which are waited for with those that are empty
    if (isa<AsyncCommitOp, AsyncWaitOp>(op))
      empty.push_back(&op);
  }
  for (Operation *op : empty)
    op->erase();
}

static bool hasProducer(func::FuncOp kernel) {
  return kernel.walk([](ProduceOp) { return WalkResult::interrupt(); }).wasInterrupted();
}

void CopyWithRing::runOnOperation() {
  func::FuncOp kernel = getOperation();
  const TargetInfo &target = TargetInfo::ofOrDefault(kernel);
  if (target.boxCopies.mostRank == 0 || tile::scheduleOf(kernel).cluster > 1)
    return;
  std::vector<BoxedCopy> copies = boxedCopies(kernel, target);
  if (copies.empty())
    return;
  FirstRing ring = firstRing(kernel);
  DominanceInfo dominance;
  auto comesWithRing = [&](BoxedCopy &each) {
    return ring.outer && each.copy->isBeforeInBlock(ring.outer) &&
           llvm::all_of(readersOf(each.copy),
                        [&](Operation *user) { return dominance.properlyDominates(ring.wait, user); });
  };
  const bool withRing = llvm::all_of(copies, comesWithRing);
  if (!withRing && (hasProducer(kernel) || !hasRoom(kernel, target)))
    return;
  for (BoxedCopy &each : copies)
    each.mapped = mapBox(each.box, each.copy);
  if (withRing)
    copyWithRing(copies, ring);
  else
    copyOnOwnBarrier(copies);
  eraseEmptyGroups(kernel);
  eraseDeadOps(kernel);
}
