// Part of Weft. SPDX-License-Identifier: Apache-2.0
// warp-keep-rings: a ring outlives an iteration of the loop around its own, so that the producer goes on.
//
// A persistent kernel's producer then copies the first tiles of what comes next while the other warps still store what
// they have computed, and no warp waits at a barrier for a new ring to begin. Rings are of two forms (PlainRing.cpp,
// LateRing.cpp). In shared memory a ring lies beside whatever else the outer loop has; where there is no room for both, it
// stays as it is.
#include "compiler/Support/Remarks.h"
#include "dialects/Warp/Transforms/LoopCarried.h"
#include "dialects/Warp/Transforms/Passes.h"
#include "dialects/Warp/Transforms/Roles/KeptRing.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

namespace weft::warp {
#define GEN_PASS_DEF_WARPKEEPRINGS
#include "dialects/Warp/Transforms/Passes.h.inc"
} // namespace weft::warp

using namespace mlir;
using namespace weft;
using namespace weft::warp;

namespace {
struct KeepRings : weft::warp::impl::WarpKeepRingsBase<KeepRings> {
  void runOnOperation() override;
};
} // namespace

/// Where a ring that is not kept stands at its start.
static void startAnew(func::FuncOp kernel) {
  kernel.walk([](MbarrierInvalOp end) { end.getNextMutable().clear(); });
  kernel.walk([](RingStartOp start) {
    OpBuilder b(start);
    auto i32 = [&](int64_t value) -> Value {
      return arith::ConstantOp::create(b, start.getLoc(), b.getI32IntegerAttr(value));
    };
    Value zero = i32(0);
    start->replaceAllUsesWith(ValueRange{zero, i32(start.getBefore()), zero});
    start->erase();
  });
}

/// The loop around a ring, but for branches.
static scf::ForOp loopAround(MbarrierInitOp init) {
  Operation *parent = init->getParentOp();
  while (isa<scf::IfOp>(parent))
    parent = parent->getParentOp();
  return dyn_cast<scf::ForOp>(parent);
}

/// Why a ring does not outlive an iteration of the loop around its own; empty where it does.
static StringRef keep(MbarrierInitOp init, scf::ForOp outer, const TargetInfo &target) {
  StringRef hindrance;
  std::unique_ptr<KeptRing> ring = findKeptRing(init, hindrance);
  if (!ring)
    return hindrance;
  if (!ring->fits(outer, outer, target))
    return "shared memory does not hold it beside the other tiles of the loop around it";
  ring->keep(outer);
  return {};
}

void KeepRings::runOnOperation() {
  func::FuncOp kernel = getOperation();
  const TargetInfo &target = TargetInfo::ofOrDefault(kernel);
  SmallVector<MbarrierInitOp> rings;
  kernel.walk([&](MbarrierInitOp init) {
    if (init.getArrivals().size() == 2 && loopAround(init))
      rings.push_back(init);
  });
  if (!rings.empty())
    eraseDeadOps(kernel); // what boxes store is no longer exchanged between threads, which would take room
  for (MbarrierInitOp init : rings)
    if (StringRef hindrance = keep(init, loopAround(init), target); !hindrance.empty())
      remarks::missed(remarks::keptRings, init)
          << remark::reason("the ring begins anew in each iteration of the loop around its own: {0}", hindrance);
  startAnew(kernel);
}
