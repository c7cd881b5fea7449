// Part of Weft. SPDX-License-Identifier: Apache-2.0
// tile-inline-loops: a loop that runs at most once is its body. Bounds are sums, and what they share cancels; whether
// the upper one wraps round, MLIR's integer ranges say.
//
//   %end = arith.addi %start, %c16                     (%start: 0 to 16)
//   %r = scf.for %i = %start to %end step %c32 iter_args(%x = %a) { ... yield %y }     -->     ... with %start, %a
//
// What such a loop carries needs no registers beside what it computes, and its loads are no longer a loop's: they need
// not be loaded ahead.
#include "dialects/Tile/Transforms/Passes.h"
#include "dialects/Tile/Transforms/Sums.h"
#include "mlir/Analysis/DataFlow/IntegerRangeAnalysis.h"
#include "mlir/Analysis/DataFlow/Utils.h"
#include "mlir/Analysis/DataFlowFramework.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/TypeSwitch.h"

namespace weft::tile {
#define GEN_PASS_DEF_TILEINLINELOOPS
#include "dialects/Tile/Transforms/Passes.h.inc"
} // namespace weft::tile

using namespace mlir;
using namespace weft::tile;
using llvm::APInt;

namespace {

/// How far a loop's bounds lie apart, where that is a number, at least 1 and no more than a step.
std::optional<APInt> oneStep(scf::ForOp loop) {
  APInt step;
  if (!matchPattern(loop.getStep(), m_ConstantInt(&step)))
    return std::nullopt;
  Sum apart(step.getBitWidth());
  APInt one(step.getBitWidth(), 1);
  apart.add(loop.getUpperBound(), one);
  apart.add(loop.getLowerBound(), -one);
  bool isUnsigned = loop.getUnsignedCmp();
  auto atMost = [&](const APInt &a, const APInt &b) { return isUnsigned ? a.ule(b) : a.sle(b); };
  if (!apart.isNumber() || !atMost(one, apart.number) || !atMost(apart.number, step))
    return std::nullopt;
  return apart.number;
}

/// Whether `value` plus `number` does not wrap.
bool staysInside(Value value, const APInt &number, bool isUnsigned, const DataFlowSolver &solver) {
  const auto *found = solver.lookupState<dataflow::IntegerValueRangeLattice>(value);
  if (!found || found->getValue().isUninitialized())
    return false;
  const ConstantIntRanges &range = found->getValue().getValue();
  bool wraps = true;
  if (range.smax().getBitWidth() == number.getBitWidth())
    isUnsigned ? (void)range.umax().uadd_ov(number, wraps) : (void)range.smax().sadd_ov(number, wraps);
  return !wraps;
}

/// Puts the loop's body where the loop is, and its yielded values in the place of its results.
void inlineBody(scf::ForOp loop, IRRewriter &rewriter) {
  SmallVector<Value> arguments{loop.getLowerBound()};
  llvm::append_range(arguments, loop.getInitArgs());
  Operation *yield = loop.getBody()->getTerminator();
  SmallVector<Value> results(yield->getOperands());
  // What is yielded may be an argument of the body.
  for (Value &result : results)
    if (auto argument = dyn_cast<BlockArgument>(result); argument && argument.getOwner() == loop.getBody())
      result = arguments[argument.getArgNumber()];
  rewriter.eraseOp(yield);
  rewriter.inlineBlockBefore(loop.getBody(), loop, arguments);
  rewriter.replaceOp(loop, results);
}

/// Puts a branch around a loop that runs once where its bounds are in order, else not at all.
void guard(scf::ForOp loop, IRRewriter &rewriter) {
  rewriter.setInsertionPoint(loop);
  Location loc = loop.getLoc();
  auto predicate = loop.getUnsignedCmp() ? arith::CmpIPredicate::ult : arith::CmpIPredicate::slt;
  Value runs = arith::CmpIOp::create(rewriter, loc, predicate, loop.getLowerBound(), loop.getUpperBound());
  SmallVector<Value> inits(loop.getInitArgs());
  auto branch = scf::IfOp::create(rewriter, loc, loop.getResultTypes(), runs, /*withElseRegion=*/!inits.empty());
  rewriter.replaceAllUsesWith(loop.getResults(), branch.getResults());
  if (inits.empty()) {
    rewriter.moveOpBefore(loop, branch.thenYield());
    return;
  }
  rewriter.moveOpBefore(loop, branch.thenBlock(), branch.thenBlock()->end());
  rewriter.setInsertionPointAfter(loop);
  scf::YieldOp::create(rewriter, loc, loop.getResults());
  rewriter.setInsertionPointToEnd(branch.elseBlock());
  scf::YieldOp::create(rewriter, loc, inits);
}

struct InlineLoops : weft::tile::impl::TileInlineLoopsBase<InlineLoops> {
  void runOnOperation() override;
};

} // namespace

void InlineLoops::runOnOperation() {
  llvm::MapVector<Operation *, APInt> loops;
  getOperation().walk([&](scf::ForOp loop) {
    if (std::optional<APInt> apart = oneStep(loop))
      loops.insert({loop, *apart});
  });
  if (loops.empty())
    return markAllAnalysesPreserved();
  DataFlowSolver solver;
  dataflow::loadBaselineAnalyses(solver);
  solver.load<dataflow::IntegerRangeAnalysis>();
  if (failed(solver.initializeAndRun(getOperation())))
    return signalPassFailure();
  IRRewriter rewriter(&getContext());
  for (auto &[op, apart] : loops) { // those inside of others first
    auto loop = cast<scf::ForOp>(op);
    if (!staysInside(loop.getLowerBound(), apart, loop.getUnsignedCmp(), solver))
      guard(loop, rewriter);
    inlineBody(loop, rewriter);
  }
}
