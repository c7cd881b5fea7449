// Part of Weft. SPDX-License-Identifier: Apache-2.0
// tile-count-loops: a loop that goes on while what it counts up is less than a bound is one of that many iterations.
//
//   scf.while (%i = %first, %x = ..) {                     scf.for %i = %first to %n step %c iter_args(%x = ..) {
//     %c = cmpi slt, %i, %n                                  ..
//     scf.condition(%c) %i, %x                               scf.yield %y
//   } do {                                          ─▶     }
//     ..
//     %next = addi %i, %c
//     scf.yield %next, %y
//   }
//
// What knows the iterations of loops, copies ahead and tells what they touch apart, knows these then.
#include "dialects/Tile/Transforms/Passes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Matchers.h"
#include <optional>

namespace weft::tile {
#define GEN_PASS_DEF_TILECOUNTLOOPS
#include "dialects/Tile/Transforms/Passes.h.inc"
} // namespace weft::tile

using namespace mlir;

namespace {
struct CountLoops : weft::tile::impl::TileCountLoopsBase<CountLoops> {
  void runOnOperation() override;
};

/// Which of the numbers that a loop carries it counts with, up to what, and by what.
struct Count {
  unsigned number;
  Value bound, step;
};
} // namespace

/// What a loop compares, less and more; none where it does anything else before its body.
static std::optional<std::pair<Value, Value>> comparedBy(scf::WhileOp loop) {
  Block *before = loop.getBeforeBody();
  auto compare = loop.getConditionOp().getCondition().getDefiningOp<arith::CmpIOp>();
  auto isPassedOn = [&](Value value) { return isa<BlockArgument>(value) || value.getParentBlock() != before; };
  if (!compare || compare->getBlock() != before || !llvm::hasNItems(*before, 2) ||
      !llvm::all_of(loop.getConditionOp().getArgs(), isPassedOn))
    return std::nullopt;
  if (compare.getPredicate() == arith::CmpIPredicate::slt)
    return std::pair(compare.getLhs(), compare.getRhs());
  if (compare.getPredicate() == arith::CmpIPredicate::sgt)
    return std::pair(compare.getRhs(), compare.getLhs());
  return std::nullopt;
}

static std::optional<Count> countOf(scf::WhileOp loop) {
  std::optional<std::pair<Value, Value>> compared = comparedBy(loop);
  if (!compared)
    return std::nullopt;
  auto [counter, bound] = *compared;
  auto argument = dyn_cast<BlockArgument>(counter);
  if (!argument || argument.getOwner() != loop.getBeforeBody() || bound.getParentBlock() == loop.getBeforeBody())
    return std::nullopt;
  auto next = loop.getYieldOp().getOperand(argument.getArgNumber()).getDefiningOp<arith::AddIOp>();
  APInt step;
  if (!next || !matchPattern(next.getRhs(), m_ConstantInt(&step)) || !step.isStrictlyPositive() ||
      loop->isAncestor(next.getRhs().getDefiningOp()))
    return std::nullopt;
  auto inBody = dyn_cast<BlockArgument>(next.getLhs());
  const bool isCounter = inBody && inBody.getOwner() == loop.getAfterBody() &&
                         loop.getConditionOp().getArgs()[inBody.getArgNumber()] == counter;
  return isCounter ? std::optional(Count{argument.getArgNumber(), bound, next.getRhs()}) : std::nullopt;
}

/// Those that the body takes, or that are taken behind the loop; the counter only where that is so.
static SmallVector<unsigned> carriedBy(scf::WhileOp loop, const Count &count) {
  SmallVector<unsigned> carried;
  for (BlockArgument argument : loop.getBeforeArguments()) {
    auto isTaken = [&](const auto &passed) {
      const auto &[value, inBody, result] = passed;
      const bool isCounter = argument.getArgNumber() == count.number;
      return value == argument && (!result.use_empty() || (!isCounter && !inBody.use_empty()));
    };
    if (llvm::any_of(llvm::zip(loop.getConditionOp().getArgs(), loop.getAfterArguments(), loop.getResults()), isTaken))
      carried.push_back(argument.getArgNumber());
  }
  return carried;
}

static void makeCounted(scf::WhileOp loop, const Count &count) {
  OpBuilder b(loop);
  const SmallVector<unsigned> carried = carriedBy(loop, count);
  auto inits = llvm::map_to_vector(carried, [&](unsigned number) { return Value(loop.getInits()[number]); });
  auto made = scf::ForOp::create(b, loop.getLoc(), loop.getInits()[count.number], count.bound, count.step, inits);
  made->setDiscardableAttrs(loop->getDiscardableAttrDictionary());

  auto placeOf = [&](Value passed) -> std::optional<size_t> {
    auto argument = dyn_cast<BlockArgument>(passed);
    if (!argument || argument.getOwner() != loop.getBeforeBody())
      return std::nullopt; // of around the loop
    return std::distance(carried.begin(), llvm::find(carried, argument.getArgNumber()));
  };
  for (auto [passed, inBody, result] :
       llvm::zip(loop.getConditionOp().getArgs(), loop.getAfterArguments(), loop.getResults())) {
    std::optional<size_t> place = placeOf(passed);
    const bool isCounter = place && cast<BlockArgument>(passed).getArgNumber() == count.number;
    if (isCounter)
      inBody.replaceAllUsesWith(made.getInductionVar());
    else if (!inBody.use_empty())
      inBody.replaceAllUsesWith(place ? Value(made.getRegionIterArg(*place)) : passed);
    if (!result.use_empty())
      result.replaceAllUsesWith(place ? Value(made.getResult(*place)) : passed);
  }
  Operation *yield = loop.getYieldOp();
  auto yielded = llvm::map_to_vector(carried, [&](unsigned number) { return yield->getOperand(number); });
  Block *body = made.getBody();
  if (!body->empty())
    body->back().erase();
  body->getOperations().splice(body->end(), loop.getAfterBody()->getOperations());
  b.setInsertionPoint(yield);
  scf::YieldOp::create(b, yield->getLoc(), yielded);
  Operation *next = yield->getOperand(count.number).getDefiningOp();
  yield->erase();
  if (next->use_empty())
    next->erase();
  loop->erase();
}

void CountLoops::runOnOperation() {
  getOperation().walk([](scf::WhileOp loop) {
    if (std::optional<Count> count = countOf(loop))
      makeCounted(loop, *count);
  });
}
