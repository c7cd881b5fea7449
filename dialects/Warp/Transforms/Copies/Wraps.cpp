// Part of Weft. SPDX-License-Identifier: Apache-2.0
#include "dialects/Warp/Transforms/Copies/Wraps.h"

#include "dialects/Tile/IR/TileOps.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace weft;
using namespace weft::warp;

OpFoldResult warp::elementOf(Value vector) {
  APInt number;
  if (matchPattern(vector, m_ConstantInt(&number)))
    return IntegerAttr::get(getElementTypeOrSelf(vector.getType()), number);
  auto splat = vector.getDefiningOp<tile::SplatOp>();
  return splat ? OpFoldResult(splat.getSource()) : OpFoldResult();
}

/// What a scalar or number is one less than; null where that is not seen.
static OpFoldResult oneMoreThan(OpFoldResult last) {
  if (auto number = dyn_cast_or_null<IntegerAttr>(dyn_cast<Attribute>(last)))
    return IntegerAttr::get(number.getType(), number.getValue() + 1);
  auto is = [](Value value, int64_t number) {
    APInt found;
    return matchPattern(value, m_ConstantInt(&found)) && found.getSExtValue() == number;
  };
  auto value = cast<Value>(last);
  if (auto difference = value.getDefiningOp<arith::SubIOp>(); difference && is(difference.getRhs(), 1))
    return difference.getLhs();
  auto sum = value.getDefiningOp<arith::AddIOp>();
  return sum && is(sum.getRhs(), -1) ? OpFoldResult(sum.getLhs()) : OpFoldResult();
}

std::optional<std::pair<Value, Value>> warp::lessAndMore(arith::CmpIOp compare) {
  if (compare.getPredicate() == arith::CmpIPredicate::slt)
    return std::pair(compare.getLhs(), compare.getRhs());
  if (compare.getPredicate() == arith::CmpIPredicate::sgt)
    return std::pair(compare.getRhs(), compare.getLhs());
  return std::nullopt;
}

static Wrapped wrappedBySelect(arith::SelectOp select) {
  auto compare = select.getCondition().getDefiningOp<arith::CmpIOp>();
  auto known = compare ? warp::lessAndMore(compare) : std::nullopt;
  return known && known->first == select.getTrueValue() ? Wrapped{known->first, elementOf(known->second)} : Wrapped();
}

std::optional<Wrapped> warp::wrappedBy(Operation *op) {
  Wrapped found;
  if (isa<arith::RemSIOp, arith::RemUIOp>(op))
    found = {op->getOperand(0), elementOf(op->getOperand(1))};
  else if (auto select = dyn_cast<arith::SelectOp>(op))
    found = wrappedBySelect(select);
  else if (isa<arith::MinSIOp>(op))
    if (OpFoldResult last = elementOf(op->getOperand(1)))
      found = {op->getOperand(0), oneMoreThan(last)};
  return found.index && found.size ? std::optional(found) : std::nullopt;
}
