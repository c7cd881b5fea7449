// Part of Weft. SPDX-License-Identifier: Apache-2.0
// tile-join-counters: what a loop carries and moves by its own step is its variable, a known distance away.
//
//   scf.for %i = %first to %n step %s iter_args(%c = %first - %s)        scf.for %i = %first to %n step %s
//     %d = addi %c, %s                                            ─▶       .. %i ..
//     .. %d ..
//     yield %d
//
// Persistent kernels count their tiles twice, once for what they load and once for what they store; what both compute from
// the number is then the same, and seen to be.
#include "dialects/Tile/Transforms/Passes.h"
#include "dialects/Tile/Transforms/Sums.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"

namespace weft::tile {
#define GEN_PASS_DEF_TILEJOINCOUNTERS
#include "dialects/Tile/Transforms/Passes.h.inc"
} // namespace weft::tile

using namespace mlir;
using namespace weft::tile;

namespace {
struct JoinCounters : weft::tile::impl::TileJoinCountersBase<JoinCounters> {
  void runOnOperation() override;
};
} // namespace

/// Whether two integers are the same.
static bool areEqual(Value a, Value b) {
  APInt x, y;
  return a == b || (matchPattern(a, m_ConstantInt(&x)) && matchPattern(b, m_ConstantInt(&y)) && x == y);
}

/// The number that a sum of integers is more than another integer; none where it is not known.
static std::optional<APInt> excess(ValueRange sum, Value base) {
  Sum difference(base.getType().getIntOrFloatBitWidth());
  APInt one(difference.number.getBitWidth(), 1);
  for (Value each : sum)
    difference.add(each, one);
  difference.add(base, -one);
  return difference.isNumber() ? std::optional(difference.number) : std::nullopt;
}

/// Lets the loop's variable, and a number, be used for `value` but where it is moved on and yielded; whether it was used.
static bool replace(Value value, scf::ForOp loop, const std::optional<APInt> &distance, Operation *next) {
  auto elsewhere = [&](OpOperand &use) { return use.getOwner() != next && !isa<scf::YieldOp>(use.getOwner()); };
  if (!distance || llvm::none_of(value.getUses(), elsewhere))
    return false;
  Value counted = loop.getInductionVar();
  if (!distance->isZero()) {
    OpBuilder b = OpBuilder::atBlockBegin(loop.getBody());
    Value number = arith::ConstantOp::create(b, next->getLoc(), b.getIntegerAttr(value.getType(), *distance));
    counted = arith::AddIOp::create(b, next->getLoc(), counted, number);
  }
  value.replaceUsesWithIf(counted, elsewhere);
  return true;
}

/// Joins what a loop carries with its variable, if its step moves both; whether it did.
static bool join(scf::ForOp loop, unsigned number) {
  BlockArgument counter = loop.getRegionIterArg(number);
  auto next = loop.getYieldedValues()[number].getDefiningOp<arith::AddIOp>();
  if (!next || counter.getType() != loop.getInductionVar().getType() ||
      !llvm::is_contained(next->getOperands(), counter))
    return false;
  Value step = next.getLhs() == counter ? next.getRhs() : next.getLhs();
  Value first = loop.getInitArgs()[number], lower = loop.getLowerBound();
  if (!areEqual(step, loop.getStep()))
    return false;
  bool before = replace(counter, loop, excess(first, lower), next);
  bool changed = replace(next.getResult(), loop, excess({first, step}, lower), next) || before;
  // What only counts itself stays as it is, and so is carried no more.
  if (counter.hasOneUse() && next->hasOneUse() && loop.getResult(number).use_empty())
    loop.getBody()->getTerminator()->setOperand(number, counter);
  return changed;
}

void JoinCounters::runOnOperation() {
  bool changed = false;
  getOperation().walk([&](scf::ForOp loop) {
    if (loop.getInductionVar().getType().isSignlessInteger())
      for (unsigned number = 0; number < loop.getNumRegionIterArgs(); ++number)
        changed |= join(loop, number);
  });
  if (!changed)
    return markAllAnalysesPreserved();
  // What was computed from both.
  OpPassManager simplify(func::FuncOp::getOperationName());
  simplify.addPass(createCanonicalizerPass());
  simplify.addPass(createCSEPass());
  if (failed(runPipeline(simplify, getOperation())))
    signalPassFailure();
}
