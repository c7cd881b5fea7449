// Part of Weft. SPDX-License-Identifier: Apache-2.0
#include "compiler/Analysis/Assumptions.h"

#include "compiler/Analysis/AxisTransfer.h"
#include "dialects/Tile/IR/TileOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using llvm::APInt;

namespace weft {
namespace {

/// The numbers x for which `x predicate bound` holds; none where they are no range.
IndexRange rangeWhere(arith::CmpIPredicate predicate, const APInt &bound) {
  using P = arith::CmpIPredicate;
  unsigned width = bound.getBitWidth();
  auto between = [](const APInt &lowest, const APInt &highest) -> IndexRange {
    if (lowest.sgt(highest))
      return std::nullopt; // nothing fulfils it: the promise is void
    return ConstantIntRanges::fromSigned(lowest, highest);
  };
  APInt least = APInt::getSignedMinValue(width), most = APInt::getSignedMaxValue(width), zero(width, 0);
  switch (predicate) {
  case P::eq:
    return between(bound, bound);
  case P::sge:
    return between(bound, most);
  case P::sgt:
    return bound == most ? IndexRange() : between(bound + 1, most);
  case P::sle:
    return between(least, bound);
  case P::slt:
    return bound == least ? IndexRange() : between(least, bound - 1);
  case P::ule:
    return bound.isNegative() ? IndexRange() : between(zero, bound);
  case P::ult:
    return bound.isNegative() || bound.isZero() ? IndexRange() : between(zero, bound - 1);
  default:
    return std::nullopt;
  }
}

arith::CmpIPredicate turned(arith::CmpIPredicate predicate) {
  using P = arith::CmpIPredicate;
  switch (predicate) {
  case P::sge:
    return P::sle;
  case P::sgt:
    return P::slt;
  case P::sle:
    return P::sge;
  case P::slt:
    return P::sgt;
  case P::uge:
    return P::ule;
  case P::ugt:
    return P::ult;
  case P::ule:
    return P::uge;
  case P::ult:
    return P::ugt;
  default:
    return predicate;
  }
}

} // namespace

Assumptions::Assumptions(Operation *function) {
  function->walk([&](tile::AssumeOp assume) { take(assume.getCondition(), assume->getBlock()); });
}

void Assumptions::take(Value condition, Block *block) {
  Operation *op = condition.getDefiningOp();
  if (!op)
    return;
  if (isa<arith::AndIOp, tile::SplatOp, tile::BroadcastOp, tile::ExpandDimsOp>(op))
    for (Value part : op->getOperands())
      take(part, block);
  else if (isa<arith::CmpIOp>(op))
    takeComparison(op, block);
}

void Assumptions::takeComparison(Operation *op, Block *block) {
  auto compare = cast<arith::CmpIOp>(op);
  arith::CmpIPredicate predicate = compare.getPredicate();
  Value value = compare.getLhs(), other = compare.getRhs();
  APInt bound, divisor;
  if (!matchPattern(other, m_ConstantInt(&bound))) {
    std::swap(value, other);
    predicate = turned(predicate);
    if (!matchPattern(other, m_ConstantInt(&bound)))
      return;
  }
  promises[value].push_back({block, rangeWhere(predicate, bound)});
  // Widening keeps the number, so that what is promised of it holds for the narrow one.
  if (Operation *widening = value.getDefiningOp(); isa_and_nonnull<arith::ExtSIOp>(widening)) {
    unsigned narrow = getElementTypeOrSelf(widening->getOperand(0).getType()).getIntOrFloatBitWidth();
    if (bound.isSignedIntN(narrow))
      promises[widening->getOperand(0)].push_back({block, rangeWhere(predicate, bound.trunc(narrow))});
  }
  Operation *remainder = value.getDefiningOp();
  if (predicate == arith::CmpIPredicate::eq && bound.isZero() &&
      isa_and_nonnull<arith::RemSIOp, arith::RemUIOp>(remainder) &&
      matchPattern(remainder->getOperand(1), m_ConstantInt(&divisor)) && !divisor.isZero())
    promises[remainder->getOperand(0)].push_back({block, std::nullopt, lowestBit(divisor.getSExtValue())});
}

AxisInfo Assumptions::refined(Value value, AxisInfo info, Operation *user) const {
  auto found = promises.find(value);
  if (found == promises.end())
    return info;
  for (const Promise &promise : found->second) {
    if (!promise.block->findAncestorOpInBlock(*user))
      continue;
    for (int64_t &divisibility : info.divisibility)
      divisibility = std::max(divisibility, promise.divisibility);
    if (!promise.range)
      continue;
    if (!info.range) {
      info.range = promise.range;
      continue;
    }
    ConstantIntRanges both = info.range->intersection(*promise.range);
    if (both.smin().sle(both.smax())) // a promise that is broken promises nothing
      info.range = ConstantIntRanges::fromSigned(both.smin(), both.smax());
  }
  return info;
}

} // namespace weft
