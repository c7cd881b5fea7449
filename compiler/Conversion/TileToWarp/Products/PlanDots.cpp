// Part of Weft. SPDX-License-Identifier: Apache-2.0
#include "compiler/Conversion/TileToWarp/Products/PlanDots.h"

#include "compiler/Conversion/TileToWarp/ChooseLayouts.h"
#include "compiler/Conversion/TileToWarp/Products/NeighboursAlongK.h"
#include "compiler/Conversion/TileToWarp/Products/PlanWgmma.h"
#include "compiler/Support/Remarks.h"
#include "dialects/Tile/IR/TileOps.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace weft {
namespace {

/// The products whose first operand is computed from a product's result by ops that keep rows where they are.
struct Fed {
  llvm::SmallVector<tile::DotOp> products;
  bool reduced = false; ///< whether rows are reduced on the way: what each comes to belongs to the next product's row
};

Fed productsFedBy(tile::DotOp dot) {
  Fed fed;
  llvm::SmallSetVector<Value, 16> values;
  values.insert(dot.getResult());
  for (size_t i = 0; i < values.size(); ++i)
    for (OpOperand &use : values[i].getUses()) {
      if (auto next = dyn_cast<tile::DotOp>(use.getOwner())) {
        if (use.getOperandNumber() == 0)
          fed.products.push_back(next);
        continue;
      }
      OpKind kind = kindOf(use.getOwner());
      fed.reduced |= isa<tile::ReduceOp>(use.getOwner());
      if (kind == OpKind::Elementwise || kind == OpKind::View || isa<tile::ReduceOp>(use.getOwner()))
        values.insert(use.getOwner()->result_begin(), use.getOwner()->result_end());
    }
  return fed;
}

/// Whether all warps may split a product's rows, as far as matrix instructions of a warp make it.
bool allSplitRows(tile::DotOp dot, const TargetInfo &target, int warps) {
  auto a = cast<RankedTensorType>(dot.getA().getType());
  auto result = cast<RankedTensorType>(dot.getType());
  auto instruction = target.mmaFor(a.getElementType(), result.getElementType(), result.getDimSize(0), a.getDimSize(1));
  return !instruction || result.getDimSize(0) >= int64_t(instruction->shape[0]) * warps;
}

/// The products that others are computed from row by row, and those others; and what accumulates into one sum with
/// them, as chunks of an inner axis do, so that the sum stays where it is. `leavesOut` says which two need not be.
llvm::DenseSet<Operation *> findChained(func::FuncOp function,
                                        llvm::function_ref<bool(tile::DotOp, tile::DotOp, bool reduced)> leavesOut) {
  llvm::DenseSet<Operation *> chained;
  function.walk([&](tile::DotOp dot) {
    Fed fed = productsFedBy(dot);
    for (tile::DotOp next : fed.products) {
      if (leavesOut(dot, next, fed.reduced))
        continue;
      chained.insert(dot);
      chained.insert(next);
    }
  });
  for (size_t before = ~size_t(0); before != chained.size();) {
    before = chained.size();
    function.walk([&](tile::DotOp dot) {
      auto earlier = dot.getAcc().getDefiningOp<tile::DotOp>();
      if (!earlier || !(chained.contains(dot) || chained.contains(earlier)))
        return;
      chained.insert(dot);
      chained.insert(earlier);
    });
  }
  return chained;
}

/// Whether an operand, 0 or 1, is loaded by elements of 8 bits that are neighbours along M or N in memory: `ldmatrix` turns
/// pairs of them, which come to one lane.
bool isTurnedInPairs(tile::DotOp dot, unsigned index, const AxisAnalysis &axes) {
  Value operand = dot->getOperand(index);
  auto load = rootOf(operand).getDefiningOp<tile::LoadOp>();
  if (!load || tile::elementTypeOf(load.getType()).getIntOrFloatBitWidth() != 8)
    return false;
  AxisInfo pointer = axes.lookup(load.getPtr());
  unsigned fastest = fastestFirst(pointer).front();
  return fastest == axisOfRoot(operand, index) && pointer.contiguity[fastest] > 1;
}

FailureOr<DotPlan> planDot(tile::DotOp dot, bool chained, const AxisAnalysis &axes, const TargetInfo &target,
                           int warps) {
  auto a = cast<RankedTensorType>(dot.getA().getType());
  auto result = cast<RankedTensorType>(dot.getType());
  Type element = a.getElementType(), accumulator = result.getElementType();
  if (element.isF32() && accumulator.isF32() && dot.getPrecision() == tile::Precision::IEEE) {
    remarks::missed(remarks::matrixInstruction, dot)
        << remark::reason("products of f32 are made by fused multiply-adds, as 'ieee' precision asks; matrix "
                          "instructions take f32 as tf32");
    return DotPlan{};
  }
  int64_t K = a.getDimSize(1);
  std::optional<MmaInstruction> instruction = target.mmaFor(element, accumulator, result.getDimSize(0), K);
  assert(instruction && warp::fragmentsOf(instruction->shape) && "every target multiplies what tile.dot takes");
  if (K < instruction->shape[2]) {
    InFlightDiagnostic diagnostic = dot.emitError("expected a product of ")
                                    << element << " operands to have an inner size of at least "
                                    << instruction->shape[2] << ", but got " << K;
    diagnostic.attachNote() << "make the inner block size larger";
    return diagnostic;
  }
  // Of several products each has warps of its own, as far as there are.
  DotPlan plan{instruction->shape, warpGrid(result.getDimSize(0), result.getDimSize(1), instruction->shape, warps,
                                            chained, std::min<int64_t>(warps, dot.getBatch()))};
  if (!dot->getParentOfType<func::FuncOp>()->hasAttr(tile::ordersAccessesAttrName))
    takeWordsAlongK(dot, plan, axes, /*mayRegrid=*/!chained);
  constexpr int64_t together = 16; // rows or columns between whose halves neighbours move
  const std::array<int64_t, 2> each{result.getDimSize(0) / plan.warps.rows, result.getDimSize(1) / plan.warps.columns};
  // Products of a chain have their rows alike, and those that feed another have that one's order of columns.
  const std::array<bool, 2> own{!chained, productsFedBy(dot).products.empty()};
  for (unsigned index : {0, 1})
    plan.interleaved[index] =
        own[index] && dot.getBatch() == 1 && each[index] >= together && isTurnedInPairs(dot, index, axes);
  return plan;
}

} // namespace

/// Products that add to one sum in turn have its rows and columns in one order.
static void interleaveAlike(func::FuncOp function, llvm::DenseMap<Operation *, DotPlan> &plans) {
  for (bool changed = true; changed;) {
    changed = false;
    function.walk([&](tile::DotOp dot) {
      auto earlier = dot.getAcc().getDefiningOp<tile::DotOp>();
      if (!earlier)
        return;
      for (auto [one, other] : llvm::zip_equal(plans[dot].interleaved, plans[earlier].interleaved))
        if (one != other) {
          one = other = false;
          changed = true;
        }
    });
  }
}

llvm::DenseSet<Operation *> chainedProducts(func::FuncOp function) {
  return findChained(function, [](tile::DotOp, tile::DotOp, bool) { return false; });
}

FailureOr<llvm::DenseMap<Operation *, DotPlan>> planDots(func::FuncOp function, const AxisAnalysis &axes,
                                                         const TargetInfo &target, int warps) {
  WgmmaPlans ofWarpgroups = planWgmma(function, chainedProducts(function), axes, target, warps);
  for (const WgmmaRefusal &refusal : ofWarpgroups.refused)
    remarks::missed(remarks::warpgroupProducts, refusal.dot)
        << remark::reason("the product is made by instructions of single warps: {0}", refusal.hindrance);
  llvm::DenseMap<Operation *, DotPlan> plans = std::move(ofWarpgroups.taken);
  // Where there are more warps than rows for them, a row leaves its warp in any case: products that nothing is reduced
  // between then read the fewest elements, each by itself, by which sums of several lie alike. Kernels that the
  // compiler writes have schedules that were chosen without that.
  const bool written = function->hasAttr(tile::ordersAccessesAttrName);
  llvm::DenseSet<Operation *> chained = findChained(function, [&](tile::DotOp dot, tile::DotOp next, bool reduced) {
    return !written && !reduced && !allSplitRows(dot, target, warps) && !allSplitRows(next, target, warps);
  });
  WalkResult result = function.walk([&](tile::DotOp dot) {
    if (plans.contains(dot))
      return WalkResult::advance();
    FailureOr<DotPlan> plan = planDot(dot, chained.contains(dot), axes, target, warps);
    if (failed(plan))
      return WalkResult::interrupt();
    plans[dot] = *plan;
    return WalkResult::advance();
  });
  if (result.wasInterrupted())
    return failure();
  interleaveAlike(function, plans);
  return plans;
}

} // namespace weft
