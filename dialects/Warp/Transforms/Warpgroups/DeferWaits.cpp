// Part of Weft. SPDX-License-Identifier: Apache-2.0
// warp-defer-waits: products of warpgroups are waited for where their sums are needed first.
//
//   %d = warp.wgmma %q, %k, %zero                    %d = warp.wgmma %q, %k, %zero
//   %s = warp.wgmma_wait %d {pending = 0}            %e = warp.wgmma %o, %v, %zero
//   %e = warp.wgmma %o, %v, %zero             ─▶     %s = warp.wgmma_wait %d {pending = 1}
//   %t = warp.wgmma_wait %e {pending = 0}            use(%s)                            beside the second product
//   use(%s)                                          %t = warp.wgmma_wait %e {pending = 0}
//   use(%t)                                          use(%t)
//
// A product that needs nothing of what is computed from an earlier one is started right behind that one, if it starts from
// zero, the iteration has more than three, or tensor memory holds the sums of all. A product whose sums the next one goes on
// from, by the same instructions, is not waited for at all: theirs is one wait. No wait moves past a barrier or an exchange,
// behind which other threads may write the tiles that its product reads, nor out of its block.
#include "dialects/Tile/IR/TileOps.h"
#include "dialects/Warp/IR/WarpOps.h"
#include "dialects/Warp/Transforms/Passes.h"
#include "dialects/Warp/Transforms/Tensor/TensorProducts.h"

namespace weft::warp {
#define GEN_PASS_DEF_WARPDEFERWAITS
#include "dialects/Warp/Transforms/Passes.h.inc"
} // namespace weft::warp

using namespace mlir;
using namespace weft::warp;

namespace {
struct DeferWaits : weft::warp::impl::WarpDeferWaitsBase<DeferWaits> {
  void runOnOperation() override;
};
} // namespace

/// The product that a wait is for, where it stands in the same block and is the only one.
static WgmmaOp productOf(WgmmaWaitOp wait) {
  if (wait.getValues().size() != 1)
    return {};
  auto product = wait.getValues().front().getDefiningOp<WgmmaOp>();
  return product && product->getBlock() == wait->getBlock() ? product : WgmmaOp();
}

/// Whether no product may be under way any more when an op runs: other threads may write tiles behind it, or what it
/// does is not seen from here.
static bool needsAllFinished(Operation *op) {
  bool hidden = op->getNumRegions() != 0 && !isa<ProduceOp>(op); // which is another warp's
  return op->hasTrait<OpTrait::IsTerminator>() || hidden || op->hasAttr(scratchAttrName) ||
         isa<BarrierOp, weft::tile::BarrierOp, StoreSharedOp, AsyncCopyOp, BoxCopyOp, MbarrierArriveOp>(op);
}

/// The first op behind a wait that needs it.
static Operation *firstInNeed(WgmmaWaitOp wait) {
  Operation *op = wait->getNextNode();
  while (!needsAllFinished(op) && !llvm::is_contained(op->getOperands(), wait.getResults().front()))
    op = op->getNextNode();
  return op;
}

/// Whether a product goes on from what a wait gives, and nothing else takes that.
static bool goesOnFrom(Operation *op, WgmmaWaitOp wait) {
  auto next = dyn_cast<WgmmaOp>(op);
  return next && wait.getResults().front().hasOneUse() && next.getAcc() == wait.getResults().front() &&
         next.getShape() == productOf(wait).getShape();
}

/// Whether what an op computes for a product may be computed as early as the product is started.
static bool goesAlong(Operation *op) {
  return !isa<WgmmaWaitOp>(op) && (isMemoryEffectFree(op) || isa<LoadSharedOp, LoadShiftedOp>(op));
}

/// Whether an iteration has so many products that those which start from sums are to be started early too: of three, two
/// at once would leave the matrix units idle while all warpgroups compute the third's operand (the loop model's finding,
/// docs/Benchmarks.md).
static bool hasManyProducts(Block &block) { return llvm::count_if(block, llvm::IsaPred<WgmmaOp>) > 3; }

/// Starts a product as early as its operands are there, if that is before an earlier one is waited for. What it reads is
/// in shared memory since the last barrier; ops that compute its operands go along. It keeps its place among the products.
static void startEarly(WgmmaOp product) {
  SmallVector<Operation *> moved{product};
  Operation *to = product;
  bool passesWait = false;
  for (Operation *op = product->getPrevNode(); op; op = op->getPrevNode()) {
    if (needsAllFinished(op) || isa<WgmmaOp, AsyncWaitOp, MbarrierWaitOp, ProxyFenceOp>(op))
      break;
    bool feeds = llvm::any_of(op->getUsers(), [&](Operation *user) { return llvm::is_contained(moved, user); });
    if (feeds && !goesAlong(op))
      break;
    if (feeds) {
      moved.push_back(op);
      continue;
    }
    to = op;
    passesWait |= isa<WgmmaWaitOp>(op);
  }
  if (!passesWait)
    return;
  for (Operation *op : llvm::reverse(moved))
    op->moveBefore(to);
}

/// Products that are started between one and its wait, and may go on.
static int startedBetween(WgmmaOp product, WgmmaWaitOp wait) {
  int count = 0;
  for (Operation *op = product->getNextNode(); op != wait; op = op->getNextNode())
    count += isa<WgmmaOp>(op);
  return count;
}

void DeferWaits::runOnOperation() {
  SmallVector<WgmmaOp> early;
  getOperation().walk([&](WgmmaOp product) {
    if (product.startsFromZero() || hasManyProducts(*product->getBlock()) ||
        (isInTensorMemory(product) && fitsBesideOthers(product)))
      early.push_back(product);
  });
  for (WgmmaOp product : early)
    startEarly(product);
  SmallVector<WgmmaWaitOp> waits;
  getOperation().walk([&](WgmmaWaitOp wait) {
    if (productOf(wait))
      waits.push_back(wait);
  });
  SmallVector<WgmmaWaitOp> left;
  for (WgmmaWaitOp wait : waits) {
    Operation *first = firstInNeed(wait);
    if (goesOnFrom(first, wait)) {
      wait.getResults().front().replaceAllUsesWith(wait.getValues().front());
      wait.erase();
      continue;
    }
    wait->moveBefore(first);
    left.push_back(wait);
  }
  for (WgmmaWaitOp wait : left)
    wait.setPending(std::min(startedBetween(productOf(wait), wait), WgmmaWaitOp::mostPending));
}
