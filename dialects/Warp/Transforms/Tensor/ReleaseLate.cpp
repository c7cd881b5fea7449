// Part of Weft. SPDX-License-Identifier: Apache-2.0
// warp-release-late: a loop's last products are waited for with the next iteration's first ones.
//
//   scf.for {                                     scf.for iter_args(%before) {
//     wait for tiles %i                             wait for tiles %i
//     warp.tensor_product s                         warp.tensor_product s
//     warp.tensor_wait {pending = 0}                warp.tensor_wait {pending = 0}       for o of the iteration before too
//     use(s)                              ─▶        scf.if not the first { arrive(%before) }
//     warp.tensor_product o                         use(s)
//     warp.tensor_wait {pending = 0}                warp.tensor_product o
//     arrive(%i)                                    yield %i
//   }                                             }
//                                                 scf.if any iteration { warp.tensor_wait; arrive(last) }
//
// Tensor cores take what a thread starts in order: s begins behind o of the iteration before, with no thread between the
// two. It may write the columns from which o reads its operand, as s has in every iteration; no thread touches any before
// the wait.
#include "dialects/Tile/IR/TileOps.h"
#include "dialects/Warp/IR/WarpOps.h"
#include "dialects/Warp/Layout/WgmmaLayouts.h"
#include "dialects/Warp/Transforms/Passes.h"
#include "dialects/Warp/Transforms/Scratch.h"
#include "dialects/Warp/Transforms/Tensor/TensorColumns.h"
#include "dialects/Warp/Transforms/Tensor/TensorOrder.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

namespace weft::warp {
#define GEN_PASS_DEF_WARPRELEASELATE
#include "dialects/Warp/Transforms/Passes.h.inc"
} // namespace weft::warp

using namespace mlir;
using namespace weft::warp;

namespace {
struct ReleaseLate : weft::warp::impl::WarpReleaseLateBase<ReleaseLate> {
  void runOnOperation() override;
};

/// What of a loop moves: the waits at its end and the arrivals behind them; and the wait that does for these too.
struct LateRelease {
  SmallVector<TensorWaitOp> last; // the last of them first
  SmallVector<MbarrierArriveOp> arrivals;
  TensorWaitOp first;
};
} // namespace

/// Whether an op does nothing but compute, without shared memory for an exchange.
static bool computes(Operation *op) { return isMemoryEffectFree(op) && !op->hasAttr(scratchAttrName); }

/// Finds the waits at the loop's end, and what arrives behind them.
static bool findLast(scf::ForOp loop, LateRelease &found) {
  Operation *op = loop.getBody()->getTerminator()->getPrevNode();
  for (; op && !isa<TensorProductOp>(op); op = op->getPrevNode()) {
    if (auto wait = dyn_cast<TensorWaitOp>(op))
      found.last.push_back(wait);
    else if (auto arrive = dyn_cast<MbarrierArriveOp>(op); arrive && found.last.empty())
      found.arrivals.push_back(arrive);
    else if (!computes(op))
      return false;
  }
  std::reverse(found.arrivals.begin(), found.arrivals.end());
  return op && !found.last.empty() && found.last.front().getPending() == 0 && !found.arrivals.empty();
}

/// Finds the first wait, before which threads do nothing but start products, store what these start from, and read what
/// copies have brought.
static bool findFirst(scf::ForOp loop, LateRelease &found) {
  unsigned started = 0;
  for (Operation &op : *loop.getBody()) {
    if (auto wait = dyn_cast<TensorWaitOp>(op)) {
      found.first = wait;
      return !llvm::is_contained(found.last, wait) && wait.getPending() < started;
    }
    started += isa<TensorProductOp>(op);
    if (!isa<TensorProductOp, TensorStoreOp, TensorReadyOp, MbarrierWaitOp, LoadSharedOp>(op) && !computes(&op))
      return false;
  }
  return false;
}

namespace {
/// Columns of tensor memory.
struct Columns {
  int64_t first, count;
  bool meet(Columns other) const { return first < other.first + other.count && other.first < first + count; }
};
} // namespace

static Columns columnsWritten(TensorProductOp product) {
  return {product.getColumn(), columnsOf(product.getSums(), product.getShape()[0])};
}

/// Whether the next iteration may begin when the products before are on their way: what these write it leaves alone, and
/// threads what they read, too.
static bool areApart(scf::ForOp loop, LateRelease &found) {
  SmallVector<Columns> written, read;
  loop.getBody()->walk([&](TensorProductOp product) {
    if (loop.getBody()->findAncestorOpInBlock(*product)->isBeforeInBlock(found.first))
      return;
    written.push_back(columnsWritten(product));
    if (product.getFrom())
      read.push_back({*product.getFrom(), columnsOf(*product.getStored(), product.getShape()[0])});
  });
  auto meets = [](Columns columns, ArrayRef<Columns> others) {
    return llvm::any_of(others, [&](Columns each) { return columns.meet(each); });
  };
  for (Operation *op = found.first->getPrevNode(); op; op = op->getPrevNode()) {
    if (auto product = dyn_cast<TensorProductOp>(op); product && meets(columnsWritten(product), written))
      return false;
    auto store = dyn_cast<TensorStoreOp>(op);
    if (!store)
      continue;
    std::optional<WarpgroupGrid> grid = wgmmaGridOf(layoutAttrOf(store.getValue().getType()).getLayout());
    if (!grid)
      return false;
    Columns stored{store.getColumn(), columnsOf(store.getValue().getType(), grid->m)};
    if (meets(stored, written) || meets(stored, read))
      return false;
  }
  return true;
}

/// The stage of a ring that an arrival is for; null where it is for no ring.
static StageOp ringStageOf(MbarrierArriveOp arrive) { return arrive.getBarrier().getDefiningOp<StageOp>(); }

/// Whether an iteration's tiles may stay while the next one begins: its ring has others.
static bool hasOtherStages(MbarrierArriveOp arrive, scf::ForOp loop) {
  StageOp stage = ringStageOf(arrive);
  return stage && cast<SharedType>(stage.getRing().getType()).getStages() > 1 && !arrive.getOfCluster() &&
         loop.isDefinedOutsideOfLoop(stage.getRing());
}

static std::optional<LateRelease> findLateRelease(scf::ForOp loop) {
  LateRelease found;
  if (!findLast(loop, found) || !findFirst(loop, found) || !areApart(loop, found) ||
      !llvm::all_of(found.arrivals, [&](MbarrierArriveOp arrive) { return hasOtherStages(arrive, loop); }))
    return std::nullopt;
  return found;
}

/// A copy of an arrival for the stage at `index`.
static void arriveAt(MbarrierArriveOp arrive, Value index, OpBuilder &b) {
  auto other = cast<StageOp>(b.clone(*ringStageOf(arrive)));
  other.getIndexMutable().assign(index);
  auto clone = cast<MbarrierArriveOp>(b.clone(*arrive));
  clone.getBarrierMutable().assign(other);
}

/// The loop, which carries more values; the caller adds what is yielded.
static scf::ForOp carryMore(scf::ForOp loop, size_t count) {
  IRRewriter rewriter(loop);
  Value none = arith::ConstantOp::create(rewriter, loop.getLoc(), rewriter.getI32IntegerAttr(0));
  auto next = loop.replaceWithAdditionalYields(
      rewriter, SmallVector<Value>(count, none), /*replaceInitOperandUsesInLoop=*/false,
      [](OpBuilder &, Location, ArrayRef<BlockArgument> added) { return SmallVector<Value>(added); });
  return cast<scf::ForOp>(next->getOperation());
}

static void releaseLate(scf::ForOp loop, LateRelease &found) {
  const size_t count = found.arrivals.size(), before = loop.getNumRegionIterArgs();
  loop = carryMore(loop, count);
  Location loc = loop.getLoc();
  for (auto [place, arrive] : llvm::enumerate(found.arrivals))
    loop.getBody()->getTerminator()->setOperand(before + place, ringStageOf(arrive).getIndex());

  OpBuilder b(loop);
  b.setInsertionPointAfter(found.first);
  Value isLater = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ne, loop.getInductionVar(), loop.getLowerBound());
  auto later = scf::IfOp::create(b, loc, isLater, /*withElseRegion=*/false);
  b.setInsertionPointAfter(loop);
  auto less = loop.getUnsignedCmp() ? arith::CmpIPredicate::ult : arith::CmpIPredicate::slt;
  Value any = arith::CmpIOp::create(b, loc, less, loop.getLowerBound(), loop.getUpperBound());
  auto behind = scf::IfOp::create(b, loc, any, /*withElseRegion=*/false);

  OpBuilder inLoop(later.thenBlock()->getTerminator()), inBehind(behind.thenBlock()->getTerminator());
  inBehind.clone(*found.last.front());
  for (auto [place, arrive] : llvm::enumerate(found.arrivals)) {
    arriveAt(arrive, loop.getRegionIterArg(before + place), inLoop);
    arriveAt(arrive, loop.getResult(before + place), inBehind);
    arrive.erase();
  }
  for (TensorWaitOp wait : found.last)
    wait.erase();
}

void ReleaseLate::runOnOperation() {
  func::FuncOp kernel = getOperation();
  auto begins = kernel.getOps<TensorBeginOp>();
  if (begins.empty() || kernel->hasAttr(lacksColumnsAttrName))
    return;
  SmallVector<std::pair<scf::ForOp, LateRelease>> loops;
  kernel.walk([&](scf::ForOp loop) {
    if (std::optional<LateRelease> found = findLateRelease(loop))
      loops.emplace_back(loop, std::move(*found));
  });
  for (auto &[loop, found] : loops)
    releaseLate(loop, found);
  // Waits know of more products now.
  if (!loops.empty())
    boundUnderWay(kernel.getBody().front(), *begins.begin());
}
