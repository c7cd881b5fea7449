// Part of Weft. SPDX-License-Identifier: Apache-2.0
// warp-fence-products: products that start one after another share one fence.
//
//   %d = warp.wgmma %q, %k, %zero                          %f:2 = warp.wgmma_fence %p, %o
//   %e = warp.wgmma %p, %v, %o                    ─▶       %d = warp.wgmma %q, %k, %zero {fenced}
//                                                          %e = warp.wgmma %f#0, %v, %f#1 {fenced}
//
// A fence tells the matrix units of what threads wrote to the registers of products. ptxas computes such registers as late
// as their own fence lets it: with one for each product it spreads the conversion of a block's weights over the score product
// before theirs. That gains some time where registers hold the new scores beside the weights that were scores before; where
// they do not, it spills. Sums that a product starts from, if no factors are converted beside them, are written before the
// run: written behind its first product, as LLVM would have them, ptxas waits for that product's end first (C7517).
#include "dialects/Warp/IR/WarpOps.h"
#include "dialects/Warp/Transforms/OperandsOfLoops.h"
#include "dialects/Warp/Transforms/Passes.h"
#include "dialects/Warp/Transforms/Tensor/TensorProducts.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/ADT/SetVector.h"

namespace weft::warp {
#define GEN_PASS_DEF_WARPFENCEPRODUCTS
#include "dialects/Warp/Transforms/Passes.h.inc"
} // namespace weft::warp

using namespace mlir;
using namespace weft;
using namespace weft::warp;

namespace {
struct FenceProducts : weft::warp::impl::WarpFenceProductsBase<FenceProducts> {
  void runOnOperation() override;
};

/// Products of which none reads registers that are written behind the first.
using Run = SmallVector<WgmmaOp, 4>;
} // namespace

/// The operands of a product that are registers when it starts.
static SmallVector<OpOperand *, 2> registersOf(WgmmaOp product) {
  SmallVector<OpOperand *, 2> registers;
  if (isa<RankedTensorType>(product.getA().getType()))
    registers.push_back(&product.getAMutable());
  if (!product.startsFromZero())
    registers.push_back(&product.getAccMutable());
  return registers;
}

static bool isOf(Value value, const Run &run) {
  return llvm::any_of(run, [&](WgmmaOp each) { return each.getResult() == value; });
}

/// Whether a product's registers are what they are before a run: or sums that the run's own products go on with.
static bool continues(WgmmaOp product, const Run &run) {
  return llvm::all_of(registersOf(product), [&](OpOperand *operand) {
    Operation *made = operand->get().getDefiningOp();
    const bool isSum = operand == &product.getAccMutable();
    return !made || made->getBlock() != product->getBlock() || made->isBeforeInBlock(run.front()) ||
           (isSum && isOf(operand->get(), run));
  });
}

/// Computes what a product takes before a run that it follows, where it takes nothing of the run's: behind a product, ptxas
/// waits for it before it lets registers be written for the next.
static void computeBefore(WgmmaOp product, const Run &run) {
  Operation *first = run.front();
  auto isBehind = [&](Operation *op) {
    return op && op->getBlock() == first->getBlock() && (op == first || first->isBeforeInBlock(op));
  };
  bool waits = false; // for other threads' copies, which loads may not pass
  for (Operation *op = first; op != product; op = op->getNextNode())
    waits |= isa<MbarrierWaitOp>(op);
  llvm::SetVector<Operation *> computed;
  for (OpOperand *operand : registersOf(product))
    if (Operation *made = operand->get().getDefiningOp(); isBehind(made) && !isOf(operand->get(), run))
      computed.insert(made);
  for (size_t i = 0; i < computed.size(); ++i) {
    Operation *op = computed[i];
    if (!isMemoryEffectFree(op) && (waits || !isa<LoadSharedOp, LoadShiftedOp>(op)))
      return;
    for (Value operand : op->getOperands())
      if (isBehind(operand.getDefiningOp()))
        computed.insert(operand.getDefiningOp());
  }
  SmallVector<Operation *> ordered = computed.takeVector();
  llvm::sort(ordered, [](Operation *one, Operation *other) { return one->isBeforeInBlock(other); });
  for (Operation *op : ordered)
    op->moveBefore(first);
}

/// Whether products on both sides of an op may be of one run: it has no say in registers.
static bool isBetween(Operation *op) {
  return !isa<WgmmaWaitOp>(op) && (isMemoryEffectFree(op) || isa<LoadSharedOp, LoadShiftedOp, MbarrierWaitOp>(op));
}

namespace {
/// What goes through a run's fence.
struct Fenced {
  SmallVector<OpOperand *> sums;     ///< what products start from: each has registers of its own, written before it
  llvm::SetVector<Value> multiplied; ///< what the run's block computes; what is there before needs no order
};
} // namespace

static Fenced fencedOf(const Run &run) {
  Fenced fenced;
  for (WgmmaOp product : run)
    for (OpOperand *operand : registersOf(product)) {
      Operation *made = operand->get().getDefiningOp();
      if (isOf(operand->get(), run))
        continue;
      if (operand == &product.getAccMutable())
        fenced.sums.push_back(operand);
      else if (made && made->getBlock() == product->getBlock())
        fenced.multiplied.insert(operand->get());
    }
  return fenced;
}

/// Registers of a thread that a run would hold at most, were its factors computed while its products run: all sums,
/// the factors, and what these are converted from.
static int64_t registersBeside(const Run &run, ArrayRef<Value> factors) {
  int64_t count = 0;
  for (WgmmaOp product : run)
    if (!isOf(product.getAcc(), run))
      count += registersOf(product.getResult());
  for (Value factor : factors) {
    count += registersOf(factor);
    if (auto cast = factor.getDefiningOp<arith::TruncFOp>())
      count += registersOf(cast.getIn());
  }
  return count;
}

static void fence(const Run &run, const TargetInfo &target) {
  if (run.size() < 2)
    return;
  Operation *first = run.front();
  Fenced fenced = fencedOf(run);
  constexpr int64_t others = 60; // addresses, masks, and what is computed on the way
  const bool hasRoom =
      registersBeside(run, fenced.multiplied.getArrayRef()) + others <= int64_t(target.registersPerThread);
  if (hasRoom && (fenced.sums.empty() || !fenced.multiplied.empty()))
    return;
  SmallVector<Value> registers = llvm::map_to_vector(fenced.sums, [](OpOperand *each) { return each->get(); });
  SmallVector<Value> multiplied = fenced.multiplied.takeVector();
  llvm::append_range(registers, multiplied);
  OpBuilder b(first);
  auto fence = WgmmaFenceOp::create(b, first->getLoc(), registers);
  ResultRange results = fence.getResults();
  for (auto [sum, behind] : llvm::zip(fenced.sums, results))
    sum->set(behind);
  // Who reads factors later reads them behind the fence as well: they are not held twice.
  for (auto [before, behind] : llvm::zip(multiplied, results.drop_front(fenced.sums.size())))
    before.replaceUsesWithIf(behind, [&](OpOperand &use) {
      Operation *user = fence->getBlock()->findAncestorOpInBlock(*use.getOwner());
      return user && fence->isBeforeInBlock(user);
    });
  for (WgmmaOp product : run)
    product.setFenced(true);
}

void FenceProducts::runOnOperation() {
  SmallVector<Run> runs;
  getOperation().walk([&](Block *block) {
    bool open = false;
    for (Operation &op : *block) {
      auto product = dyn_cast<WgmmaOp>(op);
      if (!product || isInTensorMemory(product)) {
        open &= isBetween(&op);
        continue;
      }
      if (open)
        computeBefore(product, runs.back());
      if (open && continues(product, runs.back()))
        runs.back().push_back(product);
      else
        runs.push_back({product}), open = true;
    }
  });
  const TargetInfo &target = TargetInfo::ofOrDefault(getOperation());
  for (const Run &run : runs)
    fence(run, target);
}
