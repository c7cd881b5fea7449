// Part of Weft. SPDX-License-Identifier: Apache-2.0
// warp-fold-max-scale: a softmax scales its scores, takes each row's maximum and subtracts it. The maximum of scaled
// numbers is the scaled maximum where the factor is positive, to the bit, since rounding keeps order; then nothing but
// the difference takes the product, and the two become one fused multiply-add:
//
//   %y = arith.mulf %x, %c                              %m0 = tile.reduce max %x
//   %m = tile.reduce max %y                             %m = arith.mulf %m0, %c
//   %d = arith.subf %y, %m               -->            %y = arith.mulf %x, %c
//                                                       %d = arith.subf %y, %m          (fma.rn.f32)
//
// A mask does not stand in the way: select(%mask, %x · %c, -inf) is select(%mask, %x, -inf) · %c.
//
// Only for a constant factor, as that of a scalar may be negative, and only where every other use is a difference.

#include "dialects/Tile/IR/TileOps.h"
#include "dialects/Warp/Transforms/Passes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;

namespace weft::warp {
#define GEN_PASS_DEF_WARPFOLDMAXSCALE
#include "dialects/Warp/Transforms/Passes.h.inc"

namespace {

/// A product with a positive constant, behind a mask that puts -inf elsewhere where `mask` is set.
struct Scaled {
  arith::MulFOp product;
  Value operand;
  FloatAttr factor;
  arith::SelectOp mask;
};

/// The number that `value` is in every element, if it is a constant.
FloatAttr constantElement(Value value) {
  DenseElementsAttr elements;
  if (matchPattern(value, m_Constant(&elements)) && elements.isSplat())
    return dyn_cast<FloatAttr>(elements.getSplatValue<Attribute>());
  return {};
}

bool isNegativeInfinity(Value value) {
  FloatAttr number = constantElement(value);
  return number && number.getValue().isInfinity() && number.getValue().isNegative();
}

std::optional<Scaled> scaledProduct(Value value) {
  auto product = value.getDefiningOp<arith::MulFOp>();
  if (!product || !getElementTypeOrSelf(product.getType()).isF32())
    return std::nullopt;
  for (bool swapped : {false, true}) {
    FloatAttr factor = constantElement(swapped ? product.getLhs() : product.getRhs());
    if (factor && factor.getValue().isFiniteNonZero() && !factor.getValue().isNegative())
      return Scaled{product, swapped ? product.getRhs() : product.getLhs(), factor, {}};
  }
  return std::nullopt;
}

std::optional<Scaled> scaledOf(Value value) {
  auto select = value.getDefiningOp<arith::SelectOp>();
  if (!select)
    return scaledProduct(value);
  if (!isNegativeInfinity(select.getFalseValue()) || !select.getTrueValue().hasOneUse())
    return std::nullopt;
  std::optional<Scaled> scaled = scaledProduct(select.getTrueValue());
  if (scaled)
    scaled->mask = select;
  return scaled;
}

bool isMaximum(tile::ReduceOp reduce) {
  if (reduce.getSources().size() != 1)
    return false;
  Block &body = reduce.getCombiner().front();
  Operation &first = body.front();
  return isa<arith::MaxNumFOp, arith::MaximumFOp>(first) && first.getNextNode() == body.getTerminator() &&
         body.getTerminator()->getOperand(0) == first.getResult(0) && first.getOperand(0) != first.getOperand(1) &&
         llvm::all_of(first.getOperands(), [&](Value value) { return isa<BlockArgument>(value); });
}

/// Whether every use of the scaled value but maxima is the first operand of a difference.
bool onlyFeedsDifferences(Value value) {
  return llvm::all_of(value.getUses(), [](OpOperand &use) {
    auto reduce = dyn_cast<tile::ReduceOp>(use.getOwner());
    return (reduce && isMaximum(reduce)) || (isa<arith::SubFOp>(use.getOwner()) && use.getOperandNumber() == 0);
  });
}

Value constantLike(OpBuilder &b, Location loc, Type type, FloatAttr number) {
  if (auto shaped = dyn_cast<ShapedType>(type))
    return arith::ConstantOp::create(b, loc, DenseElementsAttr::get(shaped, Attribute(number)));
  return arith::ConstantOp::create(b, loc, number);
}

/// Rewrites `select(mask, x · c, -inf)` as `select(mask, x, -inf) · c`.
void moveBehindMask(Scaled &scaled) {
  OpBuilder b(scaled.mask);
  Location loc = scaled.mask.getLoc();
  auto operand =
      arith::SelectOp::create(b, loc, scaled.mask.getCondition(), scaled.operand, scaled.mask.getFalseValue());
  operand->setDiscardableAttrs(scaled.mask->getDiscardableAttrDictionary());
  Value factor = constantLike(b, loc, operand.getType(), scaled.factor);
  auto product = arith::MulFOp::create(b, scaled.product.getLoc(), operand, factor, scaled.product.getFastmath());
  scaled.mask.replaceAllUsesWith(product.getResult());
  scaled.mask.erase();
  scaled.product.erase();
  scaled = {product, operand, scaled.factor, {}};
}

void fold(tile::ReduceOp reduce) {
  std::optional<Scaled> scaled = isMaximum(reduce) ? scaledOf(reduce.getSources()[0]) : std::nullopt;
  if (!scaled || !onlyFeedsDifferences(reduce.getSources()[0]))
    return;
  if (scaled->mask)
    moveBehindMask(*scaled);
  reduce->setOperand(0, scaled->operand);
  OpBuilder b(reduce);
  b.setInsertionPointAfter(reduce);
  Value maximum = reduce.getResults()[0];
  Value factor = constantLike(b, reduce.getLoc(), maximum.getType(), scaled->factor);
  auto result = arith::MulFOp::create(b, reduce.getLoc(), maximum, factor, scaled->product.getFastmath());
  maximum.replaceAllUsesExcept(result.getResult(), result);
}

struct FoldMaxScale : weft::warp::impl::WarpFoldMaxScaleBase<FoldMaxScale> {
  void runOnOperation() override {
    getOperation().walk([](tile::ReduceOp reduce) { fold(reduce); });
  }
};

} // namespace
} // namespace weft::warp
