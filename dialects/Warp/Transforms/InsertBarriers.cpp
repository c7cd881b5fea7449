// Part of Weft. SPDX-License-Identifier: Apache-2.0
// warp-insert-barriers: a barrier before every access to shared memory that must wait for another thread's.
//
// The walk over the structured control flow (SharedFlow.h) carries the accesses that no barrier has ordered yet, as byte
// ranges. Barriers that other passes left go where nothing but arithmetic is between them and the one before, on all ways
// there, or the kernel's begin: those between two loops that copy ahead, each of which waits before and behind itself. So
// do those behind a kernel's last access to shared memory.
//
//   warp.store_shared %x, %s                      warp.store_shared %x, %s
//   %y = warp.load_shared %s              ─▶      warp.barrier
//                                                 %y = warp.load_shared %s
#include "dialects/Tile/IR/TileOps.h"
#include "dialects/Warp/IR/WarpOps.h"
#include "dialects/Warp/Transforms/Passes.h"
#include "dialects/Warp/Transforms/Scratch.h"
#include "dialects/Warp/Transforms/SharedFlow.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Builders.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/SetVector.h"

namespace weft::warp {
#define GEN_PASS_DEF_WARPINSERTBARRIERS
#include "dialects/Warp/Transforms/Passes.h.inc"
} // namespace weft::warp

using namespace mlir;
using namespace weft::warp;

namespace {
struct InsertBarriers : weft::warp::impl::WarpInsertBarriersBase<InsertBarriers> {
  void runOnOperation() override;
};
} // namespace

/// Whether an op, or one inside it, may access shared memory.
static bool touchesShared(Operation &op) {
  auto touches = [](Operation *each) {
    bool takesTile = llvm::any_of(each->getOperandTypes(), llvm::IsaPred<SharedType>);
    return each->hasAttr(scratchAttrName) || (takesTile && !isa<DeallocOp>(each));
  };
  return op.walk([&](Operation *each) { return touches(each) ? WalkResult::interrupt() : WalkResult::advance(); })
      .wasInterrupted();
}

/// Whether an op is nothing that threads would have to wait for.
static bool isArithmetic(Operation *op) {
  if (isa<AllocOp, DeallocOp, StageOp, PermuteSharedOp>(op))
    return true;
  bool exchanges = op->hasAttr(scratchAttrName) || (isa<WarpDialect>(op->getDialect()) && !isa<ConvertLayoutOp>(op));
  return !exchanges && isMemoryEffectFree(op);
}

namespace {
/// Finds barriers behind which threads have done nothing since the one before.
class Repeated {
public:
  /// `isOrdered`: whether there is nothing to wait for, on all ways to where the walk is.
  void walk(Region &region, bool &isOrdered) {
    for (Block &block : region)
      for (Operation &op : block)
        visit(op, isOrdered);
  }
  llvm::SetVector<Operation *> barriers;

private:
  void visit(Operation &op, bool &isOrdered);
  void visitLoop(Operation &loop, bool &isOrdered);
};
} // namespace

/// The last walk is from where the loop's start and end agree. A while loop is left after its first region, a for loop
/// after its only one, or before it.
void Repeated::visitLoop(Operation &loop, bool &isOrdered) {
  for (bool start = isOrdered;;) {
    bool inner = start, left = isa<scf::WhileOp>(loop) || start;
    for (Region &region : loop.getRegions()) {
      walk(region, inner);
      left &= region.getRegionNumber() > 0 || inner;
    }
    if (inner || !start) {
      isOrdered = left;
      return;
    }
    start = false;
  }
}

void Repeated::visit(Operation &op, bool &isOrdered) {
  if (auto barrier = dyn_cast<BarrierOp>(op); barrier && !barrier.getWithProducer()) {
    if (isOrdered)
      barriers.insert(barrier);
    else
      barriers.remove(barrier);
    isOrdered = true;
  } else if (isa<weft::tile::BarrierOp>(op)) {
    isOrdered = true;
  } else if (isa<scf::IfOp>(op)) {
    bool after = true;
    for (Region &branch : op.getRegions()) {
      bool inner = isOrdered; // an empty region is a missing else
      walk(branch, inner);
      after &= inner;
    }
    isOrdered = after;
  } else if (isa<scf::ForOp, scf::WhileOp>(op)) {
    visitLoop(op, isOrdered);
  } else {
    isOrdered &= isArithmetic(&op);
  }
}

static void eraseRepeated(func::FuncOp kernel) {
  Repeated repeated;
  bool isOrdered = true;
  repeated.walk(kernel.getBody(), isOrdered);
  for (Operation *barrier : repeated.barriers)
    barrier->erase();
}

/// Erases the barriers among ops until the first that may access shared memory.
template <typename Ops> static void eraseBarriers(Ops ops) {
  for (Operation &op : llvm::make_early_inc_range(ops)) {
    if (touchesShared(op))
      return;
    if (isa<BarrierOp>(op))
      op.erase();
  }
}

void InsertBarriers::runOnOperation() {
  if (getOperation().isDeclaration())
    return;
  auto wait = [](Operation *op, Unfinished before) {
    OpBuilder builder(op);
    if (before.copies)
      AsyncWaitOp::create(builder, op->getLoc(), builder.getI32IntegerAttr(0));
    if (before.products)
      WgmmaWaitOp::create(builder, op->getLoc(), ValueRange(), /*pending=*/0);
    BarrierOp::create(builder, op->getLoc());
  };
  walkSharedFlow(getOperation().getBody(), {wait, [](const SharedBytes &, const SharedBytes &) {}});
  eraseRepeated(getOperation());
  Block &body = getOperation().getBody().front();
  eraseBarriers(llvm::make_range(body.begin(), body.end()));
  eraseBarriers(llvm::make_range(body.rbegin(), body.rend()));
}
