// Part of Weft. SPDX-License-Identifier: Apache-2.0
// warp-await-copies-late: what a kernel copies before its loop arrives beside the loop's first tiles, not before these are
// asked for.
//
//   warp.async_copy %q to %tile                      warp.async_copy %q to %tile
//   warp.async_commit                                warp.async_commit
//   warp.async_wait {pending = 0}                    scf.if %any {
//   scf.if %any {                                      warp.mbarrier_init %ring
//     warp.mbarrier_init %ring             ─▶          warp.barrier        the ring's first copies start behind it
//     warp.barrier                                     warp.async_wait {pending = 0}
//     ..                                               warp.proxy_fence
//   }                                                  warp.barrier
//                                                      ..
//                                                    }
//                                                    warp.async_wait {pending = 0}
//
// Bulk copies count their own bytes, so that a wait for copies of threads says nothing of them. One barrier more a kernel is
// far less than the way to device memory, which was gone twice.
#include "dialects/Tile/IR/TileOps.h"
#include "dialects/Warp/IR/WarpOps.h"
#include "dialects/Warp/Transforms/Copies/LateGroups.h"
#include "dialects/Warp/Transforms/Passes.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

namespace weft::warp {
#define GEN_PASS_DEF_WARPAWAITCOPIESLATE
#include "dialects/Warp/Transforms/Passes.h.inc"
} // namespace weft::warp

using namespace mlir;
using namespace weft;
using namespace weft::warp;

namespace {
struct AwaitCopiesLate : weft::warp::impl::WarpAwaitCopiesLateBase<AwaitCopiesLate> {
  void runOnOperation() override;
};

/// Where a ring of bulk copies begins.
struct RingStart {
  Operation *outer = nullptr;  ///< the op of the kernel's block that the ring is in, or the first of the ring's own
  Operation *behind = nullptr; ///< the op before which waits may stand: the ring's first copies are under way there
};
} // namespace

/// Whether a wait may move past an op that stands before a ring: it touches no tile, or starts copies as well.
static bool isQuiet(Operation *op) {
  return isMemoryEffectFree(op) || isa<AllocOp, AsyncCopyOp, AsyncCommitOp, tile::LoadOp>(op) ||
         (isa<AsyncWaitOp>(op) && cast<AsyncWaitOp>(op).getPending() == 0);
}

/// The start of the ring whose barriers `init` makes; nothing where threads copy into it too, whose groups waits would count.
static RingStart startOf(MbarrierInitOp init) {
  Operation *barrier = init->getNextNode();
  while (barrier && !isa<BarrierOp>(barrier)) {
    if (isa<AsyncCopyOp, AsyncCommitOp>(barrier))
      return {};
    barrier = barrier->getNextNode();
  }
  if (!barrier)
    return {};
  Operation *behind = barrier->getNextNode();
  while (isa<ProduceOp>(behind) ||
         (isMemoryEffectFree(behind) && behind->getNumRegions() == 0 && !behind->hasTrait<OpTrait::IsTerminator>()))
    behind = behind->getNextNode();
  Operation *parent = init->getParentOp();
  bool isBranch = isa<scf::IfOp>(parent) && isa<func::FuncOp>(parent->getParentOp());
  if (!isBranch && !isa<func::FuncOp>(parent))
    return {};
  return {isBranch ? parent : init.getOperation(), behind};
}

/// The waits before a ring that may move behind its start.
static SmallVector<AsyncWaitOp> waitsBefore(const RingStart &start) {
  SmallVector<AsyncWaitOp> waits;
  Operation *op = start.outer->getPrevNode();
  // What begins the ring in the kernel's own block.
  while (op && isa<MbarrierInitOp>(start.outer) && isa<BarrierOp, ProxyFenceOp>(op))
    op = op->getPrevNode();
  for (; op && isQuiet(op); op = op->getPrevNode())
    if (auto wait = dyn_cast<AsyncWaitOp>(op))
      waits.push_back(wait);
  return waits;
}

/// Whether an op stands behind the first wait and before the place where waits would stand then.
static bool isBetween(Operation *op, AsyncWaitOp first, const RingStart &start) {
  Operation *outer = first->getBlock()->findAncestorOpInBlock(*op);
  if (!outer || !first->isBeforeInBlock(outer))
    return false;
  if (start.behind->getBlock() == first->getBlock())
    return outer->isBeforeInBlock(start.behind);
  if (outer != start.outer)
    return outer->isBeforeInBlock(start.outer);
  Operation *inside = start.behind->getBlock()->findAncestorOpInBlock(*op);
  return inside && inside->isBeforeInBlock(start.behind);
}

/// Whether something reads what is copied before the waits' new place.
static bool isReadBetween(AsyncWaitOp first, const RingStart &start) {
  for (auto copy : first->getBlock()->getOps<AsyncCopyOp>())
    for (Operation *user : copy.getShared().getUsers())
      if (user != copy && isBetween(user, first, start))
        return true;
  return false;
}

void AwaitCopiesLate::runOnOperation() {
  SmallVector<MbarrierInitOp> inits;
  getOperation().walk([&](MbarrierInitOp init) { inits.push_back(init); });
  for (MbarrierInitOp init : inits) {
    RingStart start = startOf(init);
    if (!start.behind)
      continue;
    SmallVector<AsyncWaitOp> waits = waitsBefore(start);
    if (waits.empty() || isReadBetween(waits.back(), start))
      continue;
    OpBuilder b(start.behind);
    Location loc = waits.front().getLoc();
    AsyncWaitOp::create(b, loc, b.getI32IntegerAttr(0));
    ProxyFenceOp::create(b, loc);
    BarrierOp::create(b, loc);
    if (start.behind->getBlock() != waits.front()->getBlock()) {
      b.setInsertionPointAfter(start.outer); // where the ring was not begun, the next one waits
      AsyncWaitOp::create(b, loc, b.getI32IntegerAttr(0));
    }
    for (AsyncWaitOp wait : waits)
      wait.erase();
  }
  awaitGroupsLate(getOperation());
}
