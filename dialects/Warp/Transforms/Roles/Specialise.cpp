// Part of Weft. SPDX-License-Identifier: Apache-2.0
// warp-specialise: a warp of its own makes the bulk copies of loops.
//
//   scf.for {                                     scf.for {
//     warp.mbarrier_wait %full[i]                   warp.mbarrier_wait %full[i]
//     warp.barrier                                  warp.produce {
//     scf.if %first {                                 scf.if %first {
//       warp.mbarrier_expect %full[freed]               warp.mbarrier_wait %empty[freed]
//       warp.box_copy .. to %ring[freed]      ─▶        warp.mbarrier_expect %full[freed]
//     }                                                 warp.box_copy .. to %ring[freed]
//     %d = warp.wgmma .., %ring[i]                    }
//     %e = warp.wgmma_wait %d                       }
//   }                                               %d = warp.wgmma .., %ring[i]
//                                                   %e = warp.wgmma_wait %d
//                                                   warp.mbarrier_arrive %empty[i]
//                                                 }
//
// In the loop the block's barrier told the thread that copies that all had read the freed tiles. Instead every warp
// says so for itself, at a second barrier of the stage, and the others need not wait for it. Iteration i copies into
// the tiles that iteration i-1 read, so the producer waits for the phase that the full barrier ended then: with the
// parity of the iteration before, and that of a phase before the first in the first. Where products go on into the next
// iteration (LaggingProduct.h), warps arrive there, behind the wait for them, for the stage before theirs, in the first one
// for the ring's last stage: so its phases run ahead by one, and the producer waits with the parity of its own iteration.
// Where an iteration before the loop started them (LateProducts.h), the loop's first iteration is the second one.
//
// The kernel stays one program here; warp-split-roles makes two of it. What pays is decided from the target's numbers
// (RoleShares.h).
#include "compiler/Support/Remarks.h"
#include "dialects/Tile/IR/LoopAttributes.h"
#include "dialects/Tile/IR/Schedule.h"
#include "dialects/Tile/IR/TileProgramOps.h"
#include "dialects/Warp/Transforms/Passes.h"
#include "dialects/Warp/Transforms/Roles/CopyLoop.h"
#include "dialects/Warp/Transforms/Roles/ProducerSlice.h"
#include "dialects/Warp/Transforms/Roles/RoleShares.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

namespace weft::warp {
#define GEN_PASS_DEF_WARPSPECIALISE
#include "dialects/Warp/Transforms/Passes.h.inc"
} // namespace weft::warp

using namespace mlir;
using namespace weft;
using namespace weft::warp;

namespace {
struct Specialise : weft::warp::impl::WarpSpecialiseBase<Specialise> {
  void runOnOperation() override;
};
} // namespace

static SharedType withBarriers(SharedType ring, int64_t stages, int64_t count) {
  int64_t shape[] = {count};
  LinearLayout layout(shape);
  for (int64_t bit = 1; bit < count; bit *= 2)
    layout.append(InDim::Offset, static_cast<uint32_t>(bit));
  return SharedType::get(ring.getContext(), stages, shape, ring.getElementType(),
                         LayoutAttr::get(ring.getContext(), layout));
}

/// Gives each stage a second barrier, at which every warp of `warps` arrives.
static void addEmptyBarriers(CopyLoop &found, int64_t warps) {
  SharedType ring = found.ring();
  found.init.getRing().setType(withBarriers(ring, ring.getStages(), 2));
  for (StageOp stage : found.stages)
    stage.getResult().setType(withBarriers(ring, 1, 2));
  found.init.setArrivals({1, warps});
}

/// A loop that carries one value more, which starts as `init`; the caller adds what is yielded.
static scf::ForOp carryOneMore(scf::ForOp loop, Value init) {
  IRRewriter rewriter(loop.getContext());
  auto next = loop.replaceWithAdditionalYields(
      rewriter, init, /*replaceInitOperandUsesInLoop=*/false,
      [](OpBuilder &, Location, ArrayRef<BlockArgument> added) { return SmallVector<Value>{added.front()}; });
  return cast<scf::ForOp>(next->getOperation());
}

/// Lets the loop carry what `value` gives of the iteration before, which is `first` in the first one.
static Value carryBefore(CopyLoop &found, llvm::function_ref<Value()> value, Value first) {
  found.loop = carryOneMore(found.loop, first);
  auto yield = cast<scf::YieldOp>(found.loop.getBody()->getTerminator());
  yield->setOperand(yield->getNumOperands() - 1, value());
  return found.loop.getRegionIterArgs().back();
}

/// Puts a branch that copies into a region of the producer's.
static void produce(scf::IfOp copies) {
  OpBuilder b(copies);
  auto op = ProduceOp::create(b, copies.getLoc());
  Block *body = b.createBlock(&op.getBody());
  copies->moveBefore(body, body->end());
}

/// A number of a loop's iteration where the builder stands: what computes it from what the loop carries may stand behind.
static Value madeHere(Value number, scf::ForOp loop, OpBuilder &b) {
  Operation *op = number.getDefiningOp();
  return op && op->getBlock() == loop.getBody() ? b.clone(*op)->getResult(0) : number;
}

static void specialise(CopyLoop &found, int64_t warps) {
  Location loc = found.loop.getLoc();
  addEmptyBarriers(found, warps);
  // Who makes the barriers is no longer who copies first.
  found.begun->moveAfter(found.init);
  found.begun.setWithProducer(true);
  for (scf::IfOp copies : found.first)
    produce(copies);

  OpBuilder b(found.loop);
  auto i32 = [&](int64_t value) -> Value { return arith::ConstantOp::create(b, loc, b.getI32IntegerAttr(value)); };
  auto barrier = found.barrier();
  auto stageAt = [&](Value index) -> Value {
    return StageOp::create(b, loc, barrier.getResult().getType(), barrier.getRing(), index, barrier.getStep());
  };
  Value parity, read; // with which the producer waits, and the stage that warps have read
  if (found.lags && !found.late()) {
    Value last = i32((found.ring().getStages() - 1) * barrier.getStep());
    read = carryBefore(found, [&] { return found.stage(); }, last);
    parity = found.wait.getParity();
  } else {
    // An iteration before the loop reads the ring's first stage.
    Value first = found.late() ? found.waitOfFirst.getParity() : i32(1);
    parity = carryBefore(found, [&] { return found.wait.getParity(); }, first);
  }
  produce(found.copies);
  Value freed;
  found.copies.walk([&](MbarrierExpectOp expect) { freed = expect.getBarrier().getDefiningOp<StageOp>().getIndex(); });
  b.setInsertionPointToStart(found.copies.thenBlock());
  MbarrierWaitOp::create(b, loc, stageAt(freed), parity, /*index=*/1);

  b.setInsertionPointAfter(found.lastRead);
  if (!read) // late, the next copies go where the iteration before has read
    read = found.late() ? madeHere(freed, found.loop, b) : found.stage();
  MbarrierArriveOp::create(b, loc, stageAt(read), /*index=*/1, found.readTogether);
  for (BarrierOp barrier : found.read)
    barrier.erase();
}

/// Whether there is inline PTX that does more than compute its results: its barriers would wait for the producer.
static bool hasForeignCode(func::FuncOp kernel) {
  return kernel
      .walk([](tile::InlineAsmOp op) { return op.getPure() ? WalkResult::advance() : WalkResult::interrupt(); })
      .wasInterrupted();
}

/// Whether a loop, or one around it, says that its copies are to be made by others; or a cluster's blocks are to share
/// them, whose warps cannot wait for those of other blocks.
static bool isAskedFor(scf::ForOp loop, func::FuncOp kernel) {
  if (weft::tile::scheduleOf(kernel).cluster > 1)
    return true;
  for (Operation *op = loop; op; op = op->getParentOp())
    if (op->hasAttr(tile::warpSpecializeAttrName))
      return true;
  return false;
}

void Specialise::runOnOperation() {
  func::FuncOp kernel = getOperation();
  const TargetInfo &target = TargetInfo::ofOrDefault(kernel);
  SmallVector<MbarrierInitOp> rings;
  kernel.walk([&](MbarrierInitOp init) { rings.push_back(init); });
  if (rings.empty() || target.roleRegisters == 0)
    return;
  RoleShares shares = sharesOf(kernel, target);
  if (hasForeignCode(kernel))
    shares.hindrance = "inline PTX may count on all warps";
  ProducerSlice slice(kernel);
  for (MbarrierInitOp init : rings) {
    CopyLoop found;
    StringRef hindrance = shares.hindrance;
    if (hindrance.empty())
      hindrance = findCopyLoop(init, found);
    if (hindrance.empty() && !isAskedFor(found.loop, kernel))
      hindrance = shares.idle;
    ProducerSlice withLoop = slice;
    if (hindrance.empty()) {
      bool known = withLoop.add(found.copies);
      for (scf::IfOp copies : found.first)
        known = known && withLoop.add(copies);
      if (!known)
        hindrance = withLoop.hindrance();
    }
    if (!hindrance.empty()) {
      remarks::missed(remarks::warpRoles, init)
          << remark::reason("one thread of the warps that compute makes the loop's copies: {0}", hindrance);
      continue;
    }
    slice = std::move(withLoop);
    specialise(found, shares.consumerWarps);
  }
}
