// Part of Weft. SPDX-License-Identifier: Apache-2.0
// warp-insert-barriers: a barrier before every access to shared memory that must wait for another thread's.
//
// The walk over the structured control flow (SharedFlow.h) carries the accesses that no barrier has ordered yet, as byte
// ranges.
//
//   warp.store_shared %x, %s                      warp.store_shared %x, %s
//   %y = warp.load_shared %s              ─▶      warp.barrier
//                                                 %y = warp.load_shared %s
#include "dialects/Warp/IR/WarpOps.h"
#include "dialects/Warp/Transforms/Passes.h"
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

void InsertBarriers::runOnOperation() {
  auto wait = [](Operation *op, bool forCopies) {
    OpBuilder builder(op);
    if (forCopies)
      AsyncWaitOp::create(builder, op->getLoc(), builder.getI32IntegerAttr(0));
    BarrierOp::create(builder, op->getLoc());
  };
  walkSharedFlow(getOperation().getBody(), {wait, [](const SharedBytes &, const SharedBytes &) {}});
}
