// Part of Weft. SPDX-License-Identifier: Apache-2.0
// warp-insert-barriers: a barrier before every access to shared memory that must wait for another thread's.
//
// The walk over the structured control flow (SharedFlow.h) carries the accesses that no barrier has ordered yet, as byte
// ranges. Barriers that other passes left before a kernel's first access to shared memory, or behind its last one, go.
//
//   warp.store_shared %x, %s                      warp.store_shared %x, %s
//   %y = warp.load_shared %s              ─▶      warp.barrier
//                                                 %y = warp.load_shared %s
#include "dialects/Warp/IR/WarpOps.h"
#include "dialects/Warp/Transforms/Passes.h"
#include "dialects/Warp/Transforms/Scratch.h"
#include "dialects/Warp/Transforms/SharedFlow.h"
#include "mlir/IR/Builders.h"

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
  auto wait = [](Operation *op, bool forCopies) {
    OpBuilder builder(op);
    if (forCopies)
      AsyncWaitOp::create(builder, op->getLoc(), builder.getI32IntegerAttr(0));
    BarrierOp::create(builder, op->getLoc());
  };
  walkSharedFlow(getOperation().getBody(), {wait, [](const SharedBytes &, const SharedBytes &) {}});
  Block &body = getOperation().getBody().front();
  eraseBarriers(llvm::make_range(body.begin(), body.end()));
  eraseBarriers(llvm::make_range(body.rbegin(), body.rend()));
}
