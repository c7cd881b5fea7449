// Part of Weft. SPDX-License-Identifier: Apache-2.0
// warp-split-roles: what the producer does becomes a program of its own.
//
//   scf.for {                                  warp.producer {
//     warp.mbarrier_wait %full                   scf.for {
//     warp.produce {                               copies
//       copies                          ─▶       }
//     }                                        }
//     use                                      scf.for {
//     warp.mbarrier_arrive %empty                warp.mbarrier_wait %full
//   }                                            use
//                                                warp.mbarrier_arrive %empty
//                                              }
//
// The producer's program is the slice of the kernel that its copies need (ProducerSlice.h). The other warps keep theirs
// without the copies, and without what loops carried for them alone. It runs when tiles have their places and barriers
// stand, since both programs name them.
#include "dialects/Warp/IR/WarpOps.h"
#include "dialects/Warp/Transforms/LoopCarried.h"
#include "dialects/Warp/Transforms/Passes.h"
#include "dialects/Warp/Transforms/Roles/ProducerSlice.h"
#include "dialects/Warp/Transforms/Roles/RoleShares.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

namespace weft::warp {
#define GEN_PASS_DEF_WARPSPLITROLES
#include "dialects/Warp/Transforms/Passes.h.inc"
} // namespace weft::warp

using namespace mlir;
using namespace weft;
using namespace weft::warp;

namespace {
struct SplitRoles : weft::warp::impl::WarpSplitRolesBase<SplitRoles> {
  void runOnOperation() override;
};
} // namespace

void SplitRoles::runOnOperation() {
  func::FuncOp kernel = getOperation();
  SmallVector<ProduceOp> produced;
  kernel.walk([&](ProduceOp op) { produced.push_back(op); });
  if (produced.empty())
    return;
  const TargetInfo &target = TargetInfo::ofOrDefault(kernel);
  if (target.roleRegisters == 0) {
    produced.front().emitError() << "expected a target whose warpgroups trade registers, but got " << target.name;
    return signalPassFailure();
  }
  ProducerSlice slice(kernel);
  bool known = true;
  kernel.walk([&](Operation *op) {
    auto barrier = dyn_cast<BarrierOp>(op);
    if (isa<ProduceOp>(op) || (barrier && barrier.getWithProducer()))
      known = known && slice.add(op);
  });
  if (!known) {
    kernel.emitError() << "expected copies that one warp can make, but " << slice.hindrance();
    return signalPassFailure();
  }
  RoleShares shares = sharesOf(kernel, target);
  OpBuilder b(kernel.getContext());
  setBehindAdded(kernel, b);
  auto registers = [&](int count) { return count ? b.getI32IntegerAttr(count) : IntegerAttr(); };
  auto producer = ProducerOp::create(b, kernel.getLoc(), b.getI32IntegerAttr(shares.producerWarps),
                                     registers(shares.producer), registers(shares.consumer));
  b.createBlock(&producer.getBody());
  slice.emit(b);
  for (ProduceOp op : produced)
    op.erase();
  removeUnusedOfConsumers(kernel);
}
